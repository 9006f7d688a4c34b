"""Applying tombstones: which references have to be searched or rewritten, which tombstones are done; deterministic.

A tombstone is due when it is older than the policy says, or when there are more than readers should bear.  What it
may cover, by range, age and statistics, is searched; objects that hold covered records are rewritten, the others
are marked, so that neither is looked at again.  A tombstone that can cover nothing any more is retired; that of a
replace is kept for a while longer, since loads that began before the replace still have to learn of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from lake_core.history import Reference
from lake_core.history.tombstone import Tombstone, covering
from lake_core.keys import PoolKey
from lake_core.reading.deleted import apply_tombstones, fields_of, needs_sequences
from lake_core.reading.merge.streams import Reading, read_reference
from lake_core.reading.revision import Revision
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


def plan_apply(revision: Revision, policy: Policy) -> ApplyPlan:
    """The work on a branch's tombstones.  References whose records have all aged off are removed too."""
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
    for tombstone in revision.aged_off if rule.kind != "upsert" else ():
        for reference in revision.may_hide(tombstone):
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


def searches(revision: Revision, references: tuple[Reference, ...]) -> Iterator[Search]:
    """The tombstones to look for in each reference, which may be of sub-pools too."""
    of_sub_pools = {name: revision.of_sub_pool(name) for name in {r.sub_pool for r in references}}
    for reference in references:
        of = of_sub_pools[reference.sub_pool]
        tombstones = covering(of.tombstones, reference, of.state.schema)
        names = dict.fromkeys([*of.key.names, *fields_of(tombstones)])
        schema = pa.schema([of.schema.field(name) for name in names if name in of.schema.names])
        yield Search(of.config.id, of.key, reference, tombstones, schema)


def holds_covered(search: Search, store: Store) -> bool:
    """Whether the reference holds a record that one of the tombstones covers.

    Raises ObjectMissing, Corrupt, Unavailable.
    """
    key_range = search.reference.key_range
    reading = Reading(store, search.pool_id, search.key, key_range, search.schema)
    has_sequence = needs_sequences(search.tombstones, [search.reference])
    for table in read_reference(search.reference, reading, has_sequence=has_sequence):
        left = apply_tombstones([table], search.tombstones, key=search.key, has_markers=False)
        if sum(t.num_rows for t in left) < table.num_rows:
            return True
    return False
