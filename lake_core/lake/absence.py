"""Objects of an old revision that a vacuum took: said so, with when and by which transaction.

An object is *vacuumed* if the newest state neither refers to it nor lists it as removed, and no live tag keeps it.
A missing object that is not vacuumed is damage, and stays `ObjectMissing`.
"""

from __future__ import annotations

from collections.abc import Collection

from lake_core.errors import LakeError, ObjectMissing, ObjectVacuumed
from lake_core.history import History, PoolState
from lake_core.history.roots import tagged_objects
from lake_core.history.vacuuming import unlisted_objects
from lake_core.phrases import human_time
from lake_core.records import BeginVacuum


def vacuumed(history: History, state: PoolState, objects: Collection[str], *, version: int) -> frozenset[str]:
    """Those objects of a revision of `version` that a vacuum took, by the newest state.

    Raises Corrupt, Unavailable.
    """
    if version >= state.removed.horizon:
        return frozenset()
    unlisted = unlisted_objects(state, objects)
    now = max(history.now(), state.time) / 1e6  # the own clock may be behind that of who vacuumed
    return unlisted - tagged_objects(history, state, unlisted, now=now)


def explained(error: ObjectMissing, history: History, objects: Collection[str], *, version: int) -> LakeError:
    """The error that says what became of the missing object; the same one if it was not vacuumed."""
    missing = [id for id in objects if id in str(error)]
    try:
        state = history.load().state
        gone = vacuumed(history, state, missing, version=version)
        if not gone:
            return error
        object_id = min(gone)
        return ObjectVacuumed(
            f"object {object_id} of version {version} was vacuumed {_when(history, object_id)}; versions from "
            f"{state.removed.horizon} on are whole, on_missing=warn reads what is left of this one"
        )
    except LakeError:  # the journal does not say; what was seen still holds
        return error


def explained_to_reader_of_feed(error: ObjectMissing, history: History, object_id: str) -> LakeError:
    """The error for who reads the objects of a history one after the other, and is behind the vacuum."""
    try:
        if not vacuumed(history, history.load().state, [object_id], version=0):
            return error
        return ObjectVacuumed(
            f"object {object_id} was vacuumed {_when(history, object_id)}, before it was read here: begin again "
            "from the newest state, and keep removed objects longer from now on (lake set POOL vacuum.grace=30d)"
        )
    except LakeError:  # the journal does not say; what was seen still holds
        return error


def _when(history: History, object_id: str) -> str:
    oldest = None
    for version, transaction in history.read_transactions():
        oldest = transaction.time
        for action in transaction.actions:
            if isinstance(action, BeginVacuum) and object_id in action.objects:
                when = human_time(transaction.time / 1e6)
                return f"at {when} by transaction {transaction.id} (version {version})"
    return "before " + ("the history that is left" if oldest is None else human_time(oldest / 1e6))
