"""Every error of the lake, named by the next step of the caller.

    LakeError                 all of them
      InvalidInput            correct the input; the message names file, record, line or field
        NoCreate              the store has no create-only put: use another store, or name a lock
        CannotHold            a format has no form for a record: write the object in a plainer one
        ClocksApart           set the clock of this machine, or of the store; nothing was changed
      NotFound                name something that exists
      AlreadyExists           use another name, or the thing that has it
      Conflict                load again, decide again, try again
        CheckpointGone        the state rests on a checkpoint that was purged meanwhile: load again
        PlanAgain             the newest state needs another plan; the planner plans again, a few times
        Undecided             a transaction over pools is being committed: wait for its decision
      OutcomeUnknown          the commit may have happened: resolve it by its id before anything else
      Unavailable             wait and call again
        Denied                the process may not do this: get the right, or leave it out
      Incomplete              part of the work was done; the message names the rest, and the next step
      Corrupt                 stop: an object of the lake is damaged; the message names it
        ObjectMissing         a data object of a snapshot is not on the store
        CheckpointDamaged     part of a checkpoint is damaged: load again, the journal skips it
        NotConserved          a rewriting would lose or change records: nothing was committed, the inputs stay
        JournalLost           a journal that had entries has none: put it back, or rebuild the pool
        PublishedElsewhere    a published table names an earlier place of the lake: publish the pool again
      ObjectVacuumed          the revision is older than the retention time
      OutputFailed            make room for the output, or choose another; earlier changes remain

A lost race is not an error: the functions that race return the result (`store.Created`, `journal.Appended`,
`history.Committed`).  An error has one line: thing, value, next step. Only an error in SQL has more lines,
which show the position.  `exit_status` is the status of the `lake` command.

Spark sends errors from tasks to the driver, and processes pickle them.  `to_wire` and `from_wire` convert them;
pickling and copying keep the class, the message and the attributes.  This module has all classes, so that every
process knows all of them (`kinds`).

An error `may_pass` if the same call may succeed later although the caller changes nothing.  Programs that retry
by themselves check this.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

MAX_SHOWN, SHOWN_HEAD, SHOWN_TAIL = 4_000, 3_000, 900
"""Characters of a message that are shown. A message of more than `MAX_SHOWN` is cut: only its first `SHOWN_HEAD`
and its last `SHOWN_TAIL` characters are shown, because the advice is at the end."""


_USER = re.compile(r"(?<!github)(://)[^/\s'\"?#@:]*:[^/\s'\"?#]*@")
"""A user with a password, before the host in a URI; a password may hold a further @.  In `github://ORG:REPO@REF` of
fsspec there is none."""
_NAMED_USER = re.compile(r"(https?://)[^/\s'\"?#@:]+@")
"""A user alone, before the host of a page: there it is mostly a token."""
_SECRET = re.compile(
    r"([?&;#][\w.-]*(?:token|signature|sig|secret|password|passwd|passphrase|credential|key|auth|jwt)[\w.-]*=)"
    r"[^&\s'\"]+",
    re.IGNORECASE,
)
"""A parameter in a URI whose name says that its value is a secret."""
_ASSIGNED = re.compile(
    r"(\b\w*(?:password|passwd|pwd|secret|secret_access_key|private_key|api[-_]?key)['\"]?\s*(?:=\s*|:\s*(?=['\"])))"
    r"('[^']*'|\"[^\"]*\"|[^\s'\",;&}]+)",
    re.IGNORECASE,
)
"""A setting whose name says that its value is a secret, as in variables, JSON and the words of clients."""
_HEADER = re.compile(r"\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)
"""The text that a client sends as the header `Authorization`."""


def without_secrets(text: str) -> str:
    """Returns the text without the users and passwords of URIs in it, and without the values of their secret
    parameters."""
    text = _HEADER.sub(r"\1 ***", text)
    if "=" in text or ":" in text:
        text = _ASSIGNED.sub(r"\1***", text)
    if "://" not in text and "=" not in text:
        return text
    return _SECRET.sub(r"\1***", _NAMED_USER.sub(r"\1***@", _USER.sub(r"\1***@", text)))


class LakeError(Exception):
    """Any error that the lake raises on purpose.

    Messages are shortened, because they may repeat a value of any size, such as a rendered Airflow template.
    Possible secrets are masked, because clients of stores repeat URIs with passwords and tokens.
    """

    exit_status = 1
    may_pass: ClassVar[bool] = False
    """Whether the same call may succeed later, though the caller mends nothing."""

    def __str__(self) -> str:
        text = without_secrets(super().__str__())
        if len(text) <= MAX_SHOWN:
            return text
        left_out = len(text) - SHOWN_HEAD - SHOWN_TAIL
        return f"{text[:SHOWN_HEAD]} ... ({left_out:,} characters) ... {text[-SHOWN_TAIL:]}"

    def __reduce__(self) -> tuple[Callable[..., LakeError], tuple[Any, ...]]:
        return _rebuilt, (type(self), self.args, dict(vars(self)))


class InvalidInput(LakeError):
    """The caller's data or arguments are wrong; nothing was changed."""

    exit_status = 9


class NoCreate(InvalidInput):
    """The store has no create-only put, or only claims to have one; a lake on it needs a lock
    (`log_lake.stores.locked`)."""

    def __init__(self, message: str) -> None:
        super().__init__(
            f"{message}. Take another store, or name a lock that all writers share: "
            "LAKE_LOCK=file:///FOLDER or postgresql://USER@HOST/DATABASE"
        )


class CannotHold(InvalidInput):
    """A format cannot express a record.  The writer of the object then takes the next plainer format."""


class ClocksApart(InvalidInput):
    """The clocks of the store and of this machine differ too much to compute an age; nothing was changed."""


class NotFound(LakeError):
    """The lake, pool, branch, revision or object that the caller named does not exist."""

    exit_status = 3


class AlreadyExists(LakeError):
    """The name that the caller chose is in use."""

    exit_status = 4


class Conflict(LakeError):
    """Another change was committed in between; the same call may succeed on the new state."""

    exit_status = 5
    may_pass = True


class CheckpointGone(Conflict):
    """The checkpoint that a loaded state needs was purged meanwhile."""


class PlanAgain(Conflict):
    """The plan does not fit the newest state any more; a new plan may."""


class Undecided(Conflict):
    """A transaction over several pools, whose id is `over`, is prepared in this pool, and does not commute with
    the draft."""

    def __init__(self, over: str) -> None:
        super().__init__(
            f"transaction {over} over several pools is being committed, and has what this would change; try again "
            "later"
        )
        self.over = over


class OutcomeUnknown(LakeError):
    """It is unknown whether the entry of a version with this id was written, because no answer arrived.

    Nothing was lost: look for the id in the journal, or repeat the call with the same token.  The message ends with
    that advice.
    """

    exit_status = 6
    may_pass = True

    def __init__(self, message: str, *, entry_id: str, version: int) -> None:
        super().__init__(
            f"{message}. Run the command again with the same --token; without a token, first look for {entry_id} "
            "in `lake log`"
        )
        self.entry_id = entry_id
        self.version = version


class Unavailable(LakeError):
    """The store does not answer, or refuses requests at the moment."""

    exit_status = 7
    may_pass = True


class Denied(Unavailable):
    """The store refuses the request: the process lacks the right, or may only read.  Nothing was written."""

    exit_status = 13
    may_pass = False


class Incomplete(LakeError):
    """An agent did part of its work; the message names the failed part and the next step."""

    exit_status = 11


class Corrupt(LakeError):
    """An object of the lake is damaged or written by a newer version."""

    exit_status = 8


class ObjectMissing(Corrupt):
    """A data object that the snapshot holds is not on the store; `object_id` is its id.  `presence.absence`
    finds out whether this is damage, or a vacuum deleted the object."""

    def __init__(self, message: str, *, object_id: str = "") -> None:
        super().__init__(message)
        self.object_id = object_id


class CheckpointDamaged(Corrupt):
    """A row group of a checkpoint is damaged."""


class NotConserved(Corrupt):
    """The new objects of a rewriting do not hold what its inputs hold.  Nothing was committed; the inputs stay."""


class JournalLost(Corrupt):
    """A journal that had entries has no entry, no checkpoint and no fence."""


class PublishedElsewhere(Corrupt):
    """The newest metadata at a place names a table at another `location`: the lake was moved or copied.

    No reader may follow it.  The next publication of the same pool and branch writes the table anew, under the
    next number.
    """

    def __init__(
        self, message: str, *, number: int = 0, location: str = "", pool: str = "", branch: str = ""
    ) -> None:
        super().__init__(message)
        self.number, self.location, self.pool, self.branch = number, location, pool, branch


class ObjectVacuumed(LakeError):
    """A vacuum deleted the data object; the message names time and transaction."""

    exit_status = 10


class OutputFailed(LakeError):
    """A result could not be written to its output; changes that the command made before remain."""

    exit_status = 12


def words(error: Exception) -> str:
    """Returns the text of an error in one line; for an error of the system its reason without the path."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(reason.split()) or type(error).__name__


def _rebuilt(kind: type[LakeError], args: tuple[Any, ...], attributes: dict[str, Any]) -> LakeError:
    """Makes the error without calling its constructor, which may take other arguments or add to the message."""
    error = kind.__new__(kind, *args)
    vars(error).update(attributes)
    return error


def to_wire(error: LakeError) -> str:
    """Returns the error as one line of JSON: its class, its message, its attributes."""
    attributes = {name: value for name, value in vars(error).items() if not name.startswith("_")}
    return json.dumps({"kind": type(error).__name__, "message": str(error), "attributes": attributes})


def from_wire(text: str) -> LakeError:
    """Returns the error that `to_wire` converted; a plain LakeError if this program does not know its class."""
    wire = json.loads(text)
    by_name = {kind.__name__: kind for kind in kinds()}
    return _rebuilt(by_name.get(wire["kind"], LakeError), (wire["message"],), wire["attributes"])


def kinds(kind: type[LakeError] = LakeError) -> Iterator[type[LakeError]]:
    """Yields the class, then all of its subclasses."""
    yield kind
    for below in kind.__subclasses__():
        yield from kinds(below)
