"""Where the files of intervals are: the settings `intervals.*` of a pool as one value."""

from __future__ import annotations

from dataclasses import dataclass

from log_lake.settings import Settings
from log_lake.settings.setting_types import SettingType, one_of
from log_lake.settings.settings import Setting
from log_lake.settings.time_format import interval_place

INTERVAL_PLACE = SettingType(interval_place, "a path with codes of strftime")

SETTINGS = {
    "intervals.missing": Setting(
        one_of("fail", "empty"),
        "fail",
        "an interval without any file: fail, or empty: it holds no records then",
    ),
    "intervals.source": Setting(
        INTERVAL_PLACE,
        "",
        "path pattern of an interval's files (/in/%Y-%m-%d/*.csv); if empty, the intervals agent skips this pool",
    ),
}


@dataclass(frozen=True)
class IntervalsPolicy:
    """Where the files of an interval are.

    `source` is a path pattern with the time of an interval; `include` and `exclude` are globs of file names.
    `may_be_missing`: an interval without files becomes empty; otherwise the run fails.
    """

    source: str
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    may_be_missing: bool = False


def policy_of(settings: Settings) -> IntervalsPolicy:
    """Returns the policy from the settings `intervals.*`, `include` and `exclude`."""
    return IntervalsPolicy(
        settings["intervals.source"],
        settings["include"],
        settings["exclude"],
        may_be_missing=settings["intervals.missing"] == "empty",
    )
