"""The setting of the vacuum: how long it keeps objects that nothing needs."""

from __future__ import annotations

from log_lake.settings.setting_types import DURATION
from log_lake.settings.settings import Setting, keeps_less

SETTINGS = {
    "vacuum.grace": Setting(
        DURATION,
        "7d",
        "keep removed objects, and objects that were never committed, at least this long",
        keeps_less("vacuum.grace"),
    ),
}
