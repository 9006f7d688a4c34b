"""Running a scan plan: clusters of references, merged, freed of what tombstones cover, combined, projected.

`scan` gives tables in key order; their schema is the plan's, in the columns asked for.  References that overlap
nothing are passed through as they are decoded.  An object that is missing is an error, never a shorter answer.

`merged` is the part that compaction uses as well: the records of one cluster by key, sequence and place.  Many
records in files of this machine are merged by DataFusion (`native`), all else in windows (`merge`); both give the
same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import pyarrow as pa

from lake_core.combine import Rule
from lake_core.combine.combine import combine_stream
from lake_core.combine.hidden import DELETED
from lake_core.combine.newest import without_markers
from lake_core.commits import Reference
from lake_core.commits.tombstone import Tombstone, covering
from lake_core.conditions import holds, may_hold, top_level
from lake_core.keys import KeyRange, PoolKey
from lake_core.scan.clusters import clusters
from lake_core.scan.covered import fields_of, needs_sequences, uncovered
from lake_core.scan.merge import Stream, merge
from lake_core.scan.native import NativeMerge, can_merge, inputs_of
from lake_core.scan.plan import ScanPlan
from lake_core.scan.streams import read_reference
from lake_core.store import Store

FEWEST_NATIVE = 100_000
"""Fewer records are merged in windows sooner than DataFusion can be set up."""


def scan(plan: ScanPlan, store: Store, *, pool: str) -> Iterator[pa.Table]:
    """The records of the plan, in key order.  Raises ObjectMissing, Corrupt, Unavailable."""
    columns = list(plan.columns)
    for cluster in clusters(plan.references):
        if plan.where is not None and len(cluster) == 1 and not _may_fulfil(plan, cluster[0]):
            continue
        tombstones = {r: covering(plan.tombstones, r, plan.schemas.__getitem__) for r in cluster}
        tables = visible(
            tombstones,
            store,
            pool=pool,
            span=plan.span,
            key=plan.key,
            schema=_read_columns(plan, tombstones),
            rule=plan.rule,
            schemas=plan.schemas,
            ordered=False,
            batch_rows=plan.batch_rows,
        )
        for table in tables:
            kept = without_markers(table) if plan.rule.kind == "upsert" else table
            if plan.where is not None:
                kept = kept.filter(holds(plan.where, kept))
            if kept.num_rows:
                yield kept if kept.schema.names == columns else kept.select(columns)


def result_schema(plan: ScanPlan) -> pa.Schema:
    """The schema of what `scan` yields."""
    return pa.schema([plan.schema.field(name) for name in plan.columns])


def visible(
    cluster: Mapping[Reference, Sequence[Tombstone]],
    store: Store,
    *,
    pool: str,
    span: KeyRange,
    key: PoolKey,
    schema: pa.Schema,
    rule: Rule,
    schemas: Mapping[str, pa.Schema],
    ordered: bool,
    batch_rows: int,
) -> Iterator[pa.Table]:
    """The records of a cluster that the tombstones beside its references leave, combined by the rule.

    Delete markers are among them.  `schema`: with the fields of conditions, and in upsert pools `_deleted` where
    there are conditions.  With `ordered` the tables say sequence and place.
    """
    read = partial(merged, store=store, pool=pool, span=span, key=key, schema=schema, batch_rows=batch_rows)
    found = {t.id: t for covers in cluster.values() for t in covers}
    tombstones = list(found.values())
    if not tombstones:
        tables = read(list(cluster), ordered=ordered)
        return tables if len(cluster) == 1 else combine_stream(tables, key, rule)
    upsert = rule.kind == "upsert"
    left = [
        r
        for r, covers in cluster.items()
        if not any(t.covers_all(r, schemas.__getitem__) for t in covers if not (upsert and t.condition))
    ]
    if not left:
        return iter(())
    with_seqs = ordered or needs_sequences(tombstones, left)
    tables = uncovered(read(left, ordered=with_seqs), tombstones, key=key, marks=upsert)
    return tables if len(left) == 1 else combine_stream(tables, key, rule)


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


def _may_fulfil(plan: ScanPlan, alone: Reference) -> bool:
    assert plan.where is not None
    return may_hold(plan.where, plan.schemas[alone.schema], alone.columns, records=alone.records)


def _read_columns(plan: ScanPlan, tombstones: Mapping[Reference, Sequence[Tombstone]]) -> pa.Schema:
    """The columns asked for, those of the key, which the merge needs, of conditions, and what tells markers."""
    conditions = fields_of(t for covers in tombstones.values() for t in covers)
    wanted = top_level(plan.where) if plan.where is not None else ()
    more = [*plan.key.names, *conditions, *wanted, *([DELETED] if plan.rule.kind == "upsert" else [])]
    names = dict.fromkeys([*plan.columns, *(name for name in more if name in plan.schema.names)])
    return with_markers(pa.schema([plan.schema.field(name) for name in names]), plan.rule, conditions)


def with_markers(schema: pa.Schema, rule: Rule, conditions: Sequence[str]) -> pa.Schema:
    """With room for delete markers, where conditions of tombstones may make some."""
    if rule.kind != "upsert" or not conditions or DELETED in schema.names:
        return schema
    return schema.append(pa.field(DELETED, pa.bool_()))
