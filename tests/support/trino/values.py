"""Converts values of Trino's client protocol to plain Python values; only this module knows what each type
becomes.

An answer is JSON: rows are lists, and each column has a signature of its type. In tables of Iceberg Trino has
no integers of 8 or 16 bits, and its 32-bit floats come as the shortest decimals that identify them; nothing
else is lost. A type that is not listed here raises KeyError.
"""

from __future__ import annotations

import base64
import datetime as dt
import struct
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any


def _real(value: Any) -> float:
    number: float = struct.unpack("f", struct.pack("f", float(value)))[0]
    return number


def _instant(text: str) -> dt.datetime:
    """Converts an instant to a time of UTC; sessions of the tests have no other zone."""
    moment, zone = text.rsplit(" ", 1)
    assert zone == "UTC", text
    return dt.datetime.fromisoformat(moment).replace(tzinfo=dt.UTC)


_SCALARS: dict[str, Callable[[Any], Any]] = {
    "boolean": bool,
    "integer": int,
    "bigint": int,
    "real": _real,
    "double": float,  # NaN and the infinities are texts
    "decimal": Decimal,
    "varchar": str,
    "varbinary": base64.b64decode,
    "date": dt.date.fromisoformat,
    "time": dt.time.fromisoformat,
    "timestamp": dt.datetime.fromisoformat,
    "timestamp with time zone": _instant,
}


def plain(value: Any, signature: Mapping[str, Any]) -> Any:
    """Converts a value of the answer: records become dictionaries, maps become lists of pairs."""
    if value is None:
        return None
    inner = [argument["value"] for argument in signature["arguments"]]
    match signature["rawType"]:
        case "row":
            return {
                part["fieldName"]["name"]: plain(member, part["typeSignature"])
                for part, member in zip(inner, value, strict=True)
            }
        case "array":
            return [plain(member, inner[0]) for member in value]
        case "map":
            return [(plain(key, inner[0]), plain(member, inner[1])) for key, member in value.items()]
        case scalar:
            return _SCALARS[scalar](value)
