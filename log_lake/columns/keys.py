"""Orders whole Arrow columns of keys, many values at once; the order is that of `encoding`.

`sort_order` returns the permutation that sorts records by key and keeps the order of equal keys.
`insertion_points` returns where the records of one sorted table belong in another.  Both turn the columns into
one comparable array.  Each field takes only the bits in which its values differ.  If all fields together need
at most 64 bits, the array has 64-bit integers, otherwise bytes that memcmp compares.  NumPy's stable sort finds
sorted runs, so merging k sorted streams costs about log2(k) comparisons per record.  Such an array can only be
compared within the call that made it; bounds that are kept longer are bytes of `encoding`.

Called by `objects.write` (sorting a load) and by `reading.merge` (merging streams).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lake_core.keys.encoding import encode_value, from_array, from_scalar
from lake_core.keys.spec import PoolKey
from log_lake.columns.arrays import Bytes

"""Big-endian bytes of shape (records, width)."""

_FEW_RUNS = 16
"""With at most so many descents (places where a key is below the one before), NumPy's stable sort is the
fastest."""

_PADDED_STRING = 64
"""Strings up to this length are compared as padded bytes, longer ones by rank."""


@dataclass(frozen=True)
class _Bits:
    """A part of each key, as numbers of `bits` bits."""

    values: npt.NDArray[np.uint64]
    bits: int

    @property
    def as_bytes(self) -> Bytes:
        width = -(-self.bits // 8)
        wide = np.ascontiguousarray(self.values.astype(">u8")).view(np.uint8).reshape(len(self.values), 8)
        return wide[:, 8 - width :]


_Part = _Bits | Bytes


def key_at(table: pa.Table | pa.RecordBatch, row: int, key: PoolKey) -> bytes:
    """Returns the encoded key of one record."""
    return b"".join(
        encode_value(from_scalar(table.column(f.name)[row]), descending=f.descending) for f in key.fields
    )


def keys_at(table: pa.Table, rows: list[int], key: PoolKey) -> list[bytes]:
    """Returns the encoded keys of some records."""
    parts = []
    for f in key.fields:
        column = table.column(f.name).take(pa.array(rows, pa.int64()))
        parts.append([encode_value(v, descending=f.descending) for v in from_array(column)])
    return [b"".join(values) for values in zip(*parts, strict=True)] if parts else [b""] * len(rows)


def sort_order(
    table: pa.Table | pa.RecordBatch, key: PoolKey, *, then: tuple[npt.NDArray[np.uint64], ...] = ()
) -> npt.NDArray[np.int64] | None:
    """Returns the stable permutation that sorts the records by key, then by the arrays of `then`.

    Returns None if the records are already in that order.
    """
    order = _comparable(table, key, then) if table.num_rows > 1 else None
    if order is None:
        return None
    descents = int(np.count_nonzero(np.greater(order[:-1], order[1:])))
    if not descents:
        return None
    return _numbered(order) if descents >= _FEW_RUNS else np.argsort(order, kind="stable")


def _numbered(order: npt.NDArray[np.generic]) -> npt.NDArray[np.int64]:
    """Returns the stable permutation of records that consist of many sorted runs.

    If key and row number together fit into 64 bits, sorting them as one number takes a fifth of the time.
    """
    bits = (len(order) - 1).bit_length()
    if order.dtype != np.uint64 or int(order.max()).bit_length() + bits > 64:
        return np.argsort(order, kind="stable")
    numbered = (order.astype(np.uint64) << np.uint64(bits)) | np.arange(len(order), dtype=np.uint64)
    numbered.sort()
    numbered &= np.uint64((1 << bits) - 1)
    return numbered.view(np.int64)


def insertion_points(
    into: pa.Table, table: pa.Table, key: PoolKey
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Returns two arrays with a value for each record of `table`: the index in `into` at which to insert it, after
    records with an equal key; and whether `into` has a record with its key.

    Both tables must be sorted by key and have the same types.
    """
    rows = into.num_rows
    both = pa.concat_tables([into.select(key.names), table.select(key.names)])
    order = _comparable(both, key, ())
    if order is None:
        return np.full(table.num_rows, rows), np.full(table.num_rows, rows > 0)
    places = np.searchsorted(order[:rows], order[rows:], side="right")
    same = places > 0
    same[same] = order[places[same] - 1] == order[rows:][same]
    return places, same


def _comparable(
    table: pa.Table | pa.RecordBatch, key: PoolKey, then: tuple[npt.NDArray[np.uint64], ...]
) -> npt.NDArray[np.generic] | None:
    """Returns one array that orders the records by key, or None if all keys are equal."""
    parts = [
        part for f in key.fields for part in _column_parts(table.column(f.name), descending=f.descending)
    ]
    parts += [_numbers(array) for array in then]
    parts = [p for p in parts if not isinstance(p, _Bits) or p.bits]
    if not parts:
        return None
    numbers = [p for p in parts if isinstance(p, _Bits)]
    if len(numbers) == len(parts) and sum(p.bits for p in numbers) <= 64:
        packed = numbers[0].values
        for part in numbers[1:]:
            packed = (packed << np.uint64(part.bits)) | part.values
        return packed
    columns = [p.as_bytes if isinstance(p, _Bits) else p for p in parts]
    joined = np.ascontiguousarray(np.concatenate(columns, axis=1) if len(columns) > 1 else columns[0])
    return joined.view(f"S{joined.shape[1]}").reshape(len(joined))


def _numbers(values: npt.NDArray[np.generic]) -> _Bits:
    """Returns integers as bits that keep their order: the distance of each from the smallest one."""
    if not len(values):
        return _Bits(np.zeros(0, np.uint64), 0)
    least = values.min()
    bits = int(values.max()) - int(least)
    # two's complement: the difference is right even where it does not fit the type
    return _Bits(values.astype(np.uint64) - least.astype(np.uint64), bits.bit_length())


def _column_parts(column: pa.ChunkedArray | pa.Array, *, descending: bool) -> list[_Part]:
    """Returns the parts by which a column is sorted: whether the value is null, if any is, and then the
    value."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # combine_chunks of an empty or very large column
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    if pa.types.is_null(array.type):
        return []
    part = _value_part(array)
    valid = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
    ordered: _Part
    if isinstance(part, _Bits):
        numbers = np.uint64((1 << part.bits) - 1) - part.values if descending else part.values
        ordered = _Bits(numbers if valid is None else np.where(valid, numbers, np.uint64(0)), part.bits)
    else:
        padded = ~part if descending else part
        ordered = padded if valid is None else np.where(valid[:, None], padded, np.uint8(0))
    return [ordered] if valid is None else [_Bits(valid.astype(np.uint64), 1), ordered]


def _value_part(array: pa.Array) -> _Part:
    kind = array.type
    if pa.types.is_boolean(kind):
        return _numbers(array.fill_null(False).to_numpy(zero_copy_only=False).astype(np.uint8))
    if pa.types.is_floating(kind):
        return _numbers(_ordered_floats(array.cast(pa.float64())))
    if pa.types.is_integer(kind):
        return _numbers(_numpy(array))
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return _numbers(_numpy(array.view(pa.int32())))
    if (
        pa.types.is_date64(kind)
        or pa.types.is_time64(kind)
        or pa.types.is_timestamp(kind)
        or pa.types.is_duration(kind)
    ):
        return _numbers(_numpy(array.view(pa.int64())))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or _is_bytes(kind):
        return _string_part(array)
    return _ranks(array)


def _is_bytes(kind: pa.DataType) -> bool:
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)


def _numpy(array: pa.Array) -> npt.NDArray[np.generic]:
    filled = array.fill_null(0) if array.null_count else array
    return filled.to_numpy(zero_copy_only=False)


def _ordered_floats(array: pa.Array) -> npt.NDArray[np.uint64]:
    values = np.add(_numpy(array), 0.0)  # makes -0.0 equal 0.0
    bits = values.view(np.uint64)
    ordered = np.where(bits >> np.uint64(63), ~bits, bits | np.uint64(1 << 63))
    ordered[np.isnan(values)] = np.uint64(0xFFFFFFFFFFFFFFFF)
    return ordered


def _string_part(array: pa.Array) -> _Part:
    """Returns padded bytes followed by the length.  The length tells apart values that differ only in their
    padding."""
    lengths = pc.binary_length(array)
    longest = pc.max(lengths).as_py() or 0
    if longest > _PADDED_STRING:
        return _ranks(array)
    if longest == 0:
        return _Bits(np.zeros(len(array), np.uint64), 0)
    text = array.cast(pa.binary()) if not pa.types.is_fixed_size_binary(array.type) else array
    raw = np.frombuffer(_contiguous(text), np.uint8)
    sizes = lengths.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    padded = np.zeros((len(array), longest + 1), np.uint8)
    if sizes.min() == longest:
        padded[:, :longest] = raw.reshape(-1, longest)
    else:
        padded[:, :longest][np.arange(longest) < sizes[:, None]] = raw
    padded[:, longest] = sizes
    if longest > 7:
        return padded
    wide = np.zeros((len(array), 8), np.uint8)
    wide[:, 7 - longest :] = padded
    return _numbers(wide.view(">u8").reshape(len(array)).astype(np.uint64))


def _contiguous(array: pa.Array) -> bytes | memoryview:
    """Returns the bytes of a binary array's values, one after another; a null takes no byte."""
    if pa.types.is_fixed_size_binary(array.type):
        array = array.cast(pa.binary())
    if array.null_count:
        array = array.fill_null(b"")
    offsets = np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, array.offset * 4)
    data = array.buffers()[2]
    return memoryview(data)[offsets[0] : offsets[-1]] if data is not None else b""


def _ranks(array: pa.Array) -> _Bits:
    """Returns dense ranks.  They are exact for any ordered type, and comparable within this array only."""
    ranks = pc.rank(array, sort_keys="ascending", tiebreaker="dense")  # nulls are placed by their flag
    return _numbers(ranks.to_numpy(zero_copy_only=False))
