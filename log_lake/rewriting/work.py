"""References to rewrite as one sorted run of new objects: the work begins here, and any worker writes it.

`begin_rewriting` makes one value from a revision.  `write_piece` does a part of it in any process, any number of
times: it merges, combines, leaves records out, and writes.  No reference names a new object before
`exchange.commit`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from lake_core import naming
from lake_core.history import Reference
from lake_core.history.snapshot.reference import span_of
from lake_core.history.tombstone import Tombstone
from lake_core.ids import first_above, not_below
from lake_core.keys import KeyRange
from lake_core.keys.ranges import EVERYTHING
from lake_core.schemas.hidden import DELETED, with_rows
from lake_core.schemas.schema import unite_schemas
from lake_core.store import Store
from log_lake.content.content import ObjectSums
from log_lake.lake.branch import Branch
from log_lake.lake.origins import check_begun_with
from log_lake.leases import HeldLease
from log_lake.loading.options import SCAN
from log_lake.measuring import timed
from log_lake.objects.metadata import Origin
from log_lake.objects.write import ObjectWriter, write_tables
from log_lake.reading.covers import Covering
from log_lake.reading.deleted import Took, fields_of
from log_lake.reading.merge.clusters import clusters
from log_lake.reading.merge.streams import ReferenceReading
from log_lake.reading.plan import overlap_depth
from log_lake.reading.revision import Revision
from log_lake.reading.scan import live_records, with_markers
from log_lake.rewriting.conserving import check_piece
from log_lake.rewriting.counting import check_counts
from log_lake.rewriting.divided import write_divided
from log_lake.rewriting.ordering import InOrder
from log_lake.rewriting.pieces import RewrittenPiece, objects_of
from log_lake.rewriting.refusal import refusal
from log_lake.rewriting.rewriting import Rewriting
from log_lake.rewriting.settings import CONTENT
from log_lake.settings import Settings
from log_lake.workers import Worker, Workers


def begin_rewriting(
    branch: Branch,
    revision: Revision,
    inputs: tuple[Reference, ...],
    *,
    hiding: Iterable[Tombstone],
    format: str,
    message: str,
    leaves_markers: bool = False,
) -> Rewriting:
    """Returns the work on references of one sub-pool of the branch's revision, as a single piece.

    `hiding`: the tombstones to apply.  `leaves_markers`: delete markers may take the place of records.

    Raises Unavailable, and Corrupt if an input lies in another pool's folder and the pool is no clone that
    began with it.
    """
    revision = revision.of_sub_pool(inputs[0].sub_pool)
    state, context, hiding = revision.state, branch.context, tuple(hiding)
    covering = Covering(hiding, state.schema)
    tombstones = {t.id: t for r in inputs for t in covering.of(r).tombstones}
    used = {r.schema for r in inputs}
    # in the order in which the branch learned of them, so that fields keep their order
    united = unite_schemas(
        state.schema(id) for id in revision.snapshot.schemas(revision.sub_pool) if id in used
    )
    schema = with_markers(united, revision.rule, fields_of(tombstones.values()))
    if leaves_markers and DELETED not in schema.names:
        schema = schema.append(pa.field(DELETED, pa.bool_()))
    typed = revision.rule.keeps_rows(naming.format_of(r.object) for r in inputs)
    objects = tuple(sorted({r.object for r in inputs}))
    check_begun_with(context, revision.config, objects)
    return Rewriting(
        config=revision.config,
        branch=branch.name,
        read_version=revision.version,
        origin=Origin(context.lake_id, revision.config.id, context.ids.new(), context.author, inputs=objects),
        inputs=inputs,
        sub_pool=revision.sub_pool,
        schema=with_rows(schema) if typed else schema,
        schemas={id: state.schema(id) for id in used},
        tombstones=tuple(tombstones.values()),
        lifts=revision.lifts_of(inputs),
        limits=revision.limits,
        first=first_above(state.removed.floor, now=context.now()),
        format=format,
        verifies=revision.settings["verify.rewrites"] == CONTENT,
        sums=branch.has_sums,
        indexes=revision.index_rules,
        cluster=revision.cluster,
        message=message,
    )


def lease_of(branch: Branch, work: Rewriting, *, why: str) -> HeldLease:
    """Returns the lease that protects the work's inputs; hold it until the work is committed."""
    return branch.write_lease(
        work.origin.transaction_id, read_version=work.read_version, first=work.first, why=why
    )


def write_piece(work: Rewriting, worker: Worker, piece: int) -> RewrittenPiece:
    """Writes one piece as one object, or as one for each bucket, unless no record is left.

    Raises NotConserved if the object does not have the records that the inputs have.  Raises ObjectMissing,
    Corrupt, Unavailable.
    """
    key_range, settings = work.pieces[piece], Settings(work.config.settings)
    most = work.cluster.of if work.divides and work.cluster is not None else 1

    def new_writer(bucket: int = 0) -> ObjectWriter:
        return ObjectWriter(
            worker.store,
            key=work.key,
            object_id=naming.object_id_of(not_below(worker.new_id(), work.first), work.format),
            origin=work.origin,
            ordinal=piece * most + bucket,
            sub_pool=work.sub_pool,
            limits=work.limits.objects.of_layout(scan=settings["layout"] == SCAN),
            sums=work.sums,
            indexes=work.indexes,
            cluster=work.cluster,
            partition=key_range.intersect(span_of(work.inputs)) if work.bounded else EVERYTHING,
        )

    seen = _Seen(work)

    def records() -> Iterator[pa.Table]:
        return seen.through(_records(work, key_range, worker.store, seen.took))

    if work.divides and work.cluster is not None:
        written = tuple(write_divided(records(), work.cluster, new_writer))
    else:
        alone = write_tables(new_writer(), records)
        written = () if alone is None else (alone,)
    id = written[0].action.object if written else ""
    if seen.order.fault:
        raise refusal(work, "records by key and age", seen.order.fault, id=id)
    if work.verifies:
        check_piece(work, key_range, worker.store, written)
    return RewrittenPiece(written, seen.taken)


@dataclass
class _Seen:
    """Watches the records of a piece while it is written: their order, and the sums of the records that are left
    out.

    It does nothing if no sums will be compared (`Rewriting.conserves`).
    """

    work: Rewriting
    order: InOrder = field(init=False)
    taken: ObjectSums = field(init=False)

    def __post_init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self.order, self.taken = InOrder(self.work.key, strictly=not self.work.rule.keeps_all), ObjectSums()

    @property
    def took(self) -> Took | None:
        """The function that gets the records that deletes hide; None if no sums will be compared."""
        return self._take if self.work.conserves else None

    def _take(self, table: pa.Table) -> None:
        self.taken.add(table)

    def through(self, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Yields the tables as the new object will hold them.  It forgets what it saw before, because a writer may
        begin again."""
        self._begin()
        for table in tables:
            kept = self.work.keeps(table)
            if self.work.conserves:
                self.order.see(kept)
                if kept.num_rows != table.num_rows:
                    self.taken.add(table)
                    self.taken.take(kept)
            yield kept


def write_whole(worker: Worker, work: Rewriting) -> RewrittenPiece:
    """Writes work that is a single piece.  Raises what `write_piece` raises."""
    return write_piece(work, worker, 0)


def write(work: Rewriting, workers: Workers, store: Store) -> list[RewrittenPiece]:
    """Writes all pieces.

    Then this process compares the number of records in the new objects with that in the inputs, as their
    references say it.  If the numbers do not fit, it reads the footers of the inputs from `store` (`counting`).
    Raises what `write_piece` raises.
    """
    with timed(store, "rewriting.write"):
        pieces = workers.map(partial(write_piece, work), range(len(work.pieces)))
        check_counts(work, objects_of(pieces), store)
    return pieces


def _records(work: Rewriting, key_range: KeyRange, store: Store, took: Took | None) -> Iterator[pa.Table]:
    inside = [r for r in work.inputs if r.key_range.overlaps(key_range)]
    reading = ReferenceReading(
        store,
        work.config.id,
        work.key,
        key_range,
        work.schema,
        limits=work.limits,
        streams=overlap_depth(tuple(inside)),
        lifts=work.lifts,
        schemas=work.schemas,
    )
    covering = work.covering()
    for cluster in clusters(inside):
        yield from live_records(
            {r: covering.of(r) for r in cluster},
            reading,
            rule=work.rule,
            has_sequence=True,
            took=took,
        )
