"""Objects of an old revision that a vacuum took: said so, with when and by which transaction.

An object is *vacuumed* if the newest state neither refers to it nor lists it as removed, and no live tag keeps it.
A missing object that is not vacuumed is damage, and stays `ObjectMissing`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from lake_core.errors import LakeError, ObjectMissing, ObjectVacuumed, Unavailable
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
    """The error that says what became of the missing object; the same one if it was not vacuumed.

    It is Unavailable if the store does not answer: damage and a vacuum look alike then.
    """

    def text(object_id: str, state: PoolState) -> str:
        return (
            f"object {object_id} of version {version} was vacuumed {_when(history, object_id)}; versions from "
            f"{state.removed.horizon} on are whole, on_missing=warn reads what is left of this one"
        )

    missing = [id for id in objects if id in str(error)]
    return _explained(error, history, missing, version=version, text=text)


def explained_to_reader_of_feed(error: ObjectMissing, history: History, object_id: str) -> LakeError:
    """As `explained`, for who reads the objects of a history one after the other, and is behind the vacuum."""

    def text(object_id: str, _: PoolState) -> str:
        return (
            f"object {object_id} was vacuumed {_when(history, object_id)}, before it was read here: begin again "
            "from the newest state, and keep removed objects longer from now on (lake set POOL vacuum.grace=30d)"
        )

    return _explained(error, history, [object_id], version=0, text=text)


def _explained(
    error: ObjectMissing,
    history: History,
    missing: Collection[str],
    *,
    version: int,
    text: Callable[[str, PoolState], str],
) -> LakeError:
    try:
        state = history.load().state
        gone = vacuumed(history, state, missing, version=version)
    except Unavailable as fault:
        name = str(error).partition(": ")[0]
        return Unavailable(
            f"{name}: this data object is missing from the store, and the journal does not tell whether a vacuum "
            f"took it ({fault}); try again"
        )
    except LakeError:  # the journal is damaged; what was seen still holds
        return error
    return ObjectVacuumed(text(min(gone), state)) if gone else error


def _when(history: History, object_id: str) -> str:
    """When, and by which transaction, as far as the journal says so."""
    oldest = None
    try:
        for version, transaction in history.read_transactions():
            oldest = transaction.time
            for action in transaction.actions:
                if isinstance(action, BeginVacuum) and object_id in action.objects:
                    when = human_time(transaction.time / 1e6)
                    return f"at {when} by transaction {transaction.id} (version {version})"
    except LakeError:  # that it was vacuumed is certain without it
        return "at a time that the journal does not say at the moment"
    return "before " + ("the history that is left" if oldest is None else human_time(oldest / 1e6))
