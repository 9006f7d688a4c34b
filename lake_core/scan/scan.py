"""Running a scan plan: streams of data objects, merged and projected.

`scan` gives tables in key order; their schema is the plan's, in the columns asked for.  An object that is
missing is an error, never a shorter answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa

from lake_core.commits import Reference
from lake_core.objects.read import DataObject
from lake_core.objects.schema import cast_table
from lake_core.scan.merge import Stream, merge
from lake_core.scan.plan import ScanPlan
from lake_core.store import Store


def scan(plan: ScanPlan, store: Store, *, pool: str) -> Iterator[pa.Table]:
    """The records of the plan, in key order.  Raises ObjectMissing, Corrupt, Unavailable."""
    if not plan.references:
        return
    read = _read_columns(plan)
    streams = [
        Stream(r.low, (r.seq, r.place), partial(_stream, plan, r, store, pool, read)) for r in plan.references
    ]
    for table in merge(streams, key=plan.key):
        yield table if table.schema.names == list(plan.columns) else table.select(list(plan.columns))


def result_schema(plan: ScanPlan) -> pa.Schema:
    """The schema of what `scan` yields."""
    return pa.schema([plan.schema.field(name) for name in plan.columns])


def _read_columns(plan: ScanPlan) -> pa.Schema:
    """The columns asked for, and those of the key, which the merge needs."""
    names = [*plan.columns, *(name for name in plan.key.names if name not in plan.columns)]
    return pa.schema([plan.schema.field(name) for name in names])


def _stream(
    plan: ScanPlan, reference: Reference, store: Store, pool: str, read: pa.Schema
) -> Iterator[pa.Table]:
    span = plan.span.intersect(reference.span)
    with DataObject(store, pool=pool, object_id=reference.object) as data:
        for batch in data.batches(span, key=plan.key, columns=read.names, batch_rows=plan.batch_rows):
            yield cast_table(pa.Table.from_batches([batch]), read, what=data.name)
