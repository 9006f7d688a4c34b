"""One value of a known class, from text and back.

| class | text |
|---|---|
| boolean | `true`, `false` |
| number | digits; with a point or an exponent a double; `NaN`, `Infinity`, `-Infinity` |
| decimal | digits, at most 76 before the point and 38 behind it |
| string | the text itself |
| bytes | base64, or `x'00ff'` |
| date | `2026-01-31` |
| timestamp | `2026-01-31T12:00:00.123456789`, T or a space; an offset is turned into UTC |
| timestamp with zone | the same, shown with `Z`; without an offset the text is UTC |
| time | `12:00:00.123456789` |
| duration | seconds: `1.5s` |

`read` takes text of a class, `show` gives the text back: `read(show(v), class_of(v)) == v` for every storable
value.  `read` raises NotReadable, which says why.  Key options of the command, conditions, declared fields, JSON,
CSV and the options of Spark all read values here (decision 52).
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import datetime as dt
import decimal
import math
import re

from lake_core.keys.encoding import (
    DECIMAL_DIGITS,
    DURATION,
    FRACTION_DIGITS,
    NAIVE,
    TIME,
    ZONED,
    Instant,
    Value,
)

NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
WHOLE = re.compile(r"[+-]?[0-9]+")
_EPOCH = dt.datetime(1970, 1, 1)
_MOMENT = re.compile(r"([^.]*:[^.]*)\.([0-9]{1,9})(|Z|z|[+-][0-9]{2}:?[0-9]{2})")
_TIME = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?")
_DURATION = re.compile(r"(-?)([0-9]{1,19})(?:\.([0-9]{1,9}))?\s*s?")
_NOT_FINITE = {
    "nan": math.nan,
    "infinity": math.inf,
    "inf": math.inf,
    "+infinity": math.inf,
    "+inf": math.inf,
    "-infinity": -math.inf,
    "-inf": -math.inf,
}
LONGEST_NUMBER = 400
"""The most characters of a number. The time that int() and Decimal() take grows with the square of the
length."""

DATE_FAULT = "a date outside of the years 1 to 9999"
TIMESTAMP_FAULT = "a timestamp outside of the years 1 to 9999"
TIME_FAULT = "a time outside of a day"
"""The reason that messages give for a bad record whose time is outside of a day."""


class NotReadable(ValueError):
    """Raised if the text is not a value of the class. Its message is a few words that complete the sentence "the
    value is ..."."""


def read(text: str, kind: str) -> Value:
    """Returns the text as a value of the class (`keys.encoding.key_class`).  Raises NotReadable."""
    match kind:
        case "string":
            return read_string(text)
        case "number":
            return read_number(text)
        case "decimal":
            return read_decimal(text)
        case "boolean":
            return read_boolean(text)
        case "bytes":
            return read_bytes(text)
        case "date":
            return read_date(text)
        case "timestamp" | "timestamp with zone":
            return in_zone(read_timestamp(text), zoned=kind != "timestamp")
        case "time":
            return read_time(text)
        case "duration":
            return read_duration(text)
    raise NotReadable(f"a text, and class {kind} has no values that text can give")


def show(value: Value) -> str:
    """Returns the text of a value that is not null."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return show_double(value)
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Instant):
        return _show_instant(value)
    if isinstance(value, dt.date):
        return value.isoformat()
    return str(value)


def read_string(text: str) -> str:
    """Returns the text itself.  Raises NotReadable if it is not UTF-8."""
    if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
        raise NotReadable("not UTF-8")
    return text


def read_boolean(text: str) -> bool:
    """Reads the words `true` and `false`."""
    if text in ("true", "false"):
        return text == "true"
    raise NotReadable("not true or false")


def read_number(text: str) -> int | float:
    """Returns an int if the text has only digits and fits into 64 bits, otherwise the nearest double."""
    if len(text) <= LONGEST_NUMBER and WHOLE.fullmatch(text):
        whole = int(text)
        if -(2**63) <= whole < 2**64:
            return whole
    return read_double(text)


def read_double(text: str) -> float:
    """Returns the nearest double; reads NaN and the infinities by name."""
    if (named := _NOT_FINITE.get(text.lower())) is not None:
        return named
    if not NUMBER.fullmatch(text):
        raise NotReadable("not a number")
    value = float(text)
    if math.isinf(value):
        raise NotReadable("beyond the largest double")
    return value


def read_decimal(text: str) -> decimal.Decimal:
    """Reads a number exactly."""
    if not NUMBER.fullmatch(text) or len(text) > LONGEST_NUMBER:
        raise NotReadable("not a number" if len(text) <= LONGEST_NUMBER else "too long for a number")
    with decimal.localcontext(prec=2 * DECIMAL_DIGITS), contextlib.suppress(decimal.InvalidOperation):
        value = decimal.Decimal(text)
        if not value or (value.adjusted() < DECIMAL_DIGITS and value == round(value, FRACTION_DIGITS)):
            return value
    raise NotReadable(f"more digits than a decimal has ({DECIMAL_DIGITS}, {FRACTION_DIGITS} after the point)")


def read_bytes(text: str) -> bytes:
    """Returns the bytes that base64 means, or hexadecimal digits as SQL writes them."""
    try:
        if text[:2] in ("x'", "X'") and text.endswith("'"):
            return bytes.fromhex(text[2:-1])
        return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error) as error:
        raise NotReadable("not bytes in base64, nor like x'00ff'") from error


def read_date(text: str) -> dt.date:
    """Reads a date in ISO 8601."""
    try:
        return dt.date.fromisoformat(text)
    except ValueError as error:
        raise NotReadable("not a date like 2026-01-31, of the years 1 to 9999") from error


def read_timestamp(text: str) -> Instant:
    """Returns the timestamp that ISO 8601 means, with up to nine digits of a second; zoned if the text has an
    offset."""
    parts = _MOMENT.fullmatch(text)
    whole, fraction, zone = parts.groups() if parts else (text, "", "")
    try:
        if "." in whole or "," in whole:  # Python would cut the fraction
            raise ValueError(text)
        moment = dt.datetime.fromisoformat(whole + zone)
        offset = moment.utcoffset()
        passed = moment.replace(tzinfo=None) - (offset or dt.timedelta()) - _EPOCH
        _EPOCH + passed  # an offset may lead out of the years that a calendar has
    except (ValueError, OverflowError) as error:
        raise NotReadable("not a timestamp like 2026-01-31T12:00:00Z, of the years 1 to 9999") from error
    tag = NAIVE if offset is None else ZONED
    return Instant((tag, passed.days * 86_400 + passed.seconds, _nanos(fraction)))


def in_zone(moment: Instant, *, zoned: bool) -> Instant:
    """Returns the moment with or without a time zone.  A zone that is added or removed is UTC."""
    return Instant((ZONED if zoned else NAIVE, moment[1], moment[2]))


def read_time(text: str) -> Instant:
    """Reads a time of day."""
    parts = _TIME.fullmatch(text)
    hours, minutes, seconds = (int(part or 0) for part in parts.groups()[:3]) if parts else (24, 0, 0)
    if parts is None or hours > 23 or minutes > 59 or seconds > 59:
        raise NotReadable("not a time like 12:00:00.5")
    return Instant((TIME, hours * 3600 + minutes * 60 + seconds, _nanos(parts[4] or "")))


def read_duration(text: str) -> Instant:
    """Reads a duration in seconds, such as `1.5s`."""
    parts = _DURATION.fullmatch(text)
    if parts is None:
        raise NotReadable("not a duration in seconds, like 1.5s")
    ticks = int(parts[2]) * 10**9 + _nanos(parts[3] or "")
    seconds, nanos = divmod(-ticks if parts[1] else ticks, 10**9)
    if not -(2**63) <= seconds < 2**63:
        raise NotReadable("more seconds than 64 bits hold")
    return Instant((DURATION, seconds, nanos))


def _nanos(fraction: str) -> int:
    return int(fraction.ljust(9, "0")) if fraction else 0


def show_double(value: float) -> str:
    """Returns the shortest text that reads back as the double."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value)


def _show_instant(value: Instant) -> str:
    tag, seconds, nanos = value
    fraction = f".{nanos:09d}".rstrip("0").rstrip(".")
    if tag == DURATION:
        ticks = seconds * 10**9 + nanos
        whole, part = divmod(abs(ticks), 10**9)
        return f"{'-' * (ticks < 0)}{whole}" + f".{part:09d}".rstrip("0").rstrip(".") + "s"
    if tag == TIME:
        minutes, second = divmod(seconds, 60)
        return f"{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}{fraction}"
    return (_EPOCH + dt.timedelta(seconds=seconds)).isoformat() + fraction + ("Z" if tag == ZONED else "")
