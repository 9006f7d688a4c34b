"""Converts statistics of the lake to bounds of Iceberg.  The lower bound of a column is at or below all its values
in an object, the upper bound at or above them.

The lake stores bounds in the encoding of keys, with long texts cut.  Iceberg wants its own bytes of a value,
and texts of whole characters.  Doubles and floats get no upper bound: Spark treats NaN as greater than every
number, but neither statistics of the lake nor bounds of Iceberg include NaN.  Pure.
"""

from __future__ import annotations

import decimal

from pyiceberg import types as T
from pyiceberg.conversions import to_bytes

from lake_core.keys.encoding import Instant, Value
from log_lake.objects.statistics import exact_value

_LAST_CHARACTER = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


def lower_bound(kind: T.PrimitiveType, low: bytes | None) -> bytes | None:
    """Returns Iceberg's lower bound, from a low bound in the encoding of keys; None if there is none."""
    if low is None:
        return None
    value = exact_value(low)
    if value is not None:
        return _bytes(kind, value)
    if isinstance(kind, T.StringType):
        return _beginning(low).decode(errors="ignore").encode()
    return _beginning(low) if isinstance(kind, T.BinaryType) else None


def upper_bound(kind: T.PrimitiveType, high: bytes | None) -> bytes | None:
    """Returns Iceberg's upper bound, from a high bound in the encoding of keys; None if there is none."""
    if high is None or isinstance(kind, T.FloatType | T.DoubleType):
        return None
    value = exact_value(high)
    if value is not None:
        return _bytes(kind, value)
    begins = _beginning(
        high[:-1] + bytes((high[-1] - 1,))
    )  # the lake added 1 to what the greatest begins with
    if isinstance(kind, T.StringType):
        return _above_text(begins)
    return _above_bytes(begins) if isinstance(kind, T.BinaryType) else None


def _beginning(cut: bytes) -> bytes:
    """Returns the beginning of a text or of bytes, from an encoding without its end.

    A final 0 byte is left out, because it may be half of an escape of two bytes.
    """
    return cut[1:].removesuffix(b"\0").replace(b"\0\xff", b"\0")


def _above_text(begins: bytes) -> bytes | None:
    """Returns a text that is greater than all texts with this beginning, in whole characters; None if there is
    none."""
    characters = begins.decode(errors="ignore")
    while characters:  # bounded by its length
        after = ord(characters[-1]) + 1
        if after <= _LAST_CHARACTER:
            after = _SURROGATES.stop if after in _SURROGATES else after
            return (characters[:-1] + chr(after)).encode()
        characters = characters[:-1]
    return None


def _above_bytes(begins: bytes) -> bytes | None:
    kept = begins.rstrip(b"\xff")
    return kept[:-1] + bytes((kept[-1] + 1,)) if kept else None


def _bytes(kind: T.PrimitiveType, value: Value) -> bytes:
    """Returns a value in Iceberg's encoding."""
    if isinstance(value, Instant):
        value = value[1] * 1_000_000 + value[2] // 1_000
    elif isinstance(kind, T.FloatType | T.DoubleType):
        value = float(value) or -0.0  # which Iceberg sorts before 0.0
    elif isinstance(kind, T.DecimalType):
        with decimal.localcontext(prec=80):
            value = decimal.Decimal(value).quantize(decimal.Decimal(1).scaleb(-kind.scale))
    encoded: bytes = to_bytes(kind, value)
    return encoded
