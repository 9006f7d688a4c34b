"""The settings that define the intervals of a pool, as one value."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from lake_core.errors import InvalidInput
from log_lake.settings import Settings
from log_lake.settings.covering import KEYS
from log_lake.settings.setting_types import SettingType, duration, if_given, one_of
from log_lake.settings.settings import Setting

EVERY = ("hour", "day", "week", "month")
"""The lengths that an interval may have."""

YEARS = range(2, 9800)
"""The years that a coverage allows: others are mistakes, and with a zone or a duration they exceed the years of
Python."""

_OTHER_YEARS = f"use a year from {YEARS.start} to {YEARS.stop - 1}"

LATEST = 36_500 * 86_400
"""The greatest value of `intervals.late`, in seconds."""


def _zone(text: str) -> ZoneInfo:
    try:
        return ZoneInfo(text)
    except (KeyError, ValueError, OSError) as error:  # a name that is a folder of zones is an OSError
        raise ValueError("use the name of a time zone, such as UTC or Europe/Berlin") from error


def moment(text: str) -> dt.datetime:
    """Returns the day or time that an ISO 8601 text gives, without a zone if the text has none.  Raises
    ValueError."""
    try:
        time = dt.datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(
            "use a day or a time of ISO 8601, such as 2026-01-31 or 2026-01-31T06:00Z"
        ) from error
    if time.year not in YEARS:
        raise ValueError(_OTHER_YEARS)
    return time


def _late(text: str) -> float:
    seconds = duration(text)
    if seconds > LATEST:
        raise ValueError(f"use a duration of at most {LATEST // 86_400:,}d")
    return seconds


_DURATION = SettingType(_late, "a duration, such as `6h` or `2d`")
_MOMENT = SettingType(moment, "a day or a time, such as `2026-01-31`")

SETTINGS = {
    "intervals.every": Setting(
        one_of(*EVERY, KEYS),
        "day",
        "how long an interval is, for the coverage of the pool; key: ranges of keys instead of times",
    ),
    "intervals.late": Setting(
        if_given(_DURATION),
        "",
        "an interval that is not held so long after its end is late; if empty, none ever is",
    ),
    "intervals.since": Setting(
        if_given(_MOMENT),
        "",
        "begin of the first interval that the pool should hold; if empty, the first that it does",
    ),
    "intervals.zone": Setting(
        SettingType(_zone, "the name of a time zone"), "UTC", "time zone in which intervals begin"
    ),
}


@dataclass(frozen=True)
class CoveragePolicy:
    """Which intervals a pool should hold, and by when.

    Each interval is one hour, day, week or month (`every`) in the time zone `zone`. `since` lies in the first
    one; None means the first one that is held. An interval that is not held is late from `late` seconds after
    its end on; None means never.
    """

    every: str = "day"
    zone: dt.tzinfo = dt.UTC
    since: dt.datetime | None = None
    late: dt.timedelta | None = None


def coverage_policy_of(settings: Settings) -> CoveragePolicy:
    """Returns the policy from the settings `intervals.*`.  Raises InvalidInput."""
    zone, since, late = settings["intervals.zone"], settings["intervals.since"], settings["intervals.late"]
    return CoveragePolicy(
        settings["intervals.every"],
        zone,
        None if since is None else in_zone(since, zone),
        None if late is None else dt.timedelta(seconds=late),
    )


def in_zone(moment: dt.datetime, zone: dt.tzinfo) -> dt.datetime:
    """Returns the moment in the zone; one without a zone is a local time there.

    Raises InvalidInput for a year that is not in `YEARS`.
    """
    if moment.year not in YEARS:
        raise InvalidInput(f"{moment.isoformat()}: {_OTHER_YEARS}")
    return moment.astimezone(zone) if moment.tzinfo else moment.replace(tzinfo=zone)
