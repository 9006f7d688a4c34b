"""Comparisons with fields of JSON: a value that became JSON compares as what it was.

A tombstone may be older than the objects that hold the records it covers: a compaction unites objects, and a field
that was a number here and a string there becomes JSON text (`objects.schema`).  The comparison must still cover the
same records, so the text is read back: a number as a number or decimal, a string as a string or, compared with a
date, a timestamp or bytes, as one of these.  Anything else does not compare: null.

Each distinct text of a batch is read once, in Python.
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import json
from typing import Any

import pyarrow as pa

from lake_core.conditions.literals import NotReadable, read_decimal, read_number, read_timestamp
from lake_core.keys.encoding import Value, class_of, decode_value, encode_value
from lake_core.records.conditions import OPS, Compare, In, IsNull, Path


def in_json(leaf: Compare | In | IsNull, column: pa.Array | pa.ChunkedArray, inside: Path) -> pa.Array:
    """True, false or null for each JSON text; `inside` is the path into its objects."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    truths = [_truths(leaf, chunk, inside) for chunk in chunks]
    return pa.concat_arrays(truths) if truths else pa.array([], pa.bool_())


def _truths(leaf: Compare | In | IsNull, texts: pa.Array, inside: Path) -> pa.Array:
    encoded = texts.dictionary_encode(null_encoding="encode")
    values = [_value(text, inside) for text in encoded.dictionary.to_pylist()]
    truths = [v is None for v in values] if isinstance(leaf, IsNull) else _compared(leaf, values)
    return pa.array(truths, pa.bool_()).take(encoded.indices)


def _value(text: str | None, inside: Path) -> Any:
    value = None if text is None else json.loads(text, parse_int=_Number, parse_float=_Number)
    for name in inside:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _compared(leaf: Compare | In, values: list[Any]) -> list[bool | None]:
    stored = frozenset(leaf.values if isinstance(leaf, In) else (leaf.value,))
    wanted = class_of(decode_value(max(stored)))  # null is the least
    typed = [None if wanted == "null" else _typed(value, wanted) for value in values]
    known = [None if value is None else encode_value(value) for value in typed]
    if isinstance(leaf, Compare):
        return [None if data is None else OPS[leaf.op](data, leaf.value) for data in known]
    otherwise = None if encode_value(None) in stored else False
    return [None if data is None else data in stored or otherwise for data in known]


class _Number(str):
    """The digits of a JSON number."""

    __slots__ = ()


def _typed(value: Any, wanted: str) -> Value:
    """The JSON value as one of the class; None where it is none."""
    try:
        match wanted, value:
            case "number", _Number():
                number = read_number(value)
                return float(value) if isinstance(number, decimal.Decimal) else number
            case "decimal", _Number():
                return read_decimal(value)
            case (_, _Number()):
                return None
            case ("boolean", bool()) | ("string", str()):
                return value
            case "date", str():
                return dt.date.fromisoformat(value)
            case "timestamp" | "timestamp with zone", str():
                moment = read_timestamp(value)
                return moment if class_of(moment) == wanted else None
            case "bytes", str():
                return base64.b64decode(value, validate=True)
    except (NotReadable, ValueError):
        return None
    return None
