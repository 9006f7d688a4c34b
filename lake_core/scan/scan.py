"""Running a scan plan: clusters of references, merged, combined by the pool's kind, projected.

`scan` gives tables in key order; their schema is the plan's, in the columns asked for.  References that overlap
nothing are passed through as they are decoded.  An object that is missing is an error, never a shorter answer.

`merged` is the part that compaction uses as well: the records of one cluster by key, sequence and place.  Many
records in files of this machine are merged by DataFusion (`native`), all else in windows (`merge`); both give the
same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa

from lake_core.combine.combine import combine_stream
from lake_core.combine.hidden import DELETED
from lake_core.combine.newest import without_markers
from lake_core.commits import Reference
from lake_core.keys import KeyRange, PoolKey
from lake_core.scan.clusters import clusters
from lake_core.scan.merge import Stream, merge
from lake_core.scan.native import NativeMerge, can_merge, inputs_of
from lake_core.scan.plan import ScanPlan
from lake_core.scan.streams import read_reference
from lake_core.store import Store

FEWEST_NATIVE = 100_000
"""Fewer records are merged in windows sooner than DataFusion can be set up."""


def scan(plan: ScanPlan, store: Store, *, pool: str) -> Iterator[pa.Table]:
    """The records of the plan, in key order.  Raises ObjectMissing, Corrupt, Unavailable."""
    schema = _read_columns(plan)
    columns = list(plan.columns)
    for cluster in clusters(plan.references):
        tables = merged(
            cluster,
            store,
            pool=pool,
            span=plan.span,
            key=plan.key,
            schema=schema,
            ordered=False,
            batch_rows=plan.batch_rows,
        )
        if len(cluster) > 1:
            tables = combine_stream(tables, plan.key, plan.rule)
        for table in tables:
            kept = without_markers(table) if plan.rule.kind == "upsert" else table
            if kept.num_rows:
                yield kept if kept.schema.names == columns else kept.select(columns)


def result_schema(plan: ScanPlan) -> pa.Schema:
    """The schema of what `scan` yields."""
    return pa.schema([plan.schema.field(name) for name in plan.columns])


def merged(
    cluster: Sequence[Reference],
    store: Store,
    *,
    pool: str,
    span: KeyRange,
    key: PoolKey,
    schema: pa.Schema,
    ordered: bool,
    batch_rows: int,
) -> Iterator[pa.Table]:
    """The records of references by key, sequence and place; with `ordered` the tables say these two."""
    read = partial(
        read_reference, store=store, pool=pool, span=span, key=key, schema=schema, batch_rows=batch_rows
    )
    if len(cluster) == 1:
        return read(cluster[0], ordered=ordered)
    inputs = inputs_of(cluster, store, pool=pool, span=span)
    if inputs and sum(i.rows for i in inputs) >= FEWEST_NATIVE and can_merge(inputs, key=key, schema=schema):
        native = NativeMerge(inputs, key=key, schema=schema)
        if not native.sorts:
            return native.tables()
    mixed = any(r.oldest is not None for r in cluster)
    streams = [
        Stream(r.low, r.seq, r.place, partial(read, r, ordered=ordered or mixed), r.oldest is not None)
        for r in cluster
    ]
    return merge(streams, key=key)


def _read_columns(plan: ScanPlan) -> pa.Schema:
    """The columns asked for, those of the key, which the merge needs, and what tells delete markers."""
    more = [*plan.key.names, *([DELETED] if plan.rule.kind == "upsert" else [])]
    names = dict.fromkeys([*plan.columns, *(name for name in more if name in plan.schema.names)])
    return pa.schema([plan.schema.field(name) for name in names])
