"""Finds the records of a sorted table that have the same key.

Keys are equal if their encodings are: null equals null, NaN equals NaN, -0.0 equals 0.0.  `whole_keys` cuts a
stream of sorted tables so that no key is in two of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake_core.keys import PoolKey
from log_lake.columns.arrays import Mask
from log_lake.columns.keys import key_at


def ends_key(table: pa.Table, key: PoolKey) -> Mask:
    """Returns for each record of a sorted table whether it is the last one with its key."""
    ends = np.ones(table.num_rows, np.bool_)
    if table.num_rows > 1 and key.fields:
        same = np.ones(table.num_rows - 1, np.bool_)
        for name in key.names:
            column = table.column(name)
            same &= _same(column.slice(0, len(column) - 1), column.slice(1))
        ends[:-1] = ~same
    return ends


def _same(left: pa.ChunkedArray, right: pa.ChunkedArray) -> Mask:
    if pa.types.is_null(left.type):
        return np.ones(len(left), np.bool_)
    equal = pc.equal(left, right)
    if not (left.null_count or right.null_count or pa.types.is_floating(left.type)):
        return np.asarray(equal)
    equal = pc.fill_null(equal, False)
    if pa.types.is_floating(left.type):
        equal = pc.or_(equal, pc.fill_null(pc.and_(pc.is_nan(left), pc.is_nan(right)), False))
    if left.null_count or right.null_count:
        equal = pc.or_(equal, pc.and_(pc.is_null(left), pc.is_null(right)))
    return np.asarray(equal)


def whole_keys(
    tables: Iterable[pa.Table], key: PoolKey, combine: Callable[[pa.Table, Mask], pa.Table]
) -> Iterator[pa.Table]:
    """Combines the stream a table at a time.  `combine` gets all records of a key together, and a mask that is
    true where a key ends.

    The records of a table's last key wait for the next table.  They are combined before that, so a key with
    very many records takes no more memory than one record.
    """
    waiting: pa.Table | None = None
    for table in tables:
        if not table.num_rows:
            continue
        joined, ends = table, ends_key(table, key)
        if waiting is not None:
            rows = waiting.num_rows
            joined = pa.concat_tables([waiting, table])
            begins = key_at(waiting, rows - 1, key) != key_at(table, 0, key)
            ends = np.concatenate([np.zeros(rows - 1, np.bool_), [begins], ends])
        before = np.flatnonzero(ends[:-1])
        complete = int(before[-1]) + 1 if len(before) else 0
        if complete:
            yield combine(joined.slice(0, complete), ends[:complete])
        waiting = combine(joined.slice(complete), ends[complete:])
    if waiting is not None:
        yield waiting
