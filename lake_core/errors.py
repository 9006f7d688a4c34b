"""Every error of the lake, named by what the caller does next.

    LakeError                 all of them
      InvalidInput            fix the input; the message says file, record, line or field
      NotFound                name something that exists
      AlreadyExists           take another name, or use what is there
      Conflict                load again, decide again, try again
        CheckpointGone        the state rests on a checkpoint that was purged meanwhile: load again
      OutcomeUnknown          the commit may have happened: resolve it by its id before anything else
      Unavailable             back off and call again
      Corrupt                 stop: an object of the lake is not what it must be; says which and what was read
        ObjectMissing         a data object that a snapshot holds is not on the store
      ObjectVacuumed          the revision is older than what retention kept

A lost race is not an error: the functions that race return what happened (`store.Created`,
`journal.Appended`, `commits.Landing`).  An error carries one line: what, where, what to do.  `exit_status`
is the status of the `lake` command.
"""

from __future__ import annotations


class LakeError(Exception):
    """Any error that the lake raises on purpose."""

    exit_status = 1


class InvalidInput(LakeError):
    """The caller's data or words are wrong; nothing was changed."""

    exit_status = 9


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

    Nothing was lost: read the journal and look for the id, or repeat the call with the same token.
    """

    exit_status = 6

    def __init__(self, message: str, *, entry_id: str, n: int) -> None:
        super().__init__(message)
        self.entry_id = entry_id
        self.n = n


class Unavailable(LakeError):
    """The store does not answer, or refuses for now."""

    exit_status = 7


class Corrupt(LakeError):
    """An object of the lake is damaged or written by a newer version."""

    exit_status = 8


class ObjectMissing(Corrupt):
    """A data object that the snapshot holds is not on the store."""


class ObjectVacuumed(LakeError):
    """The data object was removed by retention; says when and by which transaction."""

    exit_status = 10
