"""Runs a scan plan: merges clusters of references, removes deleted records, combines equal keys, projects columns.

`scan` gives tables in key order; their schema is the plan's, with the wanted columns.  The records of a
reference that overlaps no other are passed on as they are decoded.  If an object is missing, that is an error,
never a shorter answer.

`live_records` gives the live records of one cluster; compaction uses it too.  `merged` sorts the cluster's
records in one of three ways, which give the same records: it inserts a small delta into a bulk
(`insert_delta`), lets DataFusion merge many records in local files (`datafusion_merge`), or merges in windows
(`merge`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import chain

import pyarrow as pa

from lake_core.conditions import Condition, may_hold, top_level
from lake_core.history import Reference
from lake_core.phrases import counted
from lake_core.schemas import Rule
from lake_core.schemas.hidden import DELETED, ORDER, with_rows
from lake_core.store import Store
from log_lake.combine.combine import combine_stream
from log_lake.combine.newest import without_markers
from log_lake.objects.merge import ClosedStream, merge
from log_lake.objects.spool import Spool
from log_lake.reading.clustered import may_lie_there
from log_lake.reading.covers import Covering, Covers
from log_lake.reading.deleted import Took, apply_tombstones, fields_of, needs_sequences
from log_lake.reading.merge.clusters import clusters, decided_by_age
from log_lake.reading.merge.datafusion import datafusion_merge
from log_lake.reading.merge.insert_delta import insert_delta, split_bulk_and_delta
from log_lake.reading.merge.passes import Group, groups, run
from log_lake.reading.merge.streams import ReferenceReading, read_reference
from log_lake.reading.merge.together import READERS, Gathering, small_clusters_joined
from log_lake.reading.plan import ScanPlan
from log_lake.where import holds

log = logging.getLogger(__name__)

UPSERT = Rule("upsert")


def scan(
    plan: ScanPlan, store: Store, *, pool_id: str, reads: Callable[[int], None] = lambda records: None
) -> Iterator[pa.Table]:
    """Yields the records of the plan, in key order.  Raises ObjectMissing, Corrupt, Unavailable, and what `reads`
    raises.

    `reads` is called with the number of records of each table, before the plan's condition is applied to it.
    """
    shown = result_schema(plan).names
    columns = [*plan.columns, *shown[len(plan.columns) :]]
    covering = Covering(plan.tombstones, plan.schemas.__getitem__)
    before = partial(_fulfilling, plan.where, reads) if plan.rule.keeps_all else None
    spare = _spare(plan)
    promising = (
        cluster
        for cluster in clusters(plan.references)
        if plan.where is None or len(cluster) > 1 or _may_fulfil(plan, cluster[0])
    )
    for cluster in small_clusters_joined(promising, plan.limits):
        covers = {r: covering.of(r) for r in cluster}
        is_alone = len(cluster) == 1 and not covers[cluster[0]].tombstones
        tables = live_records(
            covers,
            ReferenceReading(
                store,
                pool_id,
                plan.key,
                plan.key_range,
                _read_columns(plan, covers),
                limits=plan.limits,
                streams=plan.depth,
                lifts=plan.lifts,
                schemas=plan.schemas,
                ranges=plan.ranges,
                groups=plan.groups,
                spare=spare if is_alone else frozenset(),
            ),
            rule=plan.rule,
            has_sequence=False,
            where=before,
        )
        for table in tables:
            kept = without_markers(table) if plan.rule.kind == "upsert" else table
            if before is None:
                kept = _fulfilling(plan.where, reads, kept)
            if kept.num_rows:
                kept = kept if kept.schema.names == columns else kept.select(columns)
                yield kept.rename_columns(shown) if shown != columns else kept


def _fulfilling(condition: Condition | None, reads: Callable[[int], None], table: pa.Table) -> pa.Table:
    reads(table.num_rows)
    return table if condition is None else table.filter(holds(condition, table))


def result_schema(plan: ScanPlan) -> pa.Schema:
    """Returns the schema of the tables that `scan` yields."""
    fields = zip(plan.columns, plan.shown, strict=True)
    return with_rows(pa.schema([plan.schema.field(one).with_name(name) for one, name in fields]), plan.keep)


def live_records(
    cluster: Mapping[Reference, Covers],
    reading: ReferenceReading,
    *,
    rule: Rule,
    has_sequence: bool,
    where: Callable[[pa.Table], pa.Table] | None = None,
    took: Took | None = None,
) -> Iterator[pa.Table]:
    """Yields the live records of a cluster, combined by the rule; in upsert pools including delete markers.

    `cluster` has the tombstones of each reference.  The schema of `reading` must have the fields of their
    conditions, and in upsert pools `_deleted` if there are conditions.  With `has_sequence` the tables end with
    the columns of `hidden.ORDER`.  In pools that keep all records, `where` selects the wanted ones first,
    because comparing only these with tombstones is faster.  `took` gets the records that
    tombstones drop.
    """
    upsert = rule.kind == "upsert"
    left = [r for r, covers in cluster.items() if not covers.hide_all(upsert=upsert)]
    if not left:
        return iter(())
    tombstones = list({t.id: t for r in left for t in cluster[r].tombstones}.values())
    needs_sequence = has_sequence or needs_sequences(tombstones, left)
    # Combine before applying tombstones where possible.  Not with a tombstone of exact sequences: hiding an
    # overtaken record can reveal an older version of its key.
    early = upsert and all(t.exactly is None for t in tombstones)
    if len(left) > 1 or has_sequence:
        tables = merged(left, reading, newest=early, has_sequence=needs_sequence)
    else:
        tables = _alone(left[0], reading, has_sequence=needs_sequence, ahead=bool(tombstones))
    if where is not None:
        tables = map(where, tables)
    if tombstones:
        tables = apply_tombstones(tables, tombstones, key=reading.key, has_markers=upsert, took=took)
    return tables if early or len(left) == 1 else combine_stream(tables, reading.key, rule)


def merged(
    cluster: Sequence[Reference], reading: ReferenceReading, *, newest: bool, has_sequence: bool
) -> Iterator[pa.Table]:
    """Yields the records of references by key and age, in the columns of `reading`.

    With `has_sequence` the columns of `hidden.ORDER` follow; without it they never do, so that tables of two
    merges have the same columns.  With `newest`, only the newest record of each key is yielded, as in upsert
    pools.
    """
    if parts := split_bulk_and_delta(cluster, min_bulk_ratio=reading.limits.min_bulk_ratio):
        bulk, delta = parts
        few, many = (sum(r.records for r in part) for part in (delta, bulk))
        _log_merge(cluster, "by inserting the newest %d into the other %d", few, many)
        return insert_delta(
            chain.from_iterable(_sorted([r], reading, has_sequence=has_sequence) for r in bulk),
            merged(delta, reading, newest=newest, has_sequence=has_sequence),
            key=reading.key,
            newest=newest,
            most_bytes=reading.limits.max_batch_bytes,
        )
    tables = _sorted(cluster, reading, has_sequence=has_sequence)
    return combine_stream(tables, reading.key, UPSERT) if newest and len(cluster) > 1 else tables


def _alone(
    reference: Reference, reading: ReferenceReading, *, has_sequence: bool, ahead: bool
) -> Iterator[pa.Table]:
    """Yields the records of one reference. With `ahead`, and if all of the object is wanted, it is decoded on all
    cores while the caller works."""
    if (
        ahead
        and not reading.ranges
        and reading.key_range.intersect(reference.key_range) == reference.key_range
    ):
        return _in_windows([reference], reading, has_sequence=has_sequence)
    return read_reference(reference, reading, has_sequence=has_sequence)


def _sorted(
    cluster: Sequence[Reference], reading: ReferenceReading, *, has_sequence: bool
) -> Iterator[pa.Table]:
    chosen = datafusion_merge(cluster, reading, has_sequence=has_sequence)
    if isinstance(chosen, str):
        _log_merge(cluster, "in windows: %s", chosen)
        return _in_windows(cluster, reading, has_sequence=has_sequence)
    _log_merge(cluster, "by DataFusion")
    return chosen.tables()


def _log_merge(cluster: Sequence[Reference], how: str, *figures: object) -> None:
    if len(cluster) > 1:
        records = sum(r.records for r in cluster)
        log.info("merges %d objects of %d records " + how, len(cluster), records, *figures)


def _in_windows(
    cluster: Sequence[Reference], reading: ReferenceReading, *, has_sequence: bool
) -> Iterator[pa.Table]:
    needs_sequence = not decided_by_age(cluster)
    parts = groups(cluster, reading.limits)
    if any(len(part.references) > 1 and not part.at_once for part in parts):
        log.info(
            "merges %d objects in two passes: at first into %s", len(cluster), counted(len(parts), "run")
        )
    united = pa.schema([*reading.schema, *ORDER]) if has_sequence or needs_sequence else reading.schema
    with Spool("the merge") as spool:
        windows = _Windows(reading, parts, united, has_sequence, needs_sequence, spool)
        streams = [windows.stream(part) for part in parts]
        if not needs_sequence:
            # parts come by age; a run has no sequence that orders all of its objects with the others
            streams = [replace(stream, seq=index, ordinal=0) for index, stream in enumerate(streams)]
        most_bytes = reading.limits.max_batch_bytes
        merging = merge(streams, key=reading.key, schema=united, most_bytes=most_bytes)
        with closing(merging) as tables:  # its threads end before the spool does
            for table in tables:
                yield table if has_sequence or not needs_sequence else table.drop_columns(ORDER.names)


class _Windows:
    """Makes the streams of a merge; `needs_sequence`: the merge orders by the columns of `hidden.ORDER`."""

    def __init__(
        self,
        reading: ReferenceReading,
        parts: Sequence[Group],
        schema: pa.Schema,
        has_sequence: bool,
        needs_sequence: bool,
        spool: Spool,
    ) -> None:
        self._reading, self._schema, self._spool = reading, schema, spool
        self._together = replace(reading, streams=min(reading.streams, len(parts)))
        self._narrows = sum(len(part.references) for part in parts) > 1
        self._has_sequence, self._needs_sequence = has_sequence or needs_sequence, needs_sequence

    def stream(self, part: Group) -> ClosedStream:
        if part.at_once:
            return self._at_once(part.references)
        return self._alone(*part.references) if len(part.references) == 1 else self._run(part.references)

    def _alone(self, reference: Reference) -> ClosedStream:
        """Returns an object as one stream."""
        reading = self._together.narrowed([reference]) if self._narrows else self._together
        read = partial(read_reference, reference, reading, has_sequence=self._has_sequence, spool=self._spool)
        has_own = self._needs_sequence and reference.oldest is not None
        return ClosedStream(reference.low, reference.seq, reference.ordinal, read, has_own)

    def _at_once(self, group: Sequence[Reference]) -> ClosedStream:
        """Returns tiny objects as one stream, ordered by one sort."""
        together = self._together
        reading = replace(together.narrowed(group), streams=max(READERS, sum(not r.data for r in group)))
        kept = set(reading.schema.names)
        schema = pa.schema([f for f in self._schema if f.name in kept or f.name in ORDER.names])
        return Gathering(
            partial(read_reference, reading=reading, has_sequence=self._has_sequence),
            reading.key,
            schema,
            has_sequence=self._needs_sequence,
            most_bytes=together.limits.share_bytes(together.streams),
            batch_bytes=together.batch_bytes,
            instead=self._one_by_one,
        ).stream(group)

    def _one_by_one(self, group: Sequence[Reference]) -> Iterator[pa.Table]:
        """Yields the records of tiny objects that are too large to be sorted at once: groups of them become runs
        on disk first."""
        if self._together.streams == 1:
            yield from self._merge_of(group)(group)
            return
        with self._spool.turn:
            stream = self._run(group)
        yield from stream.open()

    def _run(self, group: Sequence[Reference]) -> ClosedStream:
        """Merges small objects into a run on disk, and returns it as one stream."""
        return run(
            group,
            self._merge_of(group),
            spool=self._spool,
            # larger batches are no faster, and take three times the memory
            batch_bytes=self._together.batch_bytes // 4,
            has_sequence=self._needs_sequence,
        )

    def _merge_of(self, group: Sequence[Reference]) -> Callable[[Sequence[Reference]], Iterator[pa.Table]]:
        """Returns a function that merges the references of a group, one stream each.  They may use the memory of
        the whole merge, and are not grouped again."""
        reading = self._reading.narrowed(group)
        limits = replace(reading.limits, max_streams=max(1, len(group)), max_tiny_bytes=0)
        return partial(
            _in_windows,
            reading=replace(reading, streams=len(group), limits=limits),
            has_sequence=self._has_sequence,
        )


def _may_fulfil(plan: ScanPlan, alone: Reference) -> bool:
    assert plan.where is not None
    schema = plan.schemas[alone.schema]
    may = may_hold(plan.where, schema, alone.columns, records=alone.records)
    return may and may_lie_there(plan.where, schema, alone.columns) and alone.object not in plan.absent


def _read_columns(plan: ScanPlan, cluster: Mapping[Reference, Covers]) -> pa.Schema:
    """Returns the columns to read: the wanted ones; those of the key, for the merge; those of conditions; and the
    column of delete markers."""
    conditions = fields_of(t for covers in cluster.values() for t in covers.tombstones)
    asked = top_level(plan.where) if plan.where is not None else ()
    more = [*plan.key.names, *conditions, *asked, *([DELETED] if plan.rule.kind == "upsert" else [])]
    schema_names = set(plan.schema.names)
    names = dict.fromkeys([*plan.columns, *(name for name in more if name in schema_names)])
    schema = pa.schema([plan.schema.field(name) for name in names])
    return with_rows(with_markers(schema, plan.rule, conditions), plan.keep)


def _spare(plan: ScanPlan) -> frozenset[str]:
    """Returns the key fields that neither the result nor the condition has."""
    asked = top_level(plan.where) if plan.where is not None else ()
    return frozenset(plan.key.names) - {*plan.columns, *asked}


def with_markers(schema: pa.Schema, rule: Rule, conditions: Sequence[str]) -> pa.Schema:
    """Returns the schema, with `_deleted` added if conditions of tombstones may turn records into delete
    markers."""
    if rule.kind != "upsert" or not conditions or DELETED in schema.names:
        return schema
    return schema.append(pa.field(DELETED, pa.bool_()))
