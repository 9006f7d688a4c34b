"""Why a data object is not on the store.  Only this module decides between damage and a vacuum.

An object of an old revision is *vacuumed* if the newest state neither refers to it nor lists it as removed, and
no live tag keeps it.  A missing object that is not vacuumed is damage, and stays `ObjectMissing`.

    explained           for a reader of a revision: ObjectVacuumed, with the time and the transaction
    explained_to_reader_of_feed     for a reader that follows the objects of a history
    planning_again      for work planned on the newest state: PlanAgain, because the object was removed since
    is_damage           for checks: whether the newest state says that the object must exist

No vacuum deletes what the newest state refers to or lists as removed.  So all of these ask that state.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from lake_core.errors import LakeError, ObjectMissing, ObjectVacuumed, PlanAgain, Unavailable
from lake_core.history.history import History
from lake_core.history.state import PoolState
from lake_core.history.vacuuming import unlisted_objects
from lake_core.phrases import human_time
from lake_core.records import BeginVacuum
from log_lake.presence.roots import tagged_objects


def vacuumed(history: History, state: PoolState, objects: Collection[str], *, version: int) -> frozenset[str]:
    """Returns the objects of the revision at `version` that a vacuum took, according to the newest state.

    Raises Corrupt, Unavailable.
    """
    if version >= state.removed.horizon:
        return frozenset()
    unlisted = unlisted_objects(state, objects)
    now = max(history.now(), state.time) / 1e6  # the own clock may be behind that of who vacuumed
    return unlisted - tagged_objects(history, state, unlisted, now=now)


def explained(error: ObjectMissing, history: History, *, version: int) -> LakeError:
    """Returns the error that explains the missing object; the error itself if the object was not vacuumed.

    It is Unavailable if the store does not answer, because damage and a vacuum then look the same.
    """

    def text(object_id: str, state: PoolState) -> str:
        return (
            f"object {object_id} of version {version} was vacuumed {_when(history, object_id)}; versions from "
            f"{state.removed.horizon} on are whole, on_missing=warn reads what is left of this one"
        )

    return _explained(error, history, version=version, text=text)


def explained_to_reader_of_feed(error: ObjectMissing, history: History) -> LakeError:
    """Like `explained`, for a reader that follows the objects of a history and may be behind the vacuum."""

    def text(object_id: str, _: PoolState) -> str:
        return (
            f"object {object_id} was vacuumed {_when(history, object_id)}, before it was read here: begin again "
            "from the newest state, and keep removed objects longer from now on (lake set POOL vacuum.grace=30d)"
        )

    return _explained(error, history, version=0, text=text)


@contextmanager
def planning_again(history: History) -> Iterator[None]:
    """Raises PlanAgain in place of ObjectMissing if another process deleted the object since the work was
    planned.

    An erasure, or a vacuum without a grace time, deletes objects that no branch refers to any more.  Work that
    was planned before may still have to read them.  Nothing is damaged, and the work has committed nothing.
    """
    try:
        yield
    except ObjectMissing as error:
        try:
            damaged = is_damage(history, error.object_id)
        except Unavailable as fault:
            raise _unanswered(error, fault) from error
        except LakeError:  # the journal is damaged; what was seen still holds
            raise error from None
        if damaged:
            raise
        raise PlanAgain(
            f"object {error.object_id} is needed by no branch since this was planned, and was vacuumed "
            f"{_when(history, error.object_id)}; nothing was committed: do it again"
        ) from error


def is_damage(history: History, object_id: str) -> bool:
    """Whether a branch of the newest state refers to the object, or lists it as removed: then it must exist.

    Raises Corrupt, Unavailable.
    """
    return not object_id or not unlisted_objects(history.load().state, [object_id])


def _explained(
    error: ObjectMissing,
    history: History,
    *,
    version: int,
    text: Callable[[str, PoolState], str],
) -> LakeError:
    try:
        state = history.load().state
        gone = vacuumed(history, state, [error.object_id], version=version)
    except Unavailable as fault:
        return _unanswered(error, fault)
    except LakeError:  # the journal is damaged; what was seen still holds
        return error
    return ObjectVacuumed(text(error.object_id, state)) if gone else error


def _unanswered(error: ObjectMissing, fault: Unavailable) -> Unavailable:
    name = str(error).partition(": ")[0]
    return Unavailable(
        f"{name}: this data object is missing from the store, and the journal does not tell whether a vacuum "
        f"took it ({fault}); try again"
    )


def _when(history: History, object_id: str) -> str:
    """Returns the time of the vacuum and its transaction, in words, as far as the journal still has them."""
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
