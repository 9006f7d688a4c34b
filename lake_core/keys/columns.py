"""The order of keys for whole Arrow columns: what `encoding` says of one value, said of a batch at once.

`sort_order` gives the permutation that sorts records by key; equal keys keep their order.  The columns are
turned into one fixed-width array (a native integer where 8 bytes suffice, else bytes compared by memcmp)
that NumPy sorts with a stable merge, which finds the runs of inputs that are sorted already: merging k
sorted streams costs about log2(k) comparisons a record.  Such an array is comparable only within the call
that made it (strings may be ranks); bounds that must live longer are `encoding`'s bytes.

Called by `objects.write` (sorting a load) and `scan.merge` (merging streams).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lake_core.keys.encoding import encode_value, from_scalar
from lake_core.keys.spec import PoolKey

Bytes = npt.NDArray[np.uint8]

_PADDED_STRING = 64
"""Strings up to this length are compared as padded bytes, longer ones by rank."""


def key_at(table: pa.Table | pa.RecordBatch, row: int, key: PoolKey) -> bytes:
    """The encoded key of one record."""
    return b"".join(
        encode_value(from_scalar(table.column(f.name)[row]), descending=f.descending) for f in key.fields
    )


def keys_at(table: pa.Table, rows: list[int], key: PoolKey) -> list[bytes]:
    """The encoded keys of some records."""
    parts = []
    for f in key.fields:
        column = table.column(f.name).take(pa.array(rows, pa.int64()))
        parts.append([encode_value(from_scalar(v), descending=f.descending) for v in column])
    return [b"".join(values) for values in zip(*parts, strict=True)] if parts else [b""] * len(rows)


def sort_order(
    table: pa.Table | pa.RecordBatch, key: PoolKey, *, then: tuple[npt.NDArray[np.uint64], ...] = ()
) -> npt.NDArray[np.int64] | None:
    """The stable permutation that sorts the records by key, then by the arrays of `then`.

    None where the records are in order already.
    """
    parts = [
        part for f in key.fields for part in _column_bytes(table.column(f.name), descending=f.descending)
    ]
    parts += [_big_endian(array) for array in then]
    if not parts or table.num_rows < 2:
        return None
    order = _packed(parts)
    if _is_sorted(order):
        return None
    return np.argsort(order, kind="stable")


def _packed(parts: list[Bytes]) -> npt.NDArray[np.generic]:
    """One comparable array from big-endian byte columns of shape (records, width)."""
    width = sum(part.shape[1] for part in parts)
    rows = parts[0].shape[0]
    if width <= 8:
        packed = np.zeros((rows, 8), np.uint8)
        packed[:, 8 - width :] = np.concatenate(parts, axis=1) if len(parts) > 1 else parts[0]
        return packed.view(">u8").reshape(rows).astype(np.uint64)
    joined = np.ascontiguousarray(np.concatenate(parts, axis=1) if len(parts) > 1 else parts[0])
    return joined.view(f"S{width}").reshape(rows)


def _is_sorted(order: npt.NDArray[np.generic]) -> bool:
    return bool(np.all(np.less_equal(order[:-1], order[1:])))


def _big_endian(values: npt.NDArray[np.generic]) -> Bytes:
    swapped = values.astype(values.dtype.newbyteorder(">"), copy=False)
    return np.ascontiguousarray(swapped).view(np.uint8).reshape(len(values), values.dtype.itemsize)


def _column_bytes(column: pa.ChunkedArray | pa.Array, *, descending: bool) -> list[Bytes]:
    """Order-preserving bytes of a column: a null flag where there are nulls, then the value."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # combine_chunks of an empty or very large column
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    parts: list[Bytes] = []
    valid: npt.NDArray[np.bool_] | None = None
    if array.null_count:
        valid = array.is_valid().to_numpy(zero_copy_only=False)
        parts.append(valid.astype(np.uint8).reshape(-1, 1))
    values = _value_bytes(array)
    if descending:
        values = ~values
    if valid is not None:
        values = values.copy() if values.base is not None else values
        values[~valid] = 0
    return [*parts, values]


def _value_bytes(array: pa.Array) -> Bytes:
    kind = array.type
    if pa.types.is_boolean(kind):
        return array.fill_null(False).to_numpy(zero_copy_only=False).astype(np.uint8).reshape(-1, 1)
    if pa.types.is_floating(kind):
        return _big_endian(_ordered_floats(array.cast(pa.float64())))
    if pa.types.is_unsigned_integer(kind):
        return _big_endian(_numpy(array))
    if pa.types.is_integer(kind):
        return _offset(_numpy(array))
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return _offset(_numpy(array.view(pa.int32())))
    if pa.types.is_date64(kind) or pa.types.is_time64(kind):
        return _offset(_numpy(array.view(pa.int64())))
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return _offset(_numpy(array.view(pa.int64())))
    if pa.types.is_null(kind):
        return np.zeros((len(array), 0), np.uint8)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or _is_bytes(kind):
        return _string_bytes(array)
    return _ranks(array)


def _is_bytes(kind: pa.DataType) -> bool:
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)


def _numpy(array: pa.Array) -> npt.NDArray[np.generic]:
    filled = array.fill_null(0) if array.null_count else array
    return filled.to_numpy(zero_copy_only=False)


def _offset(values: npt.NDArray[np.generic]) -> Bytes:
    """Signed integers as big-endian bytes whose unsigned order is the signed order."""
    unsigned = values.view(f"u{values.dtype.itemsize}")
    return _big_endian(unsigned ^ unsigned.dtype.type(1 << (8 * values.dtype.itemsize - 1)))


def _ordered_floats(array: pa.Array) -> npt.NDArray[np.uint64]:
    values = np.add(_numpy(array), 0.0)  # makes -0.0 equal 0.0
    bits = values.view(np.uint64)
    ordered = np.where(bits >> np.uint64(63), ~bits, bits | np.uint64(1 << 63))
    ordered[np.isnan(values)] = np.uint64(0xFFFFFFFFFFFFFFFF)
    return ordered


def _string_bytes(array: pa.Array) -> Bytes:
    """Padded bytes with the length behind them: equal bytes but for padding differ in length only."""
    lengths = pc.binary_length(array)
    longest = pc.max(lengths).as_py() or 0
    if longest > _PADDED_STRING:
        return _ranks(array)
    if longest == 0:
        return np.zeros((len(array), 1), np.uint8)
    text = array.cast(pa.binary()) if not pa.types.is_fixed_size_binary(array.type) else array
    raw = np.frombuffer(_contiguous(text), np.uint8)
    sizes = lengths.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    padded = np.zeros((len(array), longest + 1), np.uint8)
    if sizes.min() == longest:
        padded[:, :longest] = raw.reshape(-1, longest)
    else:
        padded[:, :longest][np.arange(longest) < sizes[:, None]] = raw
    padded[:, longest] = sizes
    return padded


def _contiguous(array: pa.Array) -> bytes | memoryview:
    """The value bytes of a binary array, one after another, nulls taking none."""
    if pa.types.is_fixed_size_binary(array.type):
        array = array.cast(pa.binary())
    if array.null_count:
        array = array.fill_null(b"")
    offsets = np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, array.offset * 4)
    data = array.buffers()[2]
    return memoryview(data)[offsets[0] : offsets[-1]] if data is not None else b""


def _ranks(array: pa.Array) -> Bytes:
    """Dense ranks: exact for any ordered type, comparable within this array only."""
    ranks = pc.rank(array, sort_keys="ascending", tiebreaker="dense")  # nulls are placed by their flag
    return _big_endian(ranks.to_numpy(zero_copy_only=False).astype(np.uint32))
