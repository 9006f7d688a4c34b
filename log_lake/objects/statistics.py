"""Computes statistics of an object's columns, by which readers skip objects: nulls and bounds.

Bounds are in the encoding of keys (ascending), so that every type compares the same way.  Long bounds are
shortened so that the low one stays below all values and the high one above.  Bounds leave out NaN, and records
and lists have no bounds.
"""

from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.compute as pc

from lake_core.errors import InvalidInput
from lake_core.keys.encoding import Value, decode_value, encode_value, from_scalar, key_class
from lake_core.records import Column
from lake_core.values.types import is_json

LONGEST_BOUND = 64
"""The most bytes of a stored bound: entries and checkpoints hold two bounds per field and object."""


def column_statistics(table: pa.Table, *, longest: int = LONGEST_BOUND) -> tuple[Column, ...]:
    """Returns the statistics of each field; bounds longer than `longest` bytes are shortened."""
    return tuple(
        _column(field, column, longest) for field, column in zip(table.schema, table.columns, strict=True)
    )


def lying_columns(told: tuple[Column, ...], exact: tuple[Column, ...]) -> list[str]:
    """Compares stored statistics with the exact bounds of the records. Returns a text for each contradiction.

    A field without statistics, or without bounds, is not a fault.
    """
    by_name = {column.name: column for column in exact}
    lies = []
    for column in told:
        true = by_name.get(column.name)
        if true is None:
            lies.append(f"field {column.name!r} is not in the object")
        elif column.nulls != true.nulls:
            lies.append(f"field {column.name!r} has {true.nulls:,} nulls, not {column.nulls:,}")
        elif column.low is not None and true.low is not None and column.low > true.low:
            lies.append(f"field {column.name!r} has values below its low bound")
        elif column.high is not None and true.high is not None and column.high < true.high:
            lies.append(f"field {column.name!r} has values above its high bound")
    return lies


def unite_statistics(earlier: tuple[Column, ...], more: tuple[Column, ...]) -> tuple[Column, ...]:
    """Returns the statistics of two sets of records together.  Both must have the same fields, unless `earlier` is
    empty."""
    return tuple(_unite(a, b) for a, b in zip(earlier, more, strict=True)) if earlier else more


def _unite(a: Column, b: Column) -> Column:
    """Joins two statistics of one field. Statistics without bounds are of nulls or NaN only, or of a type without
    order."""
    lows = [c.low for c in (a, b) if c.low is not None]
    highs = [c.high for c in (a, b) if c.high is not None]
    return Column(a.name, a.nulls + b.nulls, min(lows, default=None), max(highs, default=None))


def _column(field: pa.Field, column: pa.ChunkedArray, longest: int) -> Column:
    nulls = column.null_count
    if is_json(field) or not _is_ordered(field.type) or nulls == len(column):
        return Column(field.name, nulls)
    bounds = pc.min_max(column)
    if pa.types.is_floating(field.type) and math.isnan(bounds["min"].as_py()):  # nothing but NaN
        return Column(field.name, nulls)
    low, high = _bound(bounds["min"], longest), _bound(bounds["max"], longest)
    if len(low) > longest:
        low = low[:longest]
    if len(high) > longest:
        high = _above(high[:longest])
    return Column(field.name, nulls, low, high)


def _bound(value: pa.Scalar, longest: int) -> bytes:
    """Returns the encoded value, or for a long text only its beginning, so that many megabytes are not
    copied."""
    if not (pa.types.is_string(value.type) or pa.types.is_binary(value.type)):
        return encode_value(from_scalar(value))
    raw = value.as_buffer()
    if raw.size <= longest:
        return encode_value(from_scalar(value))
    # cut bytes may end within a character, so text is encoded as bytes under its own tag
    tag = encode_value("" if pa.types.is_string(value.type) else b"")[:1]
    return tag + encode_value(raw[: longest + 1].to_pybytes())[1:]


def _above(cut: bytes) -> bytes:
    """Returns the smallest bytes above everything that begins with `cut`.  They exist, because a tag is never
    0xff."""
    kept = cut.rstrip(b"\xff")
    return kept[:-1] + bytes((kept[-1] + 1,))


def exact_value(bound: bytes) -> Value:
    """Returns the value that a bound encodes.  Returns None if the bound was shortened, so that it has only the
    beginning of a text or of bytes."""
    try:
        return decode_value(bound)
    except InvalidInput:
        return None


def _is_ordered(kind: pa.DataType) -> bool:
    try:
        return key_class(kind) not in ("null", "duration", "time")
    except InvalidInput:
        return False
