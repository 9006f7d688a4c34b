"""Values of a field as numbers of 64 bits: equal for values that are equal in conditions, whatever their type.

They are the numbers of content sums (`log_lake.content`, decision 454), mixed once more, so that each bit depends
on every bit of the value.  A value of a condition gets its number in the same way as a value of a column.
"""

from __future__ import annotations

import datetime as dt
import decimal
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake_core.conditions.fields import find_field, resolve
from lake_core.errors import InvalidInput
from lake_core.keys.encoding import DURATION, NAIVE, TIME, ZONED, Instant, Value, decode_value, key_class
from lake_core.records.conditions import Path
from lake_core.values.types import is_json
from log_lake.content.scalars import ValueHashes, mixed, of_micros
from log_lake.content.values import value_hashes
from log_lake.indexes.bloom import Numbers

_CLOCKS = {NAIVE: "timestamp", ZONED: "timestamp with zone", TIME: "time", DURATION: "duration"}

CACHED = 1 << 12
"""Values of conditions whose numbers are kept: a scan asks for the same ones for each object."""


def indexed_field(schema: pa.Schema, written: str) -> tuple[Path, pa.Field] | None:
    """Returns the path and the field that a rule means in an object of this schema.

    Returns None if the object has no such field, or if its type has no index: JSON, lists, maps and records.
    """
    path = resolve(schema, (written,))
    if path is None:
        return None
    field, rest = find_field(schema, path)
    if field is None or rest or is_json(field):
        return None
    try:
        is_null = key_class(field.type) == "null"
    except InvalidInput:
        return None
    return None if is_null else (path, field)


def numbers_of(table: pa.Table, path: Path, field: pa.Field) -> Numbers:
    """Returns the numbers of the values at a path.  A number may be there more than once; nulls have none."""
    parts: list[ValueHashes] = []
    for chunk in values_at(table, path).chunks:
        array = chunk.drop_null()
        if len(array):
            parts.append(hashed(array, field))
    return np.concatenate(parts) if parts else np.zeros(0, np.uint64)


def hashed(array: pa.Array, field: pa.Field) -> Numbers:
    """Returns the number of each value of an array without nulls."""
    return mixed(value_hashes(array, field))


def values_at(table: pa.Table, path: Path) -> pa.ChunkedArray:
    """Returns the values at a path, one for each record."""
    column = table.column(path[0])
    return pc.struct_field(column, list(path[1:])) if len(path) > 1 else column


@lru_cache(maxsize=CACHED)
def number_of(encoded: bytes) -> int:
    """The number of a value in the encoding of keys, which is not null."""
    return int(mixed(_hash_of(decode_value(encoded)))[0])


def _hash_of(value: Value) -> ValueHashes:
    if isinstance(value, Instant):
        tag, seconds, nanos = value
        micros = np.array([(seconds * 10**6 + nanos // 1_000) % 2**64], np.uint64).view(np.int64)
        return of_micros(micros, np.array([nanos % 1_000], np.int64), _CLOCKS[tag])
    array = pa.array([value], _type_of(value))
    return value_hashes(array, pa.field("", array.type))


def _type_of(value: Value) -> pa.DataType | None:
    if isinstance(value, bool):
        return pa.bool_()
    if isinstance(value, int):
        return pa.int64() if value < 2**63 else pa.uint64()
    if isinstance(value, float):
        return pa.float64()
    if isinstance(value, dt.date):
        return pa.date32()
    if isinstance(value, decimal.Decimal):
        return None  # the narrowest that holds it
    return pa.string() if isinstance(value, str) else pa.binary()
