"""Formats of dates and times, in the codes of strptime: which of them can be used.

A format that strptime cannot read, or that does not say enough, would be found out in the middle of a load, or
change values without a word.  So a format is tried when it is set: moments are written by it, read again, and must
be the same.  Called by `settings`; `codes` also by the reader of CSV.
"""

from __future__ import annotations

import datetime as dt
import re

_CODE = re.compile(r"%(.?)", re.DOTALL)
_DATE_CODES = frozenset("YymbBdjaAGVuUWwx")
_PARTS = ("H", "M", "S", "f")
"""The parts of a time of day, from the coarse to the fine."""

_ZEROS = ({"hour": 0}, {"minute": 0}, {"second": 0}, {"microsecond": 0})
_PROBES = (
    dt.datetime(2003, 4, 15, 14, 35, 46, 789012),
    dt.datetime(1987, 12, 31, 0, 1, 2, 3),
    dt.datetime(2024, 2, 29, 23, 59, 58, 999999),
)


def codes(format: str) -> str:
    """The letters of the format's codes, in their order; `%%` is none."""
    return "".join(letter for letter in _CODE.findall(format) if letter != "%")


def date_format(text: str) -> str:
    """A format of dates as it is; "" is ISO 8601.  Raises ValueError."""
    if text and not set(codes(text)) <= _DATE_CODES:
        raise ValueError("a date has no time: use %Y, %m, %d; for dates with times, use csv.time_format")
    if text and not _gives_back(text, parts=0):
        raise ValueError("it must say year, month and day, each once, such as %d.%m.%Y")
    return text


def time_format(text: str) -> str:
    """A format of dates with times as it is; "" is ISO 8601.  Raises ValueError."""
    if not text:
        return text
    found = set(codes(text))
    if "Z" in found:
        raise ValueError(
            "%Z names a zone, which is not the same everywhere: use %z, or write the letters as they are"
        )
    if ("I" in found) != ("p" in found) or {"H", "I"} <= found:
        raise ValueError("the hour is %H, or %I and %p")
    hour = {"H" if letter == "I" else letter for letter in found}
    parts = sum(part in hour for part in _PARTS)
    whole = bool(found & set("cX")) or (parts and set(_PARTS[:parts]) <= hour)
    if not whole or not _gives_back(text, parts=3 if found & set("cX") else parts):
        raise ValueError(
            "it must say year, month, day and hour, each once, and nothing finer without the coarser, such as "
            "%d.%m.%Y %H:%M"
        )
    return text


def interval_place(text: str) -> str:
    """A pattern of places that differ from interval to interval, as it is; "" is none.  Raises ValueError."""
    if text and _written(_PROBES[0], text) == _written(_PROBES[2], text):
        raise ValueError("name the interval in it, as in /landing/%Y-%m-%d/*.ndjson")
    return text


def _written(moment: dt.datetime, format: str) -> str | None:
    try:
        return moment.strftime(format)
    except ValueError:  # a code that the machine does not know
        return None


def _gives_back(format: str, *, parts: int) -> bool:
    """Whether moments, exact to so many parts of a time of day, are read as what was written."""
    for probe in _PROBES:
        moment = probe
        for zero in _ZEROS[parts:]:
            moment = moment.replace(**zero)  # type: ignore[arg-type]
        try:
            text = moment.replace(tzinfo=dt.UTC).strftime(format)
            read = dt.datetime.strptime(text, format)
        except (ValueError, re.error, OverflowError):
            return False
        if read.replace(tzinfo=None) != moment:
            return False
    return True
