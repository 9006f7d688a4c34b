"""Finds whether one object holds a matching record: first by the range of keys in its footer, then by its records.

It reads only the columns that show whether a record matches.  It needs only the store and the target, so any
process can do it.  Called by `search`, on any workers.
"""

from __future__ import annotations

import pyarrow as pa

from lake_core.errors import Corrupt
from lake_core.keys import KeyRange
from lake_core.schemas.hidden import DELETED
from lake_core.store import Store
from log_lake.combine.newest import are_markers
from log_lake.erasure.target import Target
from log_lake.objects.located import Located
from log_lake.objects.read import DataObject
from log_lake.workers import Worker

HoldingAnswer = bool | Corrupt
"""Whether an object holds a matching record.  Corrupt means that this is unknown, because the object is missing or
damaged."""


def answer_of(target: Target, worker: Worker, located: Located) -> HoldingAnswer:
    """Returns whether an object holds a matching record, or why that is not known.  Raises Unavailable."""
    try:
        return holds_such(worker.store, target, located)
    except Corrupt as error:  # who asks knows whether the object is needed
        return error


def holds_such(store: Store, target: Target, located: Located) -> bool:
    """Whether the object holds a matching record.  Raises ObjectMissing, Corrupt, Unavailable."""
    with DataObject.at(store, located, pool_id=target.config.id) as data:
        sub_pool = data.metadata.sub_pool
        if sub_pool not in target.sub_pools:
            return False
        span, key = target.range_in(sub_pool), target.key(sub_pool)
        if not span.overlaps(KeyRange(data.metadata.low, data.metadata.high)):
            return False
        columns = [name for name in target.columns(sub_pool) if name in data.schema.names]
        only_markers = False
        for batch in data.batches(span, key=key, columns=columns or None):
            table = pa.Table.from_batches([batch])
            matching = target.fulfilled(table, sub_pool)
            if not matching.any():
                continue
            if not target.leaves_markers(sub_pool) or _has_record(table.filter(pa.array(matching))):
                return True
            only_markers = True
        if not only_markers:
            return False
        batches = data.batches(span, key=key, columns=None)
        return any(target.matches(pa.Table.from_batches([batch]), sub_pool).any() for batch in batches)


def _has_record(records: pa.Table) -> bool:
    """Returns whether there is a record that is not a delete marker."""
    return DELETED not in records.schema.names or not all(are_markers(records).to_pylist())
