"""Values as a condition writes them.

    null  true  false  'text'  x'00ff'
    12           an integer of 64 bits
    12.5         a decimal, exactly as written; so is a whole number beyond 64 bits
    12.5e0       a double; double 'nan', double 'inf', double '-inf'
    date '2026-01-31'
    timestamp '2026-01-31T12:00:00.123456789Z'     with an offset an instant, without one a time without zone
    time '12:00:00.5'     duration '1.5s'

`texts.value` reads the text between the quotes.  `read_*` raise NotReadable, which says in a few words why.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math

from lake_core.keys.encoding import DURATION, TIME, Instant, Value
from lake_core.records.conditions import check_value
from log_lake.texts.value import NotReadable, read_decimal, read_double, show


def read_number(text: str) -> Value:
    """Returns the number that a text means: an int; a float if the text has an exponent; otherwise a
    Decimal."""
    if "e" in text.lower():
        try:
            return read_double(text)
        except NotReadable as error:
            raise NotReadable("too large for a double; write double 'inf'") from error
    if len(text) < 19 and "." not in text:
        return int(text)
    try:
        value = read_decimal(text)
    except NotReadable as error:
        raise NotReadable(f"{error}; with an exponent it is a double (1.5e0)") from error
    return int(value) if "." not in text and -(2**63) <= value < 2**64 else value


def show_literal(data: bytes) -> str:
    """Returns an encoded value as a literal; reading it gives the same bytes."""
    value = check_value(data)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float):
        return _show_double(value)
    if isinstance(value, decimal.Decimal):
        text = format(value, "f")
        return text if "." in text else text + ".0"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, Instant):
        word = {TIME: "time", DURATION: "duration"}.get(value[0], "timestamp")
        return f"{word} '{show(value)}'"
    return f"date '{value.isoformat()}'" if isinstance(value, dt.date) else str(value)


def _show_double(value: float) -> str:
    if not math.isfinite(value):
        return f"double '{str(value).lower()}'"
    text = repr(value)
    return text if "e" in text else text + "e0"


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def read_hex(text: str) -> bytes:
    """Returns the bytes that hexadecimal digits stand for."""
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        raise NotReadable("not bytes in hexadecimal digits, like x'00ff'") from error
