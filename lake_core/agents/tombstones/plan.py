"""Applying tombstones: which references have to be searched or rewritten, which tombstones are done; pure.

A tombstone is due when it is older than the policy says, or when there are more than readers should bear.  What it
may cover, by range, age and statistics, is searched; objects that hold covered records are rewritten, the others
are marked, so that neither is looked at again.  A tombstone that can cover nothing any more is retired; that of a
replace is kept for a while longer, since loads that began before the replace still have to learn of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lake_core.combine import Rule
from lake_core.history import PoolState, Reference
from lake_core.history.rebase import still_covered
from lake_core.history.tombstone import Tombstone, covering
from lake_core.keys import PoolKey
from lake_core.keys.spec import ARRIVAL
from lake_core.reading.deleted import apply_tombstones, fields_of, needs_sequences
from lake_core.reading.merge.streams import Reading, read_reference
from lake_core.reading.plan import united_schema
from lake_core.store import Store

MAX_TOMBSTONES = 64
"""Where there are more, the oldest are due whatever their age."""


@dataclass(frozen=True)
class Policy:
    """Times in microseconds since 1970: tombstones up to `due` are applied, those of replaces up to `forget`
    may be retired.  Without `due` all are, also those of writers whose clock is ahead."""

    due: int | None
    forget: int


@dataclass(frozen=True)
class ApplyPlan:
    """What is to be done: `covered` goes as a whole, `suspects` are searched, `retirable` covers nothing any more.

    `due` and `left` count tombstones.
    """

    covered: tuple[Reference, ...]
    suspects: tuple[Reference, ...]
    retirable: tuple[str, ...]
    due: int
    left: int

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do."""
        return not (self.covered or self.suspects or self.retirable)


def plan_apply(
    state: PoolState, policy: Policy, *, branch: str, rule: Rule, aged: Sequence[Tombstone] = ()
) -> ApplyPlan:
    """The work on a branch's tombstones.  Of what is `aged` off, references go that hold nothing else."""
    held = state.branches[branch]
    ordered = sorted(held.tombstones.values(), key=lambda t: t.seq)
    too_many = max(0, len(ordered) - MAX_TOMBSTONES)
    reached = {t.id: still_covered(state, held, t) for t in ordered}
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
    for tombstone in aged if rule.kind != "upsert" else ():
        for reference in still_covered(state, held, tombstone):
            if tombstone.covers_all(reference, state.schema):
                covered[reference.object, reference.low] = reference
    done = [t for t in ordered if not reached[t.id] and not (t.replaces and t.time > policy.forget)]
    return ApplyPlan(
        covered=tuple(sorted(covered.values(), key=lambda r: r.order)),
        suspects=tuple(
            sorted((r for name, r in suspects.items() if name not in covered), key=lambda r: r.order)
        ),
        retirable=tuple(t.id for t in done),
        due=len(due),
        left=len(ordered) - len(done),
    )


@dataclass(frozen=True)
class Search:
    """One reference and all tombstones that may cover records of it, as plain values for any worker.

    `schema`: the fields of the key and of the conditions.
    """

    pool_id: str
    key: PoolKey
    reference: Reference
    tombstones: tuple[Tombstone, ...]
    schema: pa.Schema


def searches(
    state: PoolState, references: tuple[Reference, ...], *, branch: str, pool_id: str, key: PoolKey
) -> Iterator[Search]:
    """What to look for in each reference; `key` is the pool's."""
    known = {
        sub_pool: united_schema(state, branch=branch, sub_pool=sub_pool)
        for sub_pool in {r.sub_pool for r in references}
    }
    for reference in references:
        fields, order = known[reference.sub_pool], ARRIVAL if reference.sub_pool else key
        found = covering(state.branches[branch].tombstones.values(), reference, state.schema)
        names = dict.fromkeys([*order.names, *fields_of(found)])
        schema = pa.schema([fields.field(name) for name in names if name in fields.names])
        yield Search(pool_id, order, reference, found, schema)


def holds_covered(search: Search, store: Store) -> bool:
    """Whether the reference holds a record that one of the tombstones covers.

    Raises ObjectMissing, Corrupt, Unavailable.
    """
    key_range = search.reference.key_range
    reading = Reading(store, search.pool_id, search.key, key_range, search.schema)
    ordered = needs_sequences(search.tombstones, [search.reference])
    for table in read_reference(search.reference, reading, has_sequence=ordered):
        left = apply_tombstones([table], search.tombstones, key=search.key, has_markers=False)
        if sum(t.num_rows for t in left) < table.num_rows:
            return True
    return False
