"""Decides how a draft that deletes objects, or needs them, fits the newest state; pure.

- New objects below the floor are refused: a scan for orphans may have found them, so the vacuum may take them.
- A reference is added again only to an object that is certainly on the store: a branch refers to it, or it is
  on the list of removed objects, or the tag of a deleted branch that is being restored keeps it.
- A tag is set only on a version whose objects are all there, or that another tag already keeps.
- A vacuum that was planned on a state takes only objects whose removal has not changed since.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from lake_core.errors import Conflict, ObjectVacuumed, PlanAgain
from lake_core.history.draft import Draft
from lake_core.history.snapshot.fixed import without
from lake_core.history.snapshot.snapshot import Snapshot
from lake_core.history.state import PoolState
from lake_core.records import (
    AddObject,
    BeginVacuum,
    ConfirmVacuum,
    CreateBranch,
    Discard,
    EndVacuum,
    Merge,
    PutReference,
    ScanOrphans,
    SetTag,
)


def check_objects(state: PoolState, draft: Draft) -> None:
    """Raises Conflict for a new object below the floor, ObjectVacuumed for an object that may be deleted."""
    floor = state.removed.floor
    for action in draft.actions if floor else ():
        if isinstance(action, AddObject) and action.object < floor:
            raise Conflict(
                f"object {action.object} was written so long ago that a scan for orphans has passed it; start again"
            )
    first = draft.actions[0] if draft.actions else None
    if isinstance(first, Merge) or not state.removed.horizon:
        return  # the merged branch refers to its objects
    if isinstance(first, CreateBranch) and first.restored is not None:
        # the tag of the deleted branch kept them on the read version; since then it may be deleted
        if state.removed.horizon > draft.read_version:
            raise PlanAgain("objects were vacuumed since this was planned; plan again")
        return
    put = {a.object for a in draft.actions if isinstance(a, PutReference) and not a.data}
    if gone := sorted(unlisted_objects(state, put)):
        raise ObjectVacuumed(
            f"object {gone[0]} was vacuumed, so this revision cannot come back; versions from "
            f"{state.removed.horizon} on are whole"
        )


def check_vacuum(state: PoolState, draft: Draft) -> None:
    """Raises ObjectVacuumed, PlanAgain or Conflict if a draft that belongs to no branch does not fit the newest
    state."""
    removed = state.removed
    for action in draft.actions:
        match action:
            case SetTag(version=version):
                if version < removed.horizon and version not in state.kept:
                    raise ObjectVacuumed(
                        f"version {version} is older than version {removed.horizon}, up to which removed objects "
                        "were vacuumed; tag a later one"
                    )
            case ScanOrphans(upto=upto):
                if upto < removed.floor:
                    raise PlanAgain(
                        f"another scan for orphans has reached {removed.floor} meanwhile; plan again"
                    )
            case Discard(objects=objects):
                in_use = held_objects(state, objects) | removed.vacuumed()
                listed = (removal.version for removal in removed.get_many(objects).values())
                if not in_use.isdisjoint(objects) or max(listed, default=0) > draft.read_version:
                    raise PlanAgain("the pool has changed since the orphans were listed; plan again")
            case BeginVacuum(objects=objects):
                _check_begun(state, draft, objects)
            case ConfirmVacuum(vacuum=vacuum):
                if vacuum not in removed.vacuums or removed.vacuums[vacuum].confirmed:
                    raise Conflict(
                        f"vacuum {vacuum} was confirmed by another process; go on from the newest state"
                    )
            case EndVacuum(vacuum=vacuum):
                if vacuum not in removed.vacuums:
                    raise Conflict(
                        f"vacuum {vacuum} was ended by another process; there is nothing left to do"
                    )
            case _:
                pass


def _check_begun(state: PoolState, draft: Draft, objects: tuple[str, ...]) -> None:
    if any(tag.set_at > draft.read_version for tag in state.tags.values()):
        raise PlanAgain("a tag was set since the vacuum was planned; plan again")
    removals = state.removed.get_many(objects)
    for id in objects:
        removal = removals.get(id)
        if removal is None or removal.version > draft.read_version:
            raise PlanAgain(f"object {id} was referred to again, or taken by another vacuum; plan again")


def held_objects(state: PoolState, among: Collection[str]) -> frozenset[str]:
    """Returns the objects in `among` to which branches refer."""
    branches = state.branches.values()
    return frozenset(id for branch in branches for id in objects_of(branch.snapshot, among))


def unlisted_objects(state: PoolState, among: Collection[str]) -> frozenset[str]:
    """Returns the objects in `among` to which no branch refers and which are not on the list of removed objects."""
    unlisted = frozenset(among) - state.removed.get_many(among).keys()
    return unlisted - held_objects(state, unlisted)


def objects_of(snapshot: Snapshot, among: Collection[str]) -> Iterator[str]:
    """Yields the objects in `among` that references name, perhaps more than once; the references are read as
    columns.

    Ids sort by time, so an object that is newer than all fixed references is not searched among them.
    """
    names = frozenset(among)
    for fixed, removed in ((snapshot.checkpoint, snapshot.removed), (snapshot.folded, snapshot.dropped)):
        asked = pa.array(sorted(name for name in names if name <= fixed.newest), pa.string())
        if not len(asked):
            continue
        for sub_pool in ("", *snapshot.sub_pools()):
            for table in fixed.tables(sub_pool=sub_pool, columns=("key", "object")):
                of_interest = table.filter(pc.is_in(table["object"], asked))
                yield from without(of_interest, removed)["object"].to_pylist()
    yield from (r.object for r in snapshot.added.values() if r.object in names)
