"""The hours of a day in which upkeep may begin: the setting `upkeep.window`.

    22:00-06:00                       from 22:00 (inclusive) to 06:00 of the next day (exclusive), UTC
    12:00-13:00,22:00-06:00           two windows
    22:00-06:00 Europe/Berlin         by the clock of a place, daylight saving time included

Called by `agents.settings`; the agents call `Hours.is_open` (`agents.finding`).
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass

_WINDOW = re.compile(r"([0-9]{2}):([0-9]{2})-([0-9]{2}):([0-9]{2})")
UTC = "UTC"
_DAY = 24 * 60
"""The minutes of a day."""


@dataclass(frozen=True)
class Hours:
    """The times of a day at which upkeep may begin, as windows.

    `windows`: for each window, the minute of the day at which it begins (inclusive) and ends (exclusive).  If
    the end is below the begin, it is on the next day.  `zone` names the time zone of these minutes.
    """

    windows: tuple[tuple[int, int], ...]
    zone: str = UTC

    def is_open(self, now: float) -> bool:
        """Whether the time `now`, in seconds since 1970, lies in a window."""
        local = dt.datetime.fromtimestamp(now, _zone(self.zone))
        minute = local.hour * 60 + local.minute
        return any(
            begin <= minute < end if begin < end else minute >= begin or minute < end
            for begin, end in self.windows
        )

    def __str__(self) -> str:
        windows = ",".join(f"{_clock(begin)}-{_clock(end)}" for begin, end in self.windows)
        return f"{windows} {self.zone}"


def upkeep_hours(text: str) -> Hours | None:
    """Returns the hours that a text names; None for the empty text, which means any time.  Raises
    ValueError."""
    if not text:
        return None
    spans, _, zone = text.strip().partition(" ")
    windows = []
    for part in spans.split(","):
        match = _WINDOW.fullmatch(part)
        if not match:
            raise ValueError("use HH:MM-HH:MM, such as 22:00-06:00, or 22:00-06:00 Europe/Berlin")
        begin, end = int(match[1]) * 60 + int(match[2]), int(match[3]) * 60 + int(match[4])
        if begin >= _DAY or end > _DAY or int(match[2]) > 59 or int(match[4]) > 59:
            raise ValueError(f"use times of a day from 00:00 to 24:00 (got {part})")
        if begin == end:
            raise ValueError(f"use two different times (got {part}); 00:00-24:00 is the whole day")
        windows.append((begin, end))
    zone = zone.strip() or UTC
    _zone(zone)
    return Hours(tuple(windows), zone)


def _zone(name: str) -> dt.tzinfo:
    """Returns the time zone of a name.  Raises ValueError if this machine does not know it."""
    if name == UTC:  # a machine without a data base of zones has it too
        return dt.UTC
    from zoneinfo import ZoneInfo  # `lake --help` reads this module and needs no zones

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:  # of a folder's name, too
        raise ValueError(
            f"use a time zone that this machine knows, such as UTC or Europe/Berlin (got {name!r})"
        ) from error


def _clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"
