"""The settings `range.*` of a pool, and the policy that they describe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from log_lake.settings import Settings
from log_lake.settings.setting_types import SIZE_PATTERN, SettingType, count, pattern, size_of
from log_lake.settings.settings import Setting

if TYPE_CHECKING:  # `lake --help` reads the settings and loads no engine
    from lake_core.history import Reference


def _limit(text: str) -> int:
    """Bytes; 0: no limit."""
    return 0 if text.strip() == "0" else size_of(text)


LIMIT = SettingType(_limit, "a size, such as `10GiB`, or 0", pattern(SIZE_PATTERN, "integer"))

SETTINGS = {
    "range.bytes": Setting(LIMIT, "0", "split a range of keys that holds more than this; 0: no limit"),
    "range.records": Setting(
        count(0), "0", "split a range of keys that holds more records than this; 0: no limit"
    ),
}


@dataclass(frozen=True)
class RangePolicy:
    """How large a range of keys may be, in bytes and in records; 0 means no limit."""

    size: int
    records: int

    @property
    def is_off(self) -> bool:
        """Whether ranges may have any size."""
        return not self.size and not self.records

    def part(self, reference: Reference) -> float:
        """Returns how much of a full range the reference fills: 1.0 for all of it.  If both bytes and records are
        limited, this is the larger of the two shares."""
        return max(
            reference.size / self.size if self.size else 0.0,
            reference.records / self.records if self.records else 0.0,
        )


def policy_of(settings: Settings) -> RangePolicy:
    """Returns the policy that a pool's settings `range.*` describe."""
    return RangePolicy(size=settings["range.bytes"], records=settings["range.records"])
