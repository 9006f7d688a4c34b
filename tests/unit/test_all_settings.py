"""Each room declares its settings, and one table gathers them all."""

from __future__ import annotations

import re

from log_lake import all_settings
from log_lake.settings.settings import KNOWN
from tests.unit.test_no_circles import FILES


def test_every_table_of_settings_is_gathered_and_no_setting_is_declared_twice() -> None:
    rooms = {room.__name__ for room in all_settings.ROOMS}
    tables = {
        module
        for module, path in FILES.items()
        if re.search(r"^SETTINGS = {\s*[\"*].*\bSetting\(", path.read_text(), re.MULTILINE | re.DOTALL)
    }
    assert tables == rooms
    assert sum(len(room.SETTINGS) for room in all_settings.ROOMS) == len(all_settings.SETTINGS)
    assert list(KNOWN) == list(all_settings.SETTINGS)
