"""Values as a condition writes them.

    null  true  false  'text'  x'00ff'
    12           an integer of 64 bits
    12.5         a decimal, exactly as written; so is a whole number beyond 64 bits
    12.5e0       a double; double 'nan', double 'inf', double '-inf'
    date '2026-01-31'
    timestamp '2026-01-31T12:00:00.123456789Z'     with an offset an instant, without one a time without zone

`read_*` raise NotReadable, which says in a few words what is wrong.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import decimal
import math
import re

from lake_core.keys.encoding import Instant, Value, show_value
from lake_core.records.conditions import check_value

_FRACTION = 38
_DIGITS = 76
_EPOCH = dt.datetime(1970, 1, 1)
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_MOMENT = re.compile(r"([^.]*:[^.]*)\.([0-9]{1,9})(|Z|z|[+-][0-9]{2}:?[0-9]{2})")


class NotReadable(ValueError):
    """The text is not a value of that kind."""


def read_number(text: str) -> Value:
    """An int, a float where it has an exponent, else a Decimal."""
    if "e" in text.lower():
        double = float(text)
        if math.isinf(double):
            raise NotReadable("too large for a double; write double 'inf'")
        return double
    if len(text) < 19 and "." not in text:
        return int(text)
    value = read_decimal(text)
    return int(value) if "." not in text and -(2**63) <= value < 2**64 else value


def read_decimal(text: str) -> decimal.Decimal:
    """An exact decimal, of at most 76 digits, 38 of them in the fraction."""
    if not _NUMBER.fullmatch(text):
        raise NotReadable("not a number")
    with decimal.localcontext(prec=2 * _DIGITS), contextlib.suppress(decimal.InvalidOperation):
        value = decimal.Decimal(text)
        if not value or (value.adjusted() < _DIGITS and value == round(value, _FRACTION)):
            return value
    raise NotReadable(
        f"more digits than a decimal has ({_DIGITS}, {_FRACTION} after the point); "
        "with an exponent it is a double (1.5e0)"
    )


def read_double(text: str) -> float:
    """The doubles that have no digits, too."""
    if text.lower() in ("nan", "inf", "-inf") or (_NUMBER.fullmatch(text) and math.isfinite(float(text))):
        return float(text)
    raise NotReadable("not a double: a number, or nan, inf, -inf")


def read_text(text: str) -> str:
    """As it is."""
    if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
        raise NotReadable("not UTF-8")
    return text


def read_bytes(text: str) -> bytes:
    """From hexadecimal digits."""
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        raise NotReadable("not bytes in hexadecimal digits, like x'00ff'") from error


def read_date(text: str) -> dt.date:
    """From ISO 8601."""
    try:
        return dt.date.fromisoformat(text)
    except ValueError as error:
        raise NotReadable("not a date like 2026-01-31") from error


def read_timestamp(text: str) -> Instant:
    """From ISO 8601, with up to nine digits of a second; with an offset an instant, else without zone."""
    parts = _MOMENT.fullmatch(text)
    whole, fraction, zone = parts.groups() if parts else (text, "", "")
    try:
        if "." in whole or "," in whole:  # Python would cut the fraction
            raise ValueError(text)
        moment = dt.datetime.fromisoformat(whole + zone)
        offset = moment.utcoffset()
        passed = moment.replace(tzinfo=None) - (offset or dt.timedelta()) - _EPOCH
    except (ValueError, OverflowError) as error:
        raise NotReadable("not a timestamp like 2026-01-31T12:00:00Z, of the years 1 to 9999") from error
    tag = 0x08 if offset is None else 0x09
    return Instant((tag, passed.days * 86_400 + passed.seconds, int(fraction.ljust(9, "0"))))


def show_literal(data: bytes) -> str:
    """An encoded value as it is written; reading it gives the same bytes."""
    value = check_value(data)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float):
        return _show_double(value)
    if isinstance(value, decimal.Decimal):
        text = format(value, "f")
        return text if "." in text else text + ".0"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, Instant):
        return f"timestamp '{show_value(value)}'"
    return f"date '{value.isoformat()}'" if isinstance(value, dt.date) else str(value)


def _show_double(value: float) -> str:
    if not math.isfinite(value):
        return f"double '{value}'"
    text = repr(value)
    return text if "e" in text else text + "e0"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
