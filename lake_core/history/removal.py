"""The list of removed objects: objects to which a branch no longer refers, but which are still on the store.

The fold puts an object on the list when a reference to it is removed, and takes it off when one is added again.
So an object that no branch refers to, and that no vacuum took, is on the list, unless a tag keeps it together
with a deleted branch.  The converse does not hold: another branch or a tag may refer to an object on the list.
The planner of a vacuum subtracts those.

    removed --begin_vacuum--> begun --confirm_vacuum--> confirmed --end_vacuum--> gone
     ^----------- spared ------------|

Objects of a begun vacuum cannot be referred to again, and are not deleted yet.  The vacuum lists the leases
once more, and spares the objects that a live lease needs.  Confirmed ones never come back, so several processes
may delete them.  `horizon` is the greatest version whose removals a vacuum took: a revision of an older version
may lack objects.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby, zip_longest

import msgspec
from rpds import HashTrieMap

from lake_core.errors import Corrupt
from lake_core.history.layered_map import LayeredMap, NothingBelow
from lake_core.ids import check_id
from lake_core.naming import check_objects
from lake_core.records.decoding import check_times
from lake_core.records.transactions import version_of
from lake_core.records.vacuuming import BeginVacuum, ConfirmVacuum, Discard, EndVacuum, ScanOrphans

VacuumAction = ScanOrphans | Discard | BeginVacuum | ConfirmVacuum | EndVacuum


class Removal(msgspec.Struct, frozen=True, array_like=True):
    """When an object was removed: the version (0 if no version ever referred to the object) and the time; and
    its size.  `time` is in microseconds since 1970, `size` in bytes, 0 if it is not known."""

    version: int
    time: int
    size: int = 0

    def __post_init__(self) -> None:
        if self.version < -1 or self.size < 0:
            raise Corrupt(f"an object that version {self.version} removed, of {self.size} bytes, cannot be")


OFF = Removal(-1, 0)
"""A value that stands for an object that is no longer on the list; the next checkpoint leaves it out."""


class Vacuum(msgspec.Struct, frozen=True, omit_defaults=True):
    """The objects of a vacuum that has begun, and their removals in the same order.  Guarantees: they are ids
    of objects, so no name of another pool's object, or of another file, is among them."""

    objects: tuple[str, ...]
    removals: tuple[Removal, ...]
    transaction_id: str
    time: int
    confirmed: bool = False

    def __post_init__(self) -> None:
        check_id(self.transaction_id, what="vacuum: its transaction")
        check_times("vacuum", time=self.time)
        check_objects(self.objects, what="vacuum")
        if len(self.objects) != len(self.removals) or len(set(self.objects)) != len(self.objects):
            raise Corrupt(
                f"vacuum: {len(self.removals)} removals of {len(self.objects)} objects, or one named twice"
            )

    def by_object(self) -> dict[str, Removal]:
        """Returns the removal of each object, by the object's id."""
        return dict(zip(self.objects, self.removals, strict=True))


@dataclass(frozen=True)
class Removed:
    """The list of removed objects at a version; `vacuums` are those that have not ended, by the sequence of the
    transaction that began them.

    `floor`: no new object with a smaller id is committed.  `scanned`: names below it were searched for orphans.
    `known_from`: objects with smaller ids may have been removed before the lake kept this list.
    """

    objects: LayeredMap[str, Removal] = field(default_factory=LayeredMap)
    vacuums: HashTrieMap[int, Vacuum] = field(default_factory=HashTrieMap)
    horizon: int = 0
    floor: str = ""
    scanned: str = ""
    known_from: str = ""

    def get(self, object_id: str) -> Removal | None:
        """Returns the removal of an object; None if the object is not on the list."""
        removal = self.objects.get(object_id)
        return None if removal is None or removal == OFF else removal

    def get_many(self, objects: Collection[str]) -> dict[str, Removal]:
        """Returns the removals of those objects that are on the list."""
        return {id: removal for id, removal in self.objects.get_many(objects).items() if removal != OFF}

    def items(self) -> Iterable[tuple[str, Removal]]:
        """Yields the objects of the list with their removals."""
        return ((id, removal) for id, removal in self.objects.items() if removal != OFF)

    def is_empty(self) -> bool:
        """Whether the list is certainly empty."""
        return isinstance(self.objects.below, NothingBelow) and not len(self.objects.added)

    def vacuumed(self) -> frozenset[str]:
        """Returns the objects of the vacuums that have not ended."""
        return frozenset(id for vacuum in self.vacuums.values() for id in vacuum.objects)

    def begun_by(self, transaction_id: str) -> int | None:
        """Returns the sequence of the vacuum that this transaction began; None if that vacuum has ended."""
        begun = (seq for seq, vacuum in self.vacuums.items() if vacuum.transaction_id == transaction_id)
        return next(begun, None)

    def with_removed(self, removals: Mapping[str, Removal]) -> Removed:
        """Returns the list with these objects added."""
        return replace(self, objects=self.objects.update(removals))

    def without(self, objects: Iterable[str]) -> Removed:
        """Returns the list without these objects.  They need not be on the list: a check would read the
        checkpoint."""
        return self if self.is_empty() else self.with_removed(dict.fromkeys(objects, OFF))


def fold_vacuums(
    removed: Removed, actions: Iterable[VacuumAction], *, seq: int, id: str, time: int
) -> Removed:
    """Returns the list after these actions of the transaction `id`, which has the sequence `seq`.

    Discards that follow each other are applied at once, so that a million of them take no longer than their
    objects.  Raises Corrupt if an action does not fit.
    """
    for is_discard, group in groupby(actions, lambda action: isinstance(action, Discard)):
        if is_discard:
            removed = _discarded(removed, group, seq=seq, time=time)
            continue
        for action in group:
            removed = _folded(removed, action, seq=seq, id=id, time=time)
    return removed


def _discarded(removed: Removed, discards: Iterable[VacuumAction], *, seq: int, time: int) -> Removed:
    removals: dict[str, Removal] = {}
    scanned = removed.scanned
    for action in discards:
        assert isinstance(action, Discard)
        version = 0 if action.never_read else version_of(seq)
        for object_id, size in zip_longest(action.objects, action.sizes, fillvalue=0):
            removals[str(object_id)] = Removal(version, time, int(size))
        scanned = max(scanned, action.scanned)
    return replace(removed.with_removed(removals), scanned=scanned)


def _folded(removed: Removed, action: VacuumAction, *, seq: int, id: str, time: int) -> Removed:
    match action:
        case ScanOrphans():
            if action.upto < removed.floor:
                raise Corrupt(f"scan_orphans: the floor is {removed.floor} already, not {action.upto}")
            return replace(removed, floor=action.upto, known_from=removed.known_from or action.now)
        case Discard():
            return _discarded(removed, (action,), seq=seq, time=time)
        case BeginVacuum():
            return _begun(removed, action, seq=seq, id=id, time=time)
        case ConfirmVacuum():
            return _confirmed(removed, action)
        case EndVacuum(vacuum=ended):
            if ended not in removed.vacuums or not removed.vacuums[ended].confirmed:
                raise Corrupt(f"end_vacuum {ended}: it was not confirmed, or has ended")
            return replace(removed, vacuums=removed.vacuums.remove(ended))


def _begun(removed: Removed, action: BeginVacuum, *, seq: int, id: str, time: int) -> Removed:
    by_object = removed.get_many(action.objects)
    removals = []
    for object_id in action.objects:
        removal = by_object.pop(object_id, None)
        if removal is None:
            raise Corrupt(f"begin_vacuum: object {object_id} is not on the list of the removed")
        removals.append(removal)
    removed = removed.without(action.objects)
    vacuum = Vacuum(action.objects, tuple(removals), id, time)
    horizon = max(removed.horizon, *(removal.version for removal in removals))
    return replace(removed, vacuums=removed.vacuums.insert(seq, vacuum), horizon=horizon)


def _confirmed(removed: Removed, action: ConfirmVacuum) -> Removed:
    vacuum = removed.vacuums.get(action.vacuum)
    if vacuum is None or vacuum.confirmed:
        raise Corrupt(f"confirm_vacuum {action.vacuum}: it was not begun, or is confirmed")
    removals = vacuum.by_object()
    spared: dict[str, Removal] = {}
    for object_id in action.spared:
        removal = removals.pop(object_id, None)
        if removal is None:
            raise Corrupt(f"confirm_vacuum: object {object_id} is not one of the vacuum")
        spared[object_id] = removal
    removed = removed.with_removed(spared)
    after = msgspec.structs.replace(
        vacuum, objects=tuple(removals), removals=tuple(removals.values()), confirmed=True
    )
    return replace(removed, vacuums=removed.vacuums.insert(action.vacuum, after))
