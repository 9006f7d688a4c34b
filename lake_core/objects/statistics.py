"""Statistics of an object's columns, for pruning: nulls and bounds.

Bounds are in the encoding of keys (ascending), so that every type compares the same way.  Long bounds are cut so
that the low one stays below all values and the high one above.  NaN is in no bound, and records and lists have
none.
"""

from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.compute as pc

from lake_core.errors import InvalidInput
from lake_core.keys.encoding import encode_value, from_scalar, key_class
from lake_core.records import Column
from lake_core.values.types import is_json

LONGEST_BOUND = 64


def column_statistics(table: pa.Table) -> tuple[Column, ...]:
    """One Column a field."""
    return tuple(_column(field, column) for field, column in zip(table.schema, table.columns, strict=True))


def unite_statistics(known: tuple[Column, ...], more: tuple[Column, ...]) -> tuple[Column, ...]:
    """The statistics of two sets of records together; both have the same fields, or `known` has none yet."""
    return tuple(_unite(a, b) for a, b in zip(known, more, strict=True)) if known else more


def _unite(a: Column, b: Column) -> Column:
    """Two statistics of one field as one.  A part without bounds has only nulls or NaN, or a type without order."""
    lows = [c.low for c in (a, b) if c.low is not None]
    highs = [c.high for c in (a, b) if c.high is not None]
    return Column(a.name, a.nulls + b.nulls, min(lows, default=None), max(highs, default=None))


def _column(field: pa.Field, column: pa.ChunkedArray) -> Column:
    nulls = column.null_count
    if is_json(field) or not _is_ordered(field.type) or nulls == len(column):
        return Column(field.name, nulls)
    bounds = pc.min_max(column)
    if pa.types.is_floating(field.type) and math.isnan(bounds["min"].as_py()):  # nothing but NaN
        return Column(field.name, nulls)
    low, high = _bound(bounds["min"]), _bound(bounds["max"])
    if len(low) > LONGEST_BOUND:
        low = low[:LONGEST_BOUND]
    if len(high) > LONGEST_BOUND:
        high = _above(high[:LONGEST_BOUND])
    return Column(field.name, nulls, low, high)


def _bound(value: pa.Scalar) -> bytes:
    """The encoded value; of a long text only its beginning, so that many megabytes are not copied."""
    if not (pa.types.is_string(value.type) or pa.types.is_binary(value.type)):
        return encode_value(from_scalar(value))
    raw = value.as_buffer()
    if raw.size <= LONGEST_BOUND:
        return encode_value(from_scalar(value))
    # cut bytes may end within a character, so text is encoded as bytes under its own tag
    tag = encode_value("" if pa.types.is_string(value.type) else b"")[:1]
    return tag + encode_value(raw[: LONGEST_BOUND + 1].to_pybytes())[1:]


def _above(cut: bytes) -> bytes:
    """The smallest bytes above everything that begins with `cut`; there are, since a tag is never 0xff."""
    kept = cut.rstrip(b"\xff")
    return kept[:-1] + bytes((kept[-1] + 1,))


def _is_ordered(kind: pa.DataType) -> bool:
    try:
        return key_class(kind) not in ("null", "duration", "time")
    except InvalidInput:
        return False
