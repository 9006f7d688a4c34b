"""Checks formats of dates and times, written in the codes of strptime.

A format that strptime cannot read would fail in the middle of a load, and one that lacks a part of the time
would change values silently.  So each format is tried when it is set: sample times, written with it and read
again, must be equal.  Called by the settings of loads and of the intervals agent; the reader of CSV calls
`codes`.
"""

from __future__ import annotations

import datetime as dt
import re

_CODE = re.compile(r"%(.?)", re.DOTALL)
_DATE_CODES = frozenset("YymbBdjaAGVuUWwx")
_PARTS = ("H", "M", "S", "f")
"""The codes for the parts of a time of day, from hours to fractions of seconds."""

_ZEROS = ({"hour": 0}, {"minute": 0}, {"second": 0}, {"microsecond": 0})
_PROBES = (
    dt.datetime(2003, 4, 15, 14, 35, 46, 789012),
    dt.datetime(1987, 12, 31, 0, 1, 2, 3),
    dt.datetime(2024, 2, 29, 23, 59, 58, 999999),
)


def codes(format: str) -> str:
    """Returns the letters of the format's codes, in order; `%%` is not one."""
    return "".join(letter for letter in _CODE.findall(format) if letter != "%")


def date_format(text: str) -> str:
    """Checks a format of dates, and returns it unchanged; "" means ISO 8601.  Raises ValueError if it cannot be
    used."""
    if text and not set(codes(text)) <= _DATE_CODES:
        raise ValueError("a date has no time: use %Y, %m, %d; for dates with times, use csv.time_format")
    if text and not _gives_back(text, parts=0):
        raise ValueError("it must have year, month and day, each once, such as %d.%m.%Y")
    return text


def time_format(text: str) -> str:
    """Checks a format of dates with times, and returns it unchanged; "" means ISO 8601.  Raises ValueError if
    it cannot be used."""
    if not text:
        return text
    letters = set(codes(text))
    if "Z" in letters:
        raise ValueError(
            "%Z names a zone, and names differ between machines: use %z, or write the letters themselves"
        )
    if ("I" in letters) != ("p" in letters) or {"H", "I"} <= letters:
        raise ValueError("write the hour as %H, or as %I and %p")
    hour = {"H" if letter == "I" else letter for letter in letters}
    parts = sum(part in hour for part in _PARTS)
    whole = bool(letters & set("cX")) or (parts and set(_PARTS[:parts]) <= hour)
    if not whole or not _gives_back(text, parts=3 if letters & set("cX") else parts):
        raise ValueError(
            "it must have year, month, day and hour, each once, and no finer part without the coarser, such as "
            "%d.%m.%Y %H:%M"
        )
    return text


def interval_place(text: str) -> str:
    """Checks the path pattern of an interval's files, and returns it unchanged; "" means none.

    Raises ValueError if two intervals would have the same path.
    """
    if text and _written(_PROBES[0], text) == _written(_PROBES[2], text):
        raise ValueError("name the interval in it, as in /data/%Y-%m-%d/*.ndjson")
    return text


def _written(moment: dt.datetime, format: str) -> str | None:
    try:
        return moment.strftime(format)
    except ValueError:  # this machine does not know the code
        return None


def _gives_back(format: str, *, parts: int) -> bool:
    """Whether sample times with this many parts of a time of day are equal after they were written and read by the
    format."""
    for probe in _PROBES:
        moment = probe
        for zero in _ZEROS[parts:]:
            moment = moment.replace(**zero)  # type: ignore[arg-type]
        try:
            text = moment.replace(tzinfo=dt.UTC).strftime(format)
            if text == moment.replace(tzinfo=dt.UTC, year=moment.year + 4).strftime(format):
                return False  # without a year; Python 3.15 reads none
            read = dt.datetime.strptime(text, format)
        except (ValueError, re.error, OverflowError):
            return False
        if read.replace(tzinfo=None) != moment:
            return False
    return True
