"""Plans how to apply tombstones: which references to search or rewrite, and which tombstones are finished;
deterministic.

A tombstone is due if it is older than the policy says, or if there are more than readers should have to apply.
Each reference that a due tombstone may cover, by range, age and statistics, is searched.  If the reference holds
deleted records, it is rewritten; otherwise it is marked, so that no later run searches it again.  A tombstone
that can cover nothing any more is retired.  The tombstone of a replace stays a while longer, because loads that
began before the replace must still see it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from lake_core.history import Reference
from lake_core.history.lift import Lifts
from lake_core.history.tombstone import Tombstone
from lake_core.keys import PoolKey
from lake_core.records.transactions import version_of
from log_lake.agents.tombstones.policy import TombstonesPolicy
from log_lake.compaction.jobs import CompactionJob
from log_lake.reading.covers import Covering
from log_lake.reading.deleted import fields_of
from log_lake.reading.revision import Revision

MAX_TOMBSTONES = 64
"""The most tombstones of a branch: if it has more, the oldest are due whatever their age."""

MAX_WHOLE = 1_000
"""The most references that one job may remove.  References whose records are all deleted are removed together, in
one transaction."""

WHY = "remove deleted records"


@dataclass(frozen=True)
class ApplyPlan:
    """The work: remove the references `removable`, search the references `suspects`, retire the tombstones
    `retirable`.

    `due`: how many tombstones are due now; `remaining`: how many are left after this work.  `waits`: whether
    work may become due later without another write.
    """

    removable: tuple[Reference, ...]
    suspects: tuple[Reference, ...]
    retirable: tuple[str, ...]
    due: int
    remaining: int
    boundary: int = 0
    waits: bool = False

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do."""
        return not (self.removable or self.suspects or self.retirable)


def plan_apply(revision: Revision, policy: TombstonesPolicy) -> ApplyPlan:
    """Returns what is to be done about a branch's tombstones.  It also removes references whose records are
    all hidden by filters."""
    state, rule = revision.state, revision.rule
    ordered = sorted(revision.held.tombstones.values(), key=lambda t: t.seq)
    too_many = max(0, len(ordered) - MAX_TOMBSTONES)
    reached = {t.id: revision.may_hide(t) for t in ordered}
    due = [
        t
        for i, t in enumerate(ordered)
        if reached[t.id] and (policy.due is None or t.time <= policy.due or i < too_many)
    ]
    covered: dict[tuple[str, bytes], Reference] = {}
    suspects: dict[tuple[str, bytes], Reference] = {}
    for tombstone in due:
        whole = tombstone.condition is None or rule.kind != "upsert"
        for reference in reached[tombstone.id]:
            sure = whole and tombstone.covers_all(reference, state.schema)
            (covered if sure else suspects)[reference.object, reference.low] = reference
    for tombstone in revision.filters if rule.kind != "upsert" else ():
        for reference in revision.may_hide(tombstone):
            if tombstone.covers_all(reference, state.schema):
                covered[reference.object, reference.low] = reference
    done = [t for t in ordered if not reached[t.id] and not (t.replaces and t.time > policy.forget)]
    return ApplyPlan(
        removable=tuple(sorted(covered.values(), key=lambda r: r.order)),
        suspects=tuple(
            sorted((r for name, r in suspects.items() if name not in covered), key=lambda r: r.order)
        ),
        retirable=tuple(t.id for t in done),
        due=len(due),
        remaining=len(ordered) - len(done),
        boundary=revision.held.fork.boundary if revision.held.fork else 0,
        waits=bool(ordered or revision.filters),
    )


def plan_jobs(work: ApplyPlan, dirty: Sequence[Reference], *, target_size: int) -> list[CompactionJob]:
    """Returns jobs for the references that deletes cover completely, and for each of the `dirty` references, which
    hold deleted records."""
    jobs = []

    def kind(reference: Reference) -> tuple[str, bool]:  # a job holds references of one sub-pool and one side
        return reference.sub_pool, version_of(reference.seq) > work.boundary

    for of_kind in sorted({kind(r) for r in work.removable}):
        part = tuple(r for r in work.removable if kind(r) == of_kind)
        jobs += [CompactionJob(part[i : i + MAX_WHOLE], 1, WHY) for i in range(0, len(part), MAX_WHOLE)]
    return jobs + [CompactionJob((r,), max(1, round(r.size / target_size)), WHY) for r in dirty]


@dataclass(frozen=True)
class CoverSearch:
    """One reference and all tombstones that may cover its records, as plain values for any worker.

    `schema`: the fields of the key and of the conditions.
    """

    pool_id: str
    key: PoolKey
    reference: Reference
    tombstones: tuple[Tombstone, ...]
    schema: pa.Schema
    lifts: Lifts = field(default_factory=dict)


def searches(revision: Revision, references: tuple[Reference, ...]) -> Iterator[CoverSearch]:
    """Yields a search for each reference; references may belong to sub-pools."""
    of_sub_pools = {name: revision.of_sub_pool(name) for name in {r.sub_pool for r in references}}
    covering = {name: Covering(of.tombstones, of.state.schema) for name, of in of_sub_pools.items()}
    for reference in references:
        of = of_sub_pools[reference.sub_pool]
        tombstones = covering[reference.sub_pool].of(reference).tombstones
        names = dict.fromkeys([*of.key.names, *fields_of(tombstones)])
        fields = of.stored_schema
        schema = pa.schema([fields.field(name) for name in names if name in fields.names])
        lifts = of.lifts_of([reference])
        yield CoverSearch(of.config.id, of.key, reference, tombstones, schema, lifts)
