"""Converts columns of ZNG values to Arrow arrays, by numpy and Arrow; `arrow_types` maps the types.

Raises Corrupt if the bytes of a value are not valid for its type: a number too large for its width, a float of
three bytes, text that is not UTF-8, an enum beyond its symbols, a type value that is not a type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lake_core.errors import Corrupt, InvalidInput
from log_lake.columns.arrays import Mask
from log_lake.zng.addresses import bytes_texts, ip_texts, net_texts
from log_lake.zng.arrow_types import arrow_only, arrow_schema, arrow_type
from log_lake.zng.columns import (
    Column,
    ListColumn,
    RecordColumn,
    UnionColumn,
    map_entries,
    of_bodies,
)
from log_lake.zng.rows import Batch
from log_lake.zng.slices import Slices, binary_array
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
    Enum,
    Map,
    Named,
    Type,
    plain,
)

_FLOATS: dict[Type, tuple[Any, Any]] = {
    FLOAT16: (np.uint16, np.float16),
    FLOAT32: (np.uint32, np.float32),
    FLOAT64: (np.uint64, np.float64),
}


def record_batches(batch: Batch) -> list[pa.RecordBatch]:
    """Returns one table per type of the batch; `batch.kinds` tells in which order their values come."""
    return [record_batch(kind, column) for kind, column in zip(batch.types, batch.columns, strict=True)]


def record_batch(kind: Type, column: Column) -> pa.RecordBatch:
    """Returns the records of one type.  Raises InvalidInput if a value is null or not a record."""
    schema = arrow_schema(kind)
    assert isinstance(column, RecordColumn)
    if not column.valid.all():
        raise InvalidInput(f"a top-level null of type <{type_text(kind)}>: a table has no form for it")
    arrays = [
        to_arrow(child, field) for child, field in zip(plain(kind).children, column.fields, strict=True)
    ]
    if not arrays:
        return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), len(column), [None]))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def to_arrow(kind: Type, column: Column) -> pa.Array:
    """Returns the values as an array of `arrow_type(kind)`."""
    if isinstance(kind, Named):
        only = arrow_only(kind)
        array = to_arrow(kind.target, column)
        return array if only is None else _as_only(array, only)
    match column:
        case RecordColumn():
            arrays = [
                to_arrow(child, field) for child, field in zip(kind.children, column.fields, strict=True)
            ]
            return _struct(arrow_type(kind), arrays, column.valid)
        case ListColumn():
            values = to_arrow(kind.children[0], column.values)
            return pa.ListArray.from_arrays(
                _offsets(np.maximum(column.lengths, 0)),
                values,
                type=arrow_type(kind),
                mask=_mask(column.valid),
            )
        case UnionColumn():
            return _union(kind, column)
    return _leaf(kind, column.slices)


def _mask(valid: Mask) -> pa.Array | None:
    return None if valid.all() else pa.array(~valid)


def _offsets(lengths: npt.NDArray[np.int64]) -> pa.Array:
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.array(offsets)


def _struct(kind: pa.DataType, arrays: list[pa.Array], valid: Mask) -> pa.Array:
    """Makes an array of records.  A field is null wherever its record is null."""
    if not arrays:
        return pa.Array.from_buffers(kind, len(valid), [_validity(valid)])
    if valid.all():
        return pa.StructArray.from_arrays(arrays, fields=list(kind))
    at = pa.array(np.maximum(np.cumsum(valid) - 1, 0), mask=~valid)
    return pa.StructArray.from_arrays([a.take(at) for a in arrays], fields=list(kind), mask=_mask(valid))


def _validity(valid: Mask) -> pa.Buffer | None:
    return None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))


def _union(kind: Type, column: UnionColumn) -> pa.Array:
    """Makes a dense union; one more type in it stands for nulls of the union itself."""
    count = len(column.columns)
    codes = np.where(column.selector < 0, count, column.selector).astype(np.int8)
    offsets = np.zeros(len(codes), np.int32)
    for code in range(count + 1):
        rows = codes == code
        offsets[rows] = np.arange(np.count_nonzero(rows))
    arrays = [to_arrow(child, values) for child, values in zip(kind.children, column.columns, strict=True)]
    arrays.append(pa.nulls(int(np.count_nonzero(codes == count))))
    union = pa.UnionArray.from_dense(pa.array(codes), pa.array(offsets), arrays)
    return pa.Array.from_buffers(
        arrow_type(kind),
        len(codes),
        [None, *union.buffers()[1:3]],
        children=[union.field(a) for a in range(count + 1)],
    )


def _leaf(kind: Type, slices: Slices) -> pa.Array:
    if isinstance(kind, Map):
        return _map(kind, slices)
    if isinstance(kind, Enum):
        return _enum(kind, slices)
    target = arrow_type(kind)
    if kind in UNSIGNED or kind in SIGNED:
        return _integers(kind, slices, target)
    if kind in _FLOATS:
        word, number = _FLOATS[kind]
        _of_length(slices, np.dtype(number).itemsize, f"a {kind.label}")
        return _numbers(slices.unsigned().astype(word).view(number), slices.valid, target)
    if kind is BOOL:
        _of_length(slices, 1, "a bool")
        words = slices.unsigned()
        _check(slices, words > 1, "a bool that is neither 0 nor 1")
        return pa.array(words == 1, mask=None if slices.valid.all() else ~slices.valid)
    if kind is NULL:
        _check(slices, slices.valid, "a value of type null")
        return pa.nulls(len(slices))
    if kind in _TEXTS:
        return _TEXTS[kind](slices)
    try:
        array = binary_array(slices, target)
    except pa.ArrowInvalid:
        raise slices.buffer.corrupt(_not_text(slices), f"a {kind.label} that is not UTF-8") from None
    if kind is TYPE:
        _check_types(slices, array)
    return array


_TEXTS: dict[Type, Callable[[Slices], pa.Array]] = {
    BSTRING: bytes_texts,
    ERROR: bytes_texts,
    IP: ip_texts,
    NET: net_texts,
}


def _not_text(slices: Slices) -> int:
    for start, length in zip(slices.start.tolist(), slices.length.tolist(), strict=True):
        try:
            slices.buffer.data[start : start + max(length, 0)].tobytes().decode()
        except UnicodeDecodeError:
            return int(start)
    return 0


def _check_types(slices: Slices, array: pa.Array) -> None:
    distinct = array.dictionary_encode()
    for code, body in enumerate(distinct.dictionary.to_pylist()):
        try:
            read_type_value(body, "")
        except Corrupt:
            wrong = np.asarray(distinct.indices.fill_null(-1)) == code
            _check(slices, wrong, "bytes that are no type value")


def _check(slices: Slices, wrong: Mask, what: str) -> None:
    if wrong.any():
        raise slices.buffer.corrupt(slices.start[int(np.argmax(wrong))], what)


def _of_length(slices: Slices, length: int, what: str) -> None:
    wrong = slices.valid & (slices.length != length)
    if wrong.any():
        _check(slices, wrong, f"{what} of {slices.length[int(np.argmax(wrong))]:,} bytes")


def _integers(kind: Type, slices: Slices, target: pa.DataType) -> pa.Array:
    numbers: npt.NDArray[Any] = slices.signed() if kind in SIGNED else slices.unsigned()
    narrow = target.to_pandas_dtype() if pa.types.is_integer(target) else np.int64
    narrowed = numbers.astype(narrow)
    if narrow not in (np.int64, np.uint64):
        _check(slices, narrowed != numbers, f"a number that is no {kind.label}")
    return _numbers(narrowed, slices.valid, target)


def _numbers(numbers: npt.NDArray[Any], valid: Mask, target: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(
        target, len(numbers), [_validity(valid), pa.py_buffer(np.ascontiguousarray(numbers))]
    )


def _enum(kind: Enum, slices: Slices) -> pa.Array:
    codes = slices.unsigned()
    _check(
        slices, slices.valid & (codes >= len(kind.symbols)), f"an enum beyond its {len(kind.symbols)} symbols"
    )
    if len(set(kind.symbols)) < len(kind.symbols):
        raise InvalidInput(
            f"an enum that has a symbol twice: <{type_text(kind)}>; Arrow could not tell them apart"
        )
    mask = None if slices.valid.all() else ~slices.valid
    return pa.array(kind.symbols, pa.string()).take(pa.array(codes.astype(np.int64), mask=mask))


def _map(kind: Map, slices: Slices) -> pa.Array:
    counts, keys, values = map_entries(slices)
    key_kind, value_kind = kind.children
    key_array = to_arrow(key_kind, of_bodies(key_kind, keys))
    if key_array.null_count:
        raise InvalidInput(f"a map of type <{type_text(kind)}> with a null key: Arrow has no form for it")
    target = arrow_type(kind)
    value_array = to_arrow(value_kind, of_bodies(value_kind, values))
    return pa.MapArray.from_arrays(
        _offsets(counts),
        key_array.cast(target.key_type) if pa.types.is_null(key_array.type) else key_array,
        value_array,
        type=target,
        mask=_mask(slices.valid),
    )


def _as_only(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Converts integers or texts to values of a type that only Arrow has: the inverse of
    `from_arrow._from_only`."""
    if pa.types.is_string(target):
        return array
    try:
        if pa.types.is_decimal(target):
            return array.cast(target)
        return array.cast(pa.int32() if target.bit_width == 32 else pa.int64()).view(target)
    except pa.ArrowInvalid as error:
        raise InvalidInput(f"a value that is no {target}: {error}") from error
