"""Converts Arrow arrays to columns of ZNG values, by numpy and Arrow: the inverse of `to_arrow`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lake_core.errors import Corrupt, InvalidInput
from log_lake.columns.arrays import Ints
from log_lake.columns.nested import Items
from log_lake.zng.addresses import bytes_bodies, ip_bodies, net_bodies, pieces_of
from log_lake.zng.arrow_types import arrow_only, zng_schema
from log_lake.zng.columns import Column, Leaf, ListColumn, RecordColumn, UnionColumn, encoded, nulls
from log_lake.zng.rows import Batch
from log_lake.zng.slices import (
    Slices,
    body_values,
    fixed_values,
    interleaved,
    made,
    signed_values,
    unsigned_values,
)
from log_lake.zng.text import type_text
from log_lake.zng.type_values import read_type_value
from log_lake.zng.types import (
    BOOL,
    BSTRING,
    ERROR,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    IP,
    NET,
    NULL,
    SIGNED,
    TYPE,
    UNSIGNED,
    Array,
    Enum,
    Map,
    Named,
    Record,
    Type,
    Union,
    plain,
)

_FLOATS: dict[Type, tuple[int, Any]] = {
    FLOAT16: (2, np.uint16),
    FLOAT32: (4, np.uint32),
    FLOAT64: (8, np.uint64),
}


def batch_of_tables(batches: list[pa.RecordBatch], kinds: Ints | None = None) -> Batch:
    """Returns the records of several types as one batch.  `kinds` has the type of each record, in order; without
    it, all records of the first type come first, then those of the second, and so on.

    Raises InvalidInput for types that ZNG cannot hold.
    """
    types = [zng_schema(batch.schema) for batch in batches]
    columns: list[Column] = []
    for kind, batch in zip(types, batches, strict=True):
        fields = tuple(
            from_arrow(child, array) for child, array in zip(plain(kind).children, batch.columns, strict=True)
        )
        columns.append(RecordColumn(np.ones(batch.num_rows, np.bool_), fields))
    if kinds is None:
        kinds = np.repeat(np.arange(len(batches)), [batch.num_rows for batch in batches])
    return Batch(types, kinds, columns)


def from_arrow(kind: Type, array: pa.Array) -> Column:
    """Returns the values as a column of type `kind`, which must be the type of the array's field
    (`arrow_types.zng_type`)."""
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
    if isinstance(kind, Named):
        if arrow_only(kind) is not None:
            array = _from_only(array)
        return from_arrow(kind.target, array)
    match kind:
        case Record():
            return _records(kind, array)
        case Array():
            return _lists(kind, array)
        case Union():
            return _unions(kind, array)
        case Map():
            return Leaf(_maps(kind, array))
        case Enum():
            return Leaf(_enums(kind, array))
    return Leaf(_values(kind, array))


def _valid(array: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(array.is_valid()) if array.null_count else np.ones(len(array), np.bool_)


def _records(kind: Record, array: pa.Array) -> Column:
    valid = _valid(array)
    arrays = [array.field(at) for at in range(array.type.num_fields)]
    if array.null_count:
        present = pa.array(np.flatnonzero(valid))
        arrays = [values.take(present) for values in arrays]
    fields = tuple(from_arrow(child, values) for child, values in zip(kind.children, arrays, strict=True))
    return RecordColumn(valid, fields)


def _lists(kind: Array, array: pa.Array) -> Column:
    if not pa.types.is_list(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    items = Items(array)
    lengths = np.diff(np.asarray(items.offsets)).astype(np.int64)
    lengths[~_valid(array)] = -1
    return ListColumn(lengths, from_arrow(kind.inner, items.values))


def _unions(kind: Union, array: pa.Array) -> Column:
    count = len(kind.children)
    if not len(array):  # there may be no memory
        return nulls(kind, 0)
    _, code_bytes, offset_bytes = array.buffers()[:3]  # `type_codes` and `offsets` of a slice are not its own
    codes = np.frombuffer(code_bytes, np.int8, len(array), offset=array.offset).astype(np.int64)
    offsets = np.frombuffer(offset_bytes, np.int32, len(array), offset=4 * array.offset)
    columns = []
    for code, child in enumerate(kind.children):
        at = offsets[codes == code]
        columns.append(from_arrow(child, array.field(code).take(pa.array(at))))
    return UnionColumn(np.where(codes == count, -1, codes), tuple(columns))


def _maps(kind: Map, array: pa.Array) -> Slices:
    items = Items(array)
    keys, values = items.entries
    key_kind, value_kind = kind.children
    if plain(key_kind) is NULL and len(keys):
        raise InvalidInput(f"a map of type <{type_text(kind)}> that is not empty")
    parts = [
        encoded(key_kind, from_arrow(key_kind, keys)),
        encoded(value_kind, from_arrow(value_kind, values)),
    ]
    data, bounds = interleaved([part.tagged() for part in parts])
    offsets = bounds[np.asarray(items.offsets)]
    return body_values((made(data), offsets[:-1], np.diff(offsets)), _valid(array), container=True)


def _enums(kind: Enum, array: pa.Array) -> Slices:
    codes = pc.index_in(array, pa.array(kind.symbols, pa.string()))
    valid = _valid(array)
    if codes.null_count > array.null_count:
        unknown = array.filter(pc.and_(array.is_valid(), codes.is_null()))[0]
        raise InvalidInput(f"{unknown.as_py()!r} is no symbol of <{type_text(kind)}>")
    return unsigned_values(np.asarray(codes.fill_null(0)).astype(np.uint64), valid)


def _values(kind: Type, array: pa.Array) -> Slices:
    valid = _valid(array)
    if kind is NULL:
        column = nulls(NULL, len(array))
        assert isinstance(column, Leaf)
        return column.slices
    if kind in UNSIGNED:
        return unsigned_values(_raw(array, array.type.to_pandas_dtype()).astype(np.uint64), valid)
    if kind in SIGNED:
        integers = array.type.to_pandas_dtype() if pa.types.is_integer(array.type) else np.int64
        return signed_values(_raw(array, integers).astype(np.int64), valid)
    if kind in _FLOATS:
        if kind is FLOAT16 and pa.types.is_float32(array.type):  # its stored form
            array = array.cast(pa.float16())
        width, word = _FLOATS[kind]
        return fixed_values(_raw(array, word).astype(np.uint64), width, valid)
    if kind is BOOL:
        return fixed_values(np.asarray(array.fill_null(False)).astype(np.uint64), 1, valid)
    if kind in _BODIES:
        array = _BODIES[kind](array)
    return body_values(pieces_of(array), valid)


def _type_bodies(array: pa.Array) -> pa.Array:
    for body in array.unique().drop_null().to_pylist():
        try:
            read_type_value(body, "")
        except Corrupt:
            raise InvalidInput(f"the bytes 0x{body[:20].hex()} are no type value") from None
    return array


_BODIES: dict[Type, Callable[[pa.Array], pa.Array]] = {
    TYPE: _type_bodies,
    BSTRING: bytes_bodies,
    ERROR: bytes_bodies,
    IP: ip_bodies,
    NET: net_bodies,
}


def _raw(array: pa.Array, number: Any) -> npt.NDArray[Any]:
    """Returns the numbers of an array as memory has them, with 0 for each null."""
    if not len(array):  # there may be no memory
        return np.zeros(0, number)
    numbers = np.frombuffer(
        array.buffers()[1], number, len(array), offset=np.dtype(number).itemsize * array.offset
    )
    return np.where(_valid(array), numbers, 0).astype(number) if array.null_count else numbers


def _from_only(array: pa.Array) -> pa.Array:
    """Converts values of a type that only Arrow has to integers or texts."""
    kind = array.type
    if pa.types.is_decimal(kind):
        return array.cast(pa.string())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return array
    return array.view(pa.int32() if kind.bit_width == 32 else pa.int64())
