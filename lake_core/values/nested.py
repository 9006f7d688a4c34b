"""Taking Arrow's records, lists and maps apart and putting them together, slices and nulls included.

A list array that is sliced, or whose null rows have items, does not say by itself which of its items count.
`Items` does: it has the items of the rows that are not null, one after another, and each row's first.  Maps are
lists of entries; Arrow's own cast from one to the other breaks slices with records inside (Arrow 26).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


def is_list(kind: pa.DataType) -> bool:
    """Whether it is a list of any form, but no map."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def mask_of(array: pa.Array) -> pa.Array | None:
    """Which rows are null, as Arrow's constructors want it; None if none is."""
    return pc.is_null(array) if array.null_count else None


@dataclass(frozen=True)
class Items:
    """The items of an array of lists or maps."""

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
        """Where each row's items begin, and the end of the last; null rows have none."""
        lengths = pc.fill_null(pc.list_value_length(self._lists), 0).cast(pa.int32())
        return pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])

    @property
    def values(self) -> pa.Array:
        """Of lists."""
        return self._lists.flatten()

    @property
    def entries(self) -> tuple[pa.Array, pa.Array]:
        """Keys and values of maps."""
        keys, values = self._lists.flatten().flatten()
        return keys, values

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """To which row each item belongs."""
        lengths = np.diff(np.asarray(self.offsets))
        return np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)

    def as_lists(self, values: pa.Array, kind: pa.DataType) -> pa.Array:
        """Lists of the same lengths with other values."""
        return pa.ListArray.from_arrays(self.offsets, values, type=kind, mask=mask_of(self.array))

    def as_maps(self, keys: pa.Array, values: pa.Array, kind: pa.DataType) -> pa.Array:
        """Maps of the same lengths with other keys and values."""
        return pa.MapArray.from_arrays(self.offsets, keys, values, type=kind, mask=mask_of(self.array))
