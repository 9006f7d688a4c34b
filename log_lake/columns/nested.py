"""Takes Arrow's records, lists, maps and unions apart and puts them together again, slices and nulls included.

The item array of a list array may hold items that do not count: those outside of its slice, and those of null
rows.  `Items` gives the items of the rows that are not null, one after another, and the position of each row's
first item.  Maps are lists of entries; Arrow's own cast from one to the other breaks slices with records inside
(Arrow 26).  A union has no nulls of its own.  Arrow's own `flatten` of records ends the process if one of the
fields is a union (`fields_of`).  `rebuilt` returns a column with other values, and perhaps other types, at any
depth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from log_lake.columns.arrays import Ints


def is_list(kind: pa.DataType) -> bool:
    """Whether the type is a list of any form; a map is not a list."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def mask_of(array: pa.Array) -> pa.Array | None:
    """Returns for each row whether it is null, in the form that Arrow's constructors expect; None if no row
    is."""
    return pc.is_null(array) if array.null_count else None


def fields_of(array: pa.StructArray) -> list[pa.Array]:
    """Returns the values of each field of records, null where the record is null.  A union field has an arbitrary
    value there."""
    if not any(pa.types.is_union(field.type) for field in array.type):
        return list(array.flatten())
    return [
        array.field(at) if pa.types.is_union(field.type) else pc.struct_field(array, [at])
        for at, field in enumerate(array.type)
    ]


@dataclass(frozen=True)
class Alternative:
    """One type of an array of unions: the rows that have it, and their values."""

    field: pa.Field
    rows: npt.NDArray[np.int64]
    values: pa.Array


def alternatives(array: pa.Array) -> list[Alternative]:
    """Returns the values of an array of unions, separately for each type."""
    kind = array.type
    fields = [kind.field(at) for at in range(kind.num_fields)]
    if not len(array):  # there may be no memory
        nothing = np.zeros(0, np.int64)
        return [Alternative(field, nothing, array.field(at).slice(0, 0)) for at, field in enumerate(fields)]
    buffers = array.buffers()  # `type_codes` and `offsets` of a slice are not its own
    codes = np.frombuffer(buffers[1], np.int8, len(array), offset=array.offset)
    at = np.arange(len(array), dtype=np.int64)
    if kind.mode == "dense":
        at = np.frombuffer(buffers[2], np.int32, len(array), offset=4 * array.offset).astype(np.int64)
    parts = []
    for number, (field, code) in enumerate(zip(fields, kind.type_codes, strict=True)):
        rows = np.flatnonzero(codes == code)
        parts.append(Alternative(field, rows, array.field(number).take(pa.array(at[rows]))))
    return parts


@dataclass(frozen=True)
class Items:
    """The items of an array of lists or maps, and where each row's items begin and end."""

    array: pa.Array

    @cached_property
    def _lists(self) -> pa.Array:
        array = self.array
        if not pa.types.is_map(array.type):
            return array
        fields = [array.type.key_field, array.type.item_field]
        entries = pa.StructArray.from_arrays([array.keys, array.items], fields=fields)
        offsets = pc.add(array.offsets, pa.scalar(0, pa.int32()))  # a slice's own would not go with a mask
        return pa.ListArray.from_arrays(offsets, entries, mask=mask_of(array))

    @cached_property
    def offsets(self) -> pa.Array:
        """Returns the position of each row's first item, followed by the end of the last row; a null row has no
        items."""
        lengths = pc.fill_null(pc.list_value_length(self._lists), 0).cast(pa.int32())
        return pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])

    @property
    def values(self) -> pa.Array:
        """The items of lists, as one array."""
        return self._lists.flatten()

    @property
    def entries(self) -> tuple[pa.Array, pa.Array]:
        """The keys and the values of maps, as two arrays."""
        keys, values = fields_of(self._lists.flatten())
        return keys, values

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """For each item, the number of the row to which it belongs."""
        lengths = np.diff(np.asarray(self.offsets))
        return np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)

    def as_lists(self, values: pa.Array, kind: pa.DataType) -> pa.Array:
        """Returns lists with the same lengths, but with `values` as their items."""
        return pa.ListArray.from_arrays(self.offsets, values, type=kind, mask=mask_of(self.array))

    def as_maps(self, keys: pa.Array, values: pa.Array, kind: pa.DataType) -> pa.Array:
        """Returns maps with the same lengths, but with other keys and values."""
        return pa.MapArray.from_arrays(self.offsets, keys, values, type=kind, mask=mask_of(self.array))


RowNumbers = Ints
"""For each value of an array, the row of the table to which it belongs."""

LeafChange = Callable[[pa.Array, pa.Field, RowNumbers], tuple[pa.Array, pa.Field] | None]
"""Gets an array, its field, and the rows of its values. Returns another array and field to put in their place, or
None; then `rebuilt` goes on with the members inside."""


def is_nested(kind: pa.DataType) -> bool:
    """Whether the type is a list, a map, a union, or a record that has fields."""
    return bool(
        pa.types.is_map(kind)
        or is_list(kind)
        or pa.types.is_union(kind)
        or (pa.types.is_struct(kind) and kind.num_fields)
    )


def rebuilt(
    array: pa.Array, field: pa.Field, rows: RowNumbers, change: LeafChange
) -> tuple[pa.Array, pa.Field]:
    """Applies `change` to an array and then to the parts inside it.  Returns the new array and its field; a value
    that `change` leaves alone stays as it is."""
    changed = change(array, field, rows)
    kind = field.type
    if changed is not None or not is_nested(kind):
        return changed or (array, field)
    if pa.types.is_struct(kind):
        members = [
            rebuilt(member, inner, rows, change) for member, inner in zip(fields_of(array), kind, strict=True)
        ]
        fields = [inner.with_nullable(True) for _, inner in members]
        arrays = [member for member, _ in members]
        records = pa.StructArray.from_arrays(arrays, fields=fields, mask=mask_of(array))
        return records, field.with_type(records.type)
    if pa.types.is_union(kind):
        union = _rebuilt_union(array, rows, change)
        return union, field.with_type(union.type)
    items = Items(array)
    rows = rows[items.rows]
    if pa.types.is_map(kind):
        keys, values = items.entries
        new_keys, key_field = rebuilt(keys, kind.key_field, rows, change)
        new_values, value_field = rebuilt(values, kind.item_field, rows, change)
        map_type = pa.map_(key_field.with_nullable(False), value_field.with_nullable(True))
        return items.as_maps(new_keys, new_values, map_type), field.with_type(map_type)
    new_values, value_field = rebuilt(items.values, kind.value_field, rows, change)
    list_type = pa.list_(value_field.with_nullable(True))
    return items.as_lists(new_values, list_type), field.with_type(list_type)


def _rebuilt_union(array: pa.Array, rows: RowNumbers, change: LeafChange) -> pa.Array:
    """Returns a dense union with the values of each type changed."""
    codes, offsets = np.zeros(len(array), np.int8), np.zeros(len(array), np.int32)
    values, names = [], []
    for code, part in enumerate(alternatives(array)):
        codes[part.rows], offsets[part.rows] = code, np.arange(len(part.rows))
        changed, field = rebuilt(part.values, part.field, rows[part.rows], change)
        values.append(changed)
        names.append(field.name)
    return pa.UnionArray.from_dense(pa.array(codes), pa.array(offsets), values, names)
