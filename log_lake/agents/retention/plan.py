"""Decides what expires: which references are removed whole, what a tombstone must hide, and what else is due.
Deterministic.

- By the time in a field: a reference is removed if its statistics say that all its records are old.  A
  tombstone hides the old records of the others.
- By the load, by records, by bytes: only whole references are removed, oldest first.  A reference is as old as
  its newest record, so the output of a compaction is as young as its youngest input.  Objects of one load
  expire together.

No older version of a record may reappear, and no value of an aggregate may change: a reference that hides
records of others stays (`history.revealing`).  On a branch, unmerged references stay too, because a merge must
bring them to the parent.  Records that arrive late expire with the next run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from lake_core.history import Reference
from lake_core.history.revealing import must_stay
from lake_core.history.snapshot.snapshot import Identity
from lake_core.history.tombstone import Tombstone
from lake_core.records.transactions import version_of
from log_lake.agents.retention.policy import RetentionPolicy
from log_lake.reading.age_off import newer_than_all, older_than, tells_time
from log_lake.reading.revision import Revision
from log_lake.where.keyrange import key_range_of

AGE, RECORDS, BYTES = "expire.age", "expire.records", "expire.bytes"

UNMERGED = "they are not merged into the parent branch yet"
OLDER_BELOW = "other objects hold older versions of their records"
PART_OF_KEYS = "other objects hold a part of the same keys"
NO_FIELD = "no record has the field expire.by"
NO_TIME = "the field expire.by tells no time; declare its type: lake set POOL type.FIELD=timestamp"


@dataclass(frozen=True)
class Expired:
    """A reference to remove from a branch, and the setting that makes it expire."""

    reference: Reference
    why: str


@dataclass(frozen=True)
class ExpirePlan:
    """What a branch loses at a version.

    `removed`: the references to remove, in the order of their age.  `hidden`: other references that may hold
    old records; `tombstone` hides these records, and is None if there are none.  A record is old if the time in
    the field `by` is before `older_than` (seconds since 1970).  `stays` counts, by reason, the references that
    are old enough but stay.
    """

    read_version: int
    removed: tuple[Expired, ...] = ()
    tombstone: Tombstone | None = None
    by: str = ""
    older_than: float = 0.0
    hidden: tuple[Reference, ...] = ()
    stays: Mapping[str, int] = field(default_factory=dict)

    @property
    def idle(self) -> bool:
        """Whether nothing is to be removed or hidden."""
        return not self.removed and self.tombstone is None

    @property
    def records(self) -> int:
        """How many records the removed references hold."""
        return sum(e.reference.records for e in self.removed)

    @property
    def size(self) -> int:
        """How many bytes the removed references take."""
        return sum(e.reference.size for e in self.removed)

    @property
    def why(self) -> dict[str, int]:
        """How many references each setting removes."""
        return dict(Counter(e.why for e in self.removed))


@dataclass(frozen=True)
class RetentionPlan:
    """The work in a pool.

    `rests`: there is no work, and time alone brings none for as long as the agent remembers that (`quiet`), or
    `until` a time in seconds since 1970.
    `deletable`: the removed objects that a vacuum may delete, with `size` in bytes.  `held`: the number of
    objects that stay, by what keeps them.  `unfinished`: interrupted vacuums, which had begun to delete `begun`
    objects of `begun_size` bytes.  `has_new_names`: some names are old enough, and no scan for orphans has seen
    them.  `entries`: the journal entries that a purge may delete.  `ended`: the number of clones for which the
    pool need keep nothing any more.  `unused`: index objects that nothing uses, if there is no other work.
    """

    expiry: ExpirePlan
    deletable: int = 0
    size: int = 0
    held: Mapping[str, int] = field(default_factory=dict)
    unfinished: int = 0
    begun: int = 0
    begun_size: int = 0
    has_new_names: bool = False
    entries: int = 0
    ended: int = 0
    unused: int = 0
    rests: bool = False
    until: float = float("inf")

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do."""
        work = (self.deletable, self.unfinished, self.has_new_names, self.entries, self.ended, self.unused)
        return self.expiry.idle and not any(work)


def plan_expiry(revision: Revision, policy: RetentionPolicy, *, loaded_before: int) -> ExpirePlan:
    """Returns what expires of a revision, at the revision's own time (`Revision.now`).

    `loaded_before`: the newest version that was certainly committed more than `policy.age` ago.
    """
    own = revision.references
    tombstone = _of_field(revision, policy)
    # whatever stays of these, the tombstone hides their old records
    hidden = {_identity(r): r for r in (revision.may_hide(tombstone) if tombstone is not None else ())}
    expiring = _expiring(revision, policy, own, hidden.values(), tombstone, loaded_before=loaded_before)
    unmerged = {name for name, e in expiring.items() if revision.held.is_unmerged(e.reference)}
    leaving = [e.reference for name, e in expiring.items() if name not in unmerged]
    staying = [r for r in own if _identity(r) not in expiring or _identity(r) in unmerged]
    blocked = {_identity(r) for r in must_stay(leaving, staying, kind=revision.rule.kind)}
    gone = {name: e for name, e in expiring.items() if name not in unmerged | blocked}
    removed = [*gone.values(), *_of_sub_pools(revision, policy, loaded_before=loaded_before)]
    stays = {
        UNMERGED: len(unmerged - hidden.keys()),
        OLDER_BELOW if revision.rule.kind == "upsert" else PART_OF_KEYS: len(blocked - hidden.keys()),
        **_without_time(revision, policy),
    }
    left = tuple(reference for name, reference in hidden.items() if name not in gone)
    return ExpirePlan(
        revision.version,
        tuple(sorted(removed, key=lambda e: (e.reference.seq, e.reference.ordinal, e.reference.order))),
        tombstone if left else None,
        policy.by if policy.age is not None else "",
        revision.now - (policy.age or 0.0),
        left,
        {reason: count for reason, count in stays.items() if count},
    )


def _expiring(
    revision: Revision,
    policy: RetentionPolicy,
    own: Sequence[Reference],
    may_hold: Iterable[Reference],
    tombstone: Tombstone | None,
    *,
    loaded_before: int,
) -> dict[Identity, Expired]:
    """Returns what expires by the policy, even if it must stay because it hides other records."""
    expiring: dict[Identity, Expired] = {}
    if tombstone is not None:
        expiring = _named((r for r in may_hold if tombstone.covers_all(r, revision.state.schema)), AGE)
    elif policy.age is not None and not policy.by:
        expiring = _named((r for r in own if version_of(r.seq) <= loaded_before), AGE)
    for limit, why, amount in ((policy.records, RECORDS, _records), (policy.size, BYTES, _size)):
        if limit is not None:
            left = [r for r in own if _identity(r) not in expiring]
            expiring |= _named(_beyond(left, limit, amount), why)
    return expiring


def _without_time(revision: Revision, policy: RetentionPolicy) -> dict[str, int]:
    """Returns how many references stay because the field that should give their age does not exist, or has no
    time: one number, with the reason as its key.  Returns nothing if the field gives the age, or if age plays
    no part."""
    index = revision.schema.get_field_index(policy.by)
    if policy.age is None or not policy.by or (index >= 0 and tells_time(revision.schema.field(index))):
        return {}
    return {NO_FIELD if index < 0 else NO_TIME: len(revision.references)}


def _of_field(revision: Revision, policy: RetentionPolicy) -> Tombstone | None:
    """Returns a tombstone, newer than all transactions, for the records that are old by the field; None if no
    record has the field."""
    if policy.age is None or policy.by not in revision.schema.names:
        return None
    condition = older_than(revision.names.stored_name(policy.by), revision.now - policy.age)
    key_range = key_range_of(condition, revision.key, revision.stored_schema)
    return None if key_range.empty else newer_than_all("expire", key_range, condition)


def _of_sub_pools(revision: Revision, policy: RetentionPolicy, *, loaded_before: int) -> Iterable[Expired]:
    """Returns expired references of the sub-pools.  Their records have no field that gives their age, so the age
    of their load counts."""
    if policy.age is None:
        return
    for sub_pool in revision.snapshot.sub_pools():
        for reference in revision.of_sub_pool(sub_pool).references:
            if version_of(reference.seq) <= loaded_before and not revision.held.is_unmerged(reference):
                yield Expired(reference, AGE)


def _beyond(
    references: Sequence[Reference], limit: int, amount: Callable[[Reference], int]
) -> list[Reference]:
    """Returns the oldest loads that can be removed so that the others still reach the limit."""
    left = sum(map(amount, references))
    oldest: list[Reference] = []
    for _, load in groupby(sorted(references, key=_age), key=_age):
        objects = list(load)
        left -= sum(map(amount, objects))
        if left < limit:
            break
        oldest += objects
    return oldest


def _records(reference: Reference) -> int:
    return reference.records


def _size(reference: Reference) -> int:
    return reference.size


def _age(reference: Reference) -> int:
    return reference.seq


def _identity(reference: Reference) -> Identity:
    return reference.object, reference.low


def _named(references: Iterable[Reference], why: str) -> dict[Identity, Expired]:
    return {_identity(r): Expired(r, why) for r in references}
