"""Every error of the lake, named by what the caller does next.

    LakeError                 all of them
      InvalidInput            fix the input; the message says file, record, line or field
        NoCreate              the store has no create-only put: take another store, or name a lock
      NotFound                name something that exists
      AlreadyExists           take another name, or use what is there
      Conflict                load again, decide again, try again
        CheckpointGone        the state rests on a checkpoint that was purged meanwhile: load again
      OutcomeUnknown          the commit may have happened: resolve it by its id before anything else
      Unavailable             back off and call again
      Incomplete              part of the work was done; the message says which part was not, and what to do
      Corrupt                 stop: an object of the lake is not what it must be; says which and what was read
        ObjectMissing         a data object that a snapshot holds is not on the store
        CheckpointDamaged     a part of a checkpoint is damaged: load again, the journal passes it over
      ObjectVacuumed          the revision is older than what retention kept
      OutputFailed            make room for the output, or choose another; what was changed stands

A lost race is not an error: the functions that race return what happened (`store.Created`,
`journal.Appended`, `commits.Landing`).  An error carries one line: what, where, what to do; an error
in SQL has more, which show the place.  `exit_status` is the status of the `lake` command.

Spark sends errors from tasks to the driver, and processes pickle them.  `to_wire` and `from_wire` are the one form
on the way; pickling and copying keep the class, the message and the attributes.  All classes stand here, so that
every process knows all of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any


class LakeError(Exception):
    """Any error that the lake raises on purpose."""

    exit_status = 1

    def __reduce__(self) -> tuple[Callable[..., LakeError], tuple[Any, ...]]:
        return _rebuilt, (type(self), self.args, dict(vars(self)))


class InvalidInput(LakeError):
    """The caller's data or words are wrong; nothing was changed."""

    exit_status = 9


class NoCreate(InvalidInput):
    """The store has no create-only put, or only says so: a lake on it needs a lock (`store.locked`)."""

    def __init__(self, message: str) -> None:
        super().__init__(
            f"{message}. Take another store, or name a lock that all writers share: "
            "LAKE_LOCK=file:///FOLDER or postgresql://USER@HOST/DATABASE"
        )


class NotFound(LakeError):
    """No such lake, pool, branch, revision or object."""

    exit_status = 3


class AlreadyExists(LakeError):
    """The name is taken."""

    exit_status = 4


class Conflict(LakeError):
    """Somebody else's change got in between; the same call may succeed on the new state."""

    exit_status = 5


class CheckpointGone(Conflict):
    """The checkpoint that a state rests on was purged while it was in use."""


class OutcomeUnknown(LakeError):
    """The store never said whether entry `n` with id `id` was written.

    Nothing was lost: read the journal and look for the id, or repeat the call with the same token.  The message
    ends with that advice.
    """

    exit_status = 6

    def __init__(self, message: str, *, entry_id: str, version: int) -> None:
        super().__init__(
            f"{message}. Run it again under the same token (--token); without a token, first look in `lake log` "
            f"whether {entry_id} is there"
        )
        self.entry_id = entry_id
        self.version = version


class Unavailable(LakeError):
    """The store does not answer, or refuses for now."""

    exit_status = 7


class Incomplete(LakeError):
    """An agent did part of its work; the message names what failed and what to do."""

    exit_status = 11


class Corrupt(LakeError):
    """An object of the lake is damaged or written by a newer version."""

    exit_status = 8


class ObjectMissing(Corrupt):
    """A data object that the snapshot holds is not on the store."""


class CheckpointDamaged(Corrupt):
    """A row group of a checkpoint is not what was written."""


class ObjectVacuumed(LakeError):
    """The data object was removed by retention; says when and by which transaction."""

    exit_status = 10


class OutputFailed(LakeError):
    """A result could not be written where it should go; what the command changed before stands."""

    exit_status = 12


def _rebuilt(kind: type[LakeError], args: tuple[Any, ...], attributes: dict[str, Any]) -> LakeError:
    """The error again, without its constructor: that may take other arguments, or add to the message."""
    error = kind.__new__(kind, *args)
    vars(error).update(attributes)
    return error


def to_wire(error: LakeError) -> str:
    """The error as one line of JSON: its class, its message, its attributes."""
    attributes = {name: value for name, value in vars(error).items() if not name.startswith("_")}
    return json.dumps({"kind": type(error).__name__, "message": str(error), "attributes": attributes})


def from_wire(text: str) -> LakeError:
    """The error that `to_wire` was given.  A class that this program does not know is a plain LakeError."""
    wire = json.loads(text)
    known = {kind.__name__: kind for kind in _kinds(LakeError)}
    return _rebuilt(known.get(wire["kind"], LakeError), (wire["message"],), wire["attributes"])


def _kinds(kind: type[LakeError]) -> Iterator[type[LakeError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _kinds(below)
