"""Writing to a branch of a pool: `pool.branch("main").load([...])`.

A load is: read blocks, write sorted objects, land one transaction.  Nothing that fails on the way leaves a
trace in the history; objects of a load that never landed are the vacuum's.  `job` hands the same steps to a
distributed engine: workers build objects, one driver commits them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lake_core.catalog import Settings
from lake_core.combine import Rule
from lake_core.combine.rule import rule_of
from lake_core.commits import Draft, History, Landed, Reference
from lake_core.commits.state import Remembered
from lake_core.compaction import Compaction, begin, draft, rewrite
from lake_core.errors import InvalidInput
from lake_core.ingest.block import Block, Reading
from lake_core.ingest.formats import read_blocks
from lake_core.ingest.load import ObjectBuilder
from lake_core.naming import NOKEY, REJECTED, IdSource
from lake_core.objects.metadata import Origin
from lake_core.objects.write import WrittenObject
from lake_core.records import Action, AddObject, Consume, Source, Transaction
from lake_core.records.pools import PoolConfig
from lake_core.store import Store


@dataclass(frozen=True)
class LoadResult:
    """What a load did: `transaction` is None where there was nothing to load.

    `records` counts those of the pool itself, `size` the bytes of all objects; `nokey` and `rejected` those of
    the sub-pools.  `repeated` says that the token had been used and the first outcome stands.
    """

    transaction: int | None
    id: str | None = None
    records: int = 0
    objects: int = 0
    size: int = 0
    nokey: int = 0
    rejected: int = 0
    repeated: bool = False


@dataclass(frozen=True)
class Job:
    """A load under way: all that a worker must know to build objects for it, and the driver to commit it."""

    origin: Origin
    branch: str
    base: int
    memory: int
    token: str
    message: str


@dataclass(frozen=True)
class CompactResult:
    """What a compaction did: `inputs` references of `size_in` bytes became `objects` of `size_out`."""

    transaction: int
    id: str
    inputs: int
    objects: int
    records: int
    size_in: int
    size_out: int


@dataclass(frozen=True)
class Branch:
    """A line of transactions of a pool, to be written to."""

    store: Store
    pool: PoolConfig
    name: str
    history: History
    ids: IdSource
    author: str
    lake_id: str

    @property
    def settings(self) -> Settings:
        """The pool's policies."""
        return Settings(self.pool.settings)

    @property
    def rule(self) -> Rule:
        """What becomes of equal keys."""
        return rule_of(self.pool.kind, self.pool.aggregates)

    def load(
        self,
        files: list[str],
        *,
        format: str = "auto",
        token: str = "",
        message: str = "",
        progress: Callable[[str], None] = lambda file: None,
    ) -> LoadResult:
        """Take in files (NDJSON, CSV, Parquet; plain or gzipped) as one transaction.

        With a `token` a repeated call returns the first outcome.  `progress` hears of each file begun.
        Raises InvalidInput (nothing is committed), NotFound, Conflict, OutcomeUnknown, Unavailable.
        """

        def blocks() -> Iterable[Block]:
            for file in files:
                progress(file)
                yield from read_blocks(self.reading(file), format=format, null=self.settings["csv.null"])

        return self._load(blocks(), token=token, message=message)

    def append(self, records: pa.Table, *, token: str = "", message: str = "") -> LoadResult:
        """Take in an Arrow table as one transaction; as `load`."""
        return self._load([Block(records)], token=token, message=message)

    def reading(self, file: str) -> Reading:
        """How the pool wants a file read."""
        return Reading(
            file,
            declared=self.settings.declared,
            key=self.pool.key.names,
            bad_records=self.settings["bad_records"],
        )

    def job(self, *, token: str = "", message: str = "") -> Job | LoadResult:
        """Begin a load whose objects are built elsewhere, or give the outcome that the token stands for."""
        head = self.history.load()
        if token and (done := head.state.tokens.get(token)) is not None:
            return _repeated(done)
        return Job(
            origin=Origin(self.lake_id, self.pool.id, self.ids.new(), self.author),
            branch=self.name,
            base=head.n,
            memory=self.settings["load.memory"],
            token=token,
            message=message,
        )

    def builder(self, job: Job, *, first_place: int = 0) -> ObjectBuilder:
        """Builds objects for the job, here."""
        return ObjectBuilder(
            self.store, self.pool.key, job.origin, job.memory, self.ids.new, first_place, self.rule
        )

    def commit(
        self,
        job: Job,
        *,
        objects: list[AddObject],
        schemas: list[pa.Schema],
        sources: list[Source] | None = None,
    ) -> LoadResult:
        """Land the objects of a job; nothing is written where there are neither objects nor sources.

        Sources alone are recorded too (an empty file is taken in once, not looked at for ever).
        """
        actions: tuple[Action, ...] = (*([Consume(tuple(sources))] if sources else []), *objects)
        if not actions:
            return LoadResult(None)
        draft = Draft(
            id=job.origin.transaction,
            branch=job.branch,
            base=job.base,
            author=self.author,
            actions=actions,
            schemas=tuple(schemas),
            message=job.message,
            token=job.token,
        )
        landed = self.history.commit(draft)
        return _repeated(landed.repeated) if landed.repeated else _result(landed, objects)

    def begin_compaction(self, inputs: Sequence[Reference], *, outputs: int, message: str) -> Compaction:
        """A job for references of the branch; its pieces may be rewritten anywhere.

        Raises ObjectMissing, Corrupt, Unavailable.
        """
        head = self.history.load()
        return begin(
            head.state,
            inputs,
            self.store,
            pool=self.pool,
            branch=self.name,
            base=head.n,
            origin=Origin(
                self.lake_id,
                self.pool.id,
                self.ids.new(),
                self.author,
                inputs=tuple(sorted({r.object for r in inputs})),
            ),
            outputs=outputs,
            message=message,
        )

    def commit_compaction(self, work: Compaction, written: Sequence[WrittenObject]) -> CompactResult:
        """Put the outputs in the inputs' place; raises Conflict where another compaction took an input."""
        landed = self.history.commit(draft(work, written, author=self.author))
        return CompactResult(
            landed.n,
            landed.id,
            inputs=len(work.inputs),
            objects=len(written),
            records=sum(w.action.records for w in written),
            size_in=work.size,
            size_out=sum(w.action.size for w in written),
        )

    def compact(self, inputs: Sequence[Reference], *, outputs: int = 1, message: str = "") -> CompactResult:
        """Rewrite references as one sorted run of about `outputs` objects, here, one after another.

        Raises Conflict (another compaction took an input), ObjectMissing, Corrupt, OutcomeUnknown, Unavailable.
        """
        work = self.begin_compaction(inputs, outputs=outputs, message=message)
        written = [rewrite(work, piece, self.store, new_id=self.ids.new) for piece in range(len(work.pieces))]
        return self.commit_compaction(work, [w for w in written if w is not None])

    def _load(self, blocks: Iterable[Block], *, token: str, message: str) -> LoadResult:
        job = self.job(token=token, message=message)
        if isinstance(job, LoadResult):
            return job
        builder = self.builder(job)
        for block in blocks:
            builder.add(block)
        written = builder.finish()
        return self.commit(job, objects=[w.action for w in written], schemas=[w.schema for w in written])


def _repeated(first: Remembered) -> LoadResult:
    """The outcome of the commit that used the token first."""
    return LoadResult(
        first.n,
        first.id,
        first.records,
        first.objects,
        first.size,
        first.nokey,
        first.rejected,
        repeated=True,
    )


def _result(landed: Landed, objects: list[AddObject]) -> LoadResult:
    def count(sub: str) -> int:
        return sum(o.records for o in objects if o.sub == sub)

    return LoadResult(
        landed.n,
        landed.id,
        records=count(""),
        objects=len(objects),
        size=sum(o.size for o in objects),
        nokey=count(NOKEY),
        rejected=count(REJECTED),
    )


def count_actions(transaction: Transaction) -> dict[str, int]:
    """Actions by kind, for the log."""
    counts: dict[str, int] = {}
    for action in transaction.actions:
        kind = str(type(action).__struct_config__.tag)
        counts[kind] = counts.get(kind, 0) + 1
    return counts


def check_writable(sub: str) -> None:
    """Sub-pools are filled by loads of their pool; raises InvalidInput."""
    if sub:
        raise InvalidInput(f"the sub-pool {sub} is read-only: load into the pool itself")
