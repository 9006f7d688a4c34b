"""Copies a few records out of a large table: a slice would keep all buffers of its table in memory.

Called by readers that hold records of several tables at a time.
"""

from __future__ import annotations

import pyarrow as pa

LITTLE = 16 << 10
"""A table of at most this many bytes is not copied: keeping it costs little."""


def owned(table: pa.Table) -> pa.Table:
    """Returns the same records in buffers of at most about twice their size."""
    if table.get_total_buffer_size() <= LITTLE + 2 * table.nbytes:
        return table
    return table.take(pa.array(range(table.num_rows), pa.int64()))
