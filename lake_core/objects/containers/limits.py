"""How large the groups of a data object become."""

from __future__ import annotations

from dataclasses import dataclass

from lake_core.objects.weight import Sizes


@dataclass(frozen=True)
class ObjectLimits:
    """The sizes of row groups; an object with row groups of any size can be read.

    The `Lake` passes them to loads and compactions within `reading.Limits`.
    """

    row_group: int = 8_192
    """Records of a row group, at most: a point read decodes one (decision 12)."""

    row_group_bytes: int = 16 << 20
    """Decoded bytes of a row group.  If records are so large that fewer than `row_group` have room, it has fewer,
    but at least one.  A reader holds a whole row group, so this bounds the memory of a merge (decision
    33)."""

    column_bytes: int = 8 << 10
    """A row group may have this many bytes for each column, if there are thousands: the smallest chunk of a column
    costs as much to write as these.  Fields inside of records count as columns."""

    gathered: int = 8
    """Row groups to gather before they are written, if together they have at most `row_group_bytes`."""

    def max_bytes(self, sizes: Sizes) -> int:
        """Decoded bytes that a row group of such columns may have."""
        return max(self.row_group_bytes, self.column_bytes * sizes.leaves)


OBJECT_LIMITS = ObjectLimits()
"""The defaults."""
