"""Carrying out a compaction: some references of a branch become one sorted run of new objects.

    begin_compaction    a job of the planner becomes work: pieces of its key range, one an output
    rewrite             one piece: merge, combine, write; in any process, any number of times
    commit_compaction   the inputs go, the outputs come, in one transaction

`compact` does all three here; `run.run_jobs` on any workers.  A job that dies leaves objects that nothing
refers to.  Records keep their sequence, so what others commit meanwhile means the same before and after; only a
compaction of the same input makes the work useless.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import msgspec
import pyarrow as pa

from lake_core import naming
from lake_core.errors import Conflict
from lake_core.history import Draft, Reference
from lake_core.history.between import Ages
from lake_core.history.lift import Lifts
from lake_core.history.rebase import check_held
from lake_core.history.snapshot.reference import span_of
from lake_core.history.tombstone import Tombstone, covering
from lake_core.ids import first_above, not_below
from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.ranges import EVERYTHING
from lake_core.leases import HeldLease
from lake_core.phrases import counted
from lake_core.records import Action, RemoveReference
from lake_core.records.pools import PoolConfig
from lake_core.schemas import Rule
from lake_core.schemas.hidden import with_rows
from lake_core.schemas.rule import rule_of
from lake_core.schemas.schema import unite_schemas
from lake_core.store import Store
from log_lake.combine.newest import emptied, without_markers
from log_lake.compaction.jobs import CompactionResult
from log_lake.lake.branch import Branch
from log_lake.objects.metadata import Origin
from log_lake.objects.read import DataObject
from log_lake.objects.write import ObjectWriter, WrittenObject, write_tables
from log_lake.presence.absence import planning_again
from log_lake.reading.deleted import fields_of
from log_lake.reading.limits import LIMITS, ScanLimits
from log_lake.reading.merge.clusters import clusters
from log_lake.reading.merge.streams import ReferenceReading
from log_lake.reading.plan import overlap_depth
from log_lake.reading.ranges import WeightedSample, split_range
from log_lake.reading.revision import Revision
from log_lake.reading.scan import live_records, with_markers
from log_lake.settings.settings import Settings
from log_lake.workers import Here, Worker, Workers

SMALLEST_PIECE = 16 << 20
"""Bytes: a job is not cut into smaller outputs for the sake of parallelism."""


@dataclass(frozen=True)
class PendingCompaction:
    """A job under way: what to merge, and into which pieces of the key range.

    `keeps_markers`: somewhere below lies an older run that delete markers must still hide.  None of its objects has
    a smaller id than `first`, whatever the clock of the worker says.
    """

    config: PoolConfig
    branch: str
    read_version: int
    origin: Origin
    inputs: tuple[Reference, ...]
    pieces: tuple[KeyRange, ...]
    schema: pa.Schema
    keeps_markers: bool
    message: str
    tombstones: tuple[Tombstone, ...] = ()
    schemas: Mapping[str, pa.Schema] = field(default_factory=dict)
    limits: ScanLimits = LIMITS
    lifts: Lifts = field(default_factory=dict)
    first: str = ""

    @property
    def sub_pool(self) -> str:
        """The sub-pool of all inputs, "" for the pool itself."""
        return self.inputs[0].sub_pool

    @property
    def key(self) -> PoolKey:
        """The order of the records."""
        return self.config.key_of(self.sub_pool)

    @property
    def rule(self) -> Rule:
        """What becomes of equal keys."""
        return rule_of(self.config, self.sub_pool)

    @property
    def format(self) -> str:
        """The format of the outputs."""
        chosen = str(Settings(self.config.settings)["format"])
        return naming.COMPACTED[naming.format_in(self.sub_pool, chosen)]

    @property
    def size(self) -> int:
        """Bytes of the inputs."""
        return sum(r.size for r in self.inputs)


def begin_compaction(
    branch: Branch, inputs: Sequence[Reference], *, outputs: int, message: str
) -> PendingCompaction:
    """A job for references of the branch, cut into about `outputs` pieces, which may be rewritten anywhere.

    Reads the samples in the inputs' footers.  Raises NotFound, Conflict (another compaction took an input before
    this began, or the inputs leave out a reference that an aggregate pool must combine with them), InvalidInput
    (`Branch.revision_to_rewrite`), ObjectMissing, Corrupt, Unavailable.
    """
    branch.check_writable()
    ordered = tuple(sorted(inputs, key=lambda r: r.order))
    revision = branch.revision_to_rewrite().of_sub_pool(ordered[0].sub_pool)
    state, rule, pool = revision.state, revision.rule, revision.config
    for reference in ordered:
        check_held(revision.held, reference.object, reference.low)
    if len({revision.held.is_unmerged(reference) for reference in ordered}) > 1:
        raise Conflict(
            f"branch {branch.name!r}: a compaction takes what a merge will bring to the parent, or the rest, never "
            "both; plan again"
        )
    schema = unite_schemas(state.schema(id) for id in _schemas(revision, ordered))
    hiding = [*revision.tombstones, *revision.aged_off]
    reaching = {r: covering(hiding, r, state.schema) for r in ordered}
    tombstones = {t.id: t for covers in reaching.values() for t in covers}
    near = revision.references_in(span_of(ordered))
    if rule.kind == "aggregate":
        left = [r for r, covers in reaching.items() if not any(t.covers_all(r, state.schema) for t in covers)]
        _check_neighbours(near, ordered, left)
    with planning_again(branch.history):
        samples = [_sample(r, branch.store, pool_id=pool.id) for r in ordered] if outputs > 1 else []
    # the first and the last piece are open, since clips bound the records anyway
    pieces = split_range(samples, EVERYTHING, pieces=outputs) if samples else [EVERYTHING]
    stored = with_markers(schema, rule, fields_of(tombstones.values()))
    typed = rule.keeps_rows(naming.format_of(r.object) for r in ordered)
    return PendingCompaction(
        config=pool,
        branch=branch.name,
        read_version=revision.version,
        origin=Origin(
            branch.context.lake_id,
            pool.id,
            branch.context.ids.new(),
            branch.context.author,
            inputs=tuple(sorted({r.object for r in ordered})),
        ),
        inputs=ordered,
        pieces=tuple(pieces),
        schema=with_rows(stored) if typed else stored,
        # what the markers of unmerged records hide may be on the parent
        keeps_markers=revision.held.is_unmerged(ordered[0]) or _hides_older(near, ordered),
        message=message,
        tombstones=tuple(tombstones.values()),
        schemas={r.schema: state.schema(r.schema) for r in ordered},
        limits=revision.limits,
        lifts=revision.lifts_of(ordered),
        first=first_above(state.removed.floor, now=branch.context.now()),
    )


def _check_neighbours(
    near: Sequence[Reference], inputs: Sequence[Reference], left: Sequence[Reference]
) -> None:
    """Raises Conflict if another reference lies between inputs in age, on a key of two of them.

    `left` are the inputs that keep records.  The planner includes such references (`history.between` says
    why); but another compaction may have made one since.
    """
    if len(left) < 2:
        return
    taken = {(r.object, r.low) for r in inputs}
    between = Ages(near).between(left, most=len(inputs))
    if others := [r for r in between if (r.object, r.low) not in taken]:
        raise Conflict(
            f"object {others[0].object} lies between the inputs of this compaction in age, and shares keys with "
            "two of them: an aggregate pool must combine it with them; plan the compaction again, or add it to "
            "the inputs"
        )


def _schemas(revision: Revision, inputs: Sequence[Reference]) -> Iterator[str]:
    """The inputs' schemas in the order in which the branch learned of them, so that fields keep their order."""
    used = {r.schema for r in inputs}
    return (id for id in revision.snapshot.schemas(revision.sub_pool) if id in used)


def _sample(reference: Reference, store: Store, *, pool_id: str) -> WeightedSample:
    with DataObject(store, pool_id=pool_id, object_id=reference.object) as data:
        footer = data.metadata
    whole = WeightedSample.of_ranks(
        footer.sample, high=footer.high, records=footer.records, weight=float(reference.size)
    )
    return whole.within(reference.key_range)


def _hides_older(references: Sequence[Reference], inputs: Sequence[Reference]) -> bool:
    """Whether a reference that is no input, and overlaps one, may hold older records."""
    chosen = {(r.object, r.low) for r in inputs}
    newest = max(r.seq for r in inputs)
    others = [r for r in references if (r.object, r.low) not in chosen and r.first_seq <= newest]
    return any(other.key_range.overlaps(one.key_range) for other in others for one in inputs)


def rewrite(work: PendingCompaction, worker: Worker, piece: int) -> WrittenObject | None:
    """Write one piece as one object; None if it has no records.

    Raises ObjectMissing, Corrupt, Unavailable.  Nothing refers to the object until the job is committed.
    """
    writer = ObjectWriter(
        worker.store,
        key=work.key,
        object_id=naming.object_id_of(not_below(worker.new_id(), work.first), work.format),
        origin=work.origin,
        ordinal=piece,
        sub_pool=work.sub_pool,
        limits=work.limits.objects,
        partition=work.pieces[piece].intersect(span_of(work.inputs)),
    )
    return write_tables(writer, lambda: _records(work, work.pieces[piece], worker.store))


def _records(work: PendingCompaction, key_range: KeyRange, store: Store) -> Iterator[pa.Table]:
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
    )
    for cluster in clusters(inside):
        tables = live_records(
            {r: covering(work.tombstones, r, work.schemas.__getitem__) for r in cluster},
            reading,
            rule=work.rule,
            schemas=work.schemas,
            has_sequence=True,
        )
        if work.rule.kind == "upsert" and not work.keeps_markers:
            tables = (without_markers(table) for table in tables)
        elif work.rule.kind == "upsert":
            tables = (emptied(table, work.key.names) for table in tables)
        yield from tables


def draft(work: PendingCompaction, written: Sequence[WrittenObject], *, author: str) -> Draft:
    """The transaction of the job: inputs out, outputs in."""
    actions: tuple[Action, ...] = (
        *(RemoveReference(r.object, r.low) for r in work.inputs),
        *(msgspec.structs.replace(w.action, applied=work.read_version) for w in written),
    )
    return Draft(
        id=work.origin.transaction_id,
        branch=work.branch,
        read_version=work.read_version,
        author=author,
        actions=actions,
        schemas=tuple({w.action.schema: w.schema for w in written}.values()),
        message=work.message,
        # what the markers hid may be put back by a revert while the job runs
        oldest_only=work.rule.kind == "upsert" and not work.keeps_markers,
    )


def commit_compaction(
    branch: Branch, work: PendingCompaction, written: Sequence[WrittenObject]
) -> CompactionResult:
    """Put the outputs in the inputs' place; raises Conflict if another compaction took an input."""
    committed = branch.commit_draft(
        draft(work, written, author=branch.context.author),
        does=f"merges {counted(len(work.inputs), 'object')} into {counted(len(written), 'object')}",
    )
    return CompactionResult(
        committed.version,
        inputs=len(work.inputs),
        objects=len(written),
        records=sum(w.action.records for w in written),
        size_in=work.size,
        size_out=sum(w.action.size for w in written),
    )


def lease_of(branch: Branch, work: PendingCompaction) -> HeldLease:
    """The lease of a job, to be held until it is committed."""
    return branch.write_lease(
        work.origin.transaction_id, read_version=work.read_version, first=work.first, why="compaction"
    )


def compact(
    branch: Branch, inputs: Sequence[Reference], *, outputs: int = 1, message: str = ""
) -> CompactionResult:
    """Rewrite references as one sorted run of about `outputs` objects, here, one after another.

    Raises what `begin_compaction` raises, and OutcomeUnknown.
    """
    work = begin_compaction(branch, inputs, outputs=outputs, message=message)
    with planning_again(branch.history), lease_of(branch, work):
        return commit_compaction(branch, work, write(work, Here.of(branch.context)))


def write(work: PendingCompaction, workers: Workers) -> list[WrittenObject]:
    """The objects of all pieces.  Raises what `rewrite` raises."""
    written = workers.map(partial(rewrite, work), range(len(work.pieces)))
    return [one for one in written if one is not None]


def pieces_for(outputs: int, *, size: int, parallelism: int) -> int:
    """How many pieces to cut a job of `size` bytes into: about `outputs`, and no core of few without work."""
    pieces = -(-outputs // parallelism) * parallelism if outputs < 4 * parallelism else outputs
    return max(1, min(pieces, max(outputs, size // SMALLEST_PIECE)))
