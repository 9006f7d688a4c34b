"""The limits for the sizes of a data object's groups of records."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lake_core import naming
from log_lake.objects.weight import Sizes

SCAN_RECORDS = 1 << 20
"""The most records of a row group in a pool with `layout=scan`; its bytes have the same bound as elsewhere."""


@dataclass(frozen=True)
class ObjectLimits:
    """The limits for the sizes of row groups; an object with row groups of any size can be read.

    The `Lake` passes them to loads and compactions within `reading.Limits`.
    """

    row_group: int = 10_240
    """The most records of a group.  A point read decodes one group; other programs read many small ones slowly
    (decision 124)."""

    typed_group: int = 8_192
    """The most records of a group in ZNG and ZST, if that is less than `row_group`: a point read decodes all of
    it."""

    row_group_bytes: int = 16 << 20
    """Decoded bytes of a row group.  If records are so large that fewer than `row_group` fit, the group has fewer,
    but at least one.  A reader holds a whole row group, so this bounds the memory of a merge (decision 33)."""

    column_bytes: int = 8 << 10
    """If there are thousands of columns, a row group may have this many bytes per column: writing the smallest
    chunk of a column costs as much as writing these.  Fields inside of records count as columns."""

    gathered: int = 8
    """The most row groups that are gathered and then written together, if they have at most
    `row_group_bytes`."""

    def of_layout(self, *, scan: bool) -> ObjectLimits:
        """Returns these limits, but with large row groups if the pool has `layout=scan` (`scan`)."""
        return replace(self, row_group=max(self.row_group, SCAN_RECORDS)) if scan else self

    def group_records(self, format: str) -> int:
        """Returns how many records a group of a file with this format may have."""
        return self.row_group if format == naming.PARQUET else min(self.row_group, self.typed_group)

    def max_bytes(self, sizes: Sizes) -> int:
        """Returns how many decoded bytes a row group with these columns may have."""
        return max(self.row_group_bytes, self.column_bytes * sizes.leaves)


OBJECT_LIMITS = ObjectLimits()
"""The default sizes."""
