"""Which removed objects may be deleted; pure.

An object on the list of removed objects may be deleted if

- the version that removed it is old enough (`vacuum.ages`): older than `vacuum.grace` and than `history.keep`,
- no live lease holds an older version,
- no branch and no live tag refers to it.

A plan can be stored and carried out later.  Then only the objects that it names are deleted, except those that
a lease, branch or tag needs by then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from lake_core.history import PoolState
from lake_core.history.removal import Removal, Vacuum
from lake_core.ids import check_id
from lake_core.journal import LoadedState
from lake_core.naming import check_objects
from lake_core.records.decoding import check_counts

MAX_OBJECTS = 1_000_000
"""Removed objects that one plan looks at: it is held in memory.  The next checkpoint and plan take the rest."""


class PlannedObject(msgspec.Struct, frozen=True, array_like=True):
    """An object that a vacuum would delete: the version that removed it (0: it was never committed), when, and its
    bytes."""

    object: str
    version: int
    time: int
    size: int

    def __post_init__(self) -> None:
        check_objects((self.object,), what="plan")
        check_counts("plan", version=self.version, size=self.size)


class Plan(msgspec.Struct, frozen=True, omit_defaults=True):
    """The objects that a vacuum would delete from a pool.  `time` is in seconds since 1970, by the store's
    clock.

    `begun`: the objects of interrupted vacuums, which the next vacuum deletes first.
    """

    id: str
    pool: str
    version: int
    time: float
    objects: tuple[PlannedObject, ...]
    held: dict[str, int]
    """How many removed objects stay, by what keeps them: branch, tag, lease, grace."""
    begun: tuple[PlannedObject, ...] = ()

    def __post_init__(self) -> None:
        check_id(self.id, what="plan")
        check_id(self.pool, what="plan: its pool")
        check_counts("plan", version=self.version)

    @property
    def size(self) -> int:
        """The bytes of all objects."""
        return sum(planned.size for planned in self.objects)

    @property
    def size_begun(self) -> int:
        """The bytes of the objects of interrupted vacuums."""
        return sum(planned.size for planned in self.begun)

    def covers(self, vacuum: Vacuum) -> bool:
        """Whether the plan names every object of an interrupted vacuum."""
        return {planned.object for planned in self.begun}.issuperset(vacuum.objects)


@dataclass(frozen=True)
class Keeping:
    """What keeps removed objects from being deleted: `safe`, the newest version that is old enough; `leased`, the
    oldest version that a live lease holds; the objects that branches and tags refer to."""

    safe: int
    leased: int | None
    branches: frozenset[str]
    tags: frozenset[str]

    def keeps(self, object_id: str, removal: Removal) -> str | None:
        """Returns what keeps a removed object, in a word; None if it may be deleted."""
        if removal.version > self.safe:
            return "grace"
        if self.leased is not None and removal.version > self.leased:
            return "lease"
        if object_id in self.branches:
            return "branch"
        return "tag" if object_id in self.tags else None


def choose(
    removed: Iterable[tuple[str, Removal]], limits: Keeping
) -> tuple[tuple[PlannedObject, ...], dict[str, int]]:
    """Returns the objects to delete, and how many objects stay, by what keeps them."""
    chosen: list[PlannedObject] = []
    reasons: Counter[str] = Counter()
    for object_id, removal in removed:
        why = limits.keeps(object_id, removal)
        if why is None:
            chosen.append(PlannedObject(object_id, removal.version, removal.time, removal.size))
        else:
            reasons[why] += 1
    return tuple(sorted(chosen, key=lambda planned: planned.object)), dict(sorted(reasons.items()))


def exact_plan(
    loaded: LoadedState[PoolState], removed: Iterable[str], *, id: str, pool_id: str, now: float
) -> Plan:
    """Returns the plan for exactly these objects of the list of removed objects, and for interrupted
    vacuums."""
    objects = []
    for object_id in sorted(removed):
        removal = loaded.state.removed.get(object_id)
        assert removal is not None, f"{object_id} is not on the list of the removed"
        objects.append(PlannedObject(object_id, removal.version, removal.time, removal.size))
    begun = begun_objects(loaded.state.removed.vacuums.values())
    return Plan(id, pool_id, loaded.version, now, tuple(objects), {}, begun)


def begun_objects(vacuums: Iterable[Vacuum]) -> tuple[PlannedObject, ...]:
    """Returns the objects of vacuums that have begun but not ended."""
    begun = [
        PlannedObject(id, removal.version, removal.time, removal.size)
        for vacuum in vacuums
        for id, removal in vacuum.by_object().items()
    ]
    return tuple(sorted(begun, key=lambda planned: planned.object))


def still_allowed(plan: Plan, objects: Iterable[PlannedObject]) -> tuple[PlannedObject, ...]:
    """Returns the objects of a stored plan that may still be deleted, because the same version removed them."""
    planned = {p.object: p.version for p in plan.objects}
    return tuple(p for p in objects if planned.get(p.object) == p.version)
