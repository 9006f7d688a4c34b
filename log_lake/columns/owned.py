"""Copies of few records that would keep many others in memory: a slice holds all buffers of its table.

Callers: readers that hold records of several tables at a time.
"""

from __future__ import annotations

import pyarrow as pa

LITTLE = 16 << 10
"""Bytes that are not worth a copy."""


def owned(table: pa.Table) -> pa.Table:
    """The same records, in buffers at most about twice as large as they are."""
    if table.get_total_buffer_size() <= LITTLE + 2 * table.nbytes:
        return table
    return table.take(pa.array(range(table.num_rows), pa.int64()))
