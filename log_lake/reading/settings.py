"""The setting of reads: the age from which records are hidden (`age_off`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake_core.errors import InvalidInput
from log_lake.settings.setting_types import DURATION_PATTERN, SettingType, duration, pattern
from log_lake.settings.settings import Setting, Settings

if TYPE_CHECKING:  # loads Arrow, which `lake --help` does not need
    from lake_core.keys import PoolKey


def _age_off(text: str) -> tuple[str, float] | None:
    field, colon, age = text.rpartition(":")
    if text and not (colon and field):
        raise ValueError("use FIELD:DURATION, such as ts:30d")
    return (field, duration(age)) if text else None


def _hides_more(before: Settings, after: Settings) -> bool:
    """Whether the changed `age_off` uses another field than before, or hides younger records."""
    old, new = before["age_off"], after["age_off"]
    return new is not None and (old is None or new[0] != old[0] or new[1] < old[1])


def _check(settings: Settings, kind: str, key: PoolKey) -> None:
    """Raises InvalidInput if no record of the pool could age by this field, because of the field or the pool's
    kind."""
    if kind == "aggregate" and settings["age_off"][0] not in key.names:
        raise InvalidInput(
            f"setting age_off={settings.text('age_off')}: in an aggregate pool it must name a field of the key "
            f"({key})"
        )


AGE_OFF = SettingType(
    _age_off, "`FIELD:DURATION`, such as `ts:30d`", pattern(f"(?:.|\n)+:{DURATION_PATTERN}")
)

SETTINGS = {
    "age_off": Setting(
        AGE_OFF, "", "FIELD:DURATION: hide and later remove records older than this", _hides_more, _check
    ),
}
