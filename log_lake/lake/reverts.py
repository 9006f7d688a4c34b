"""Reverts: undoes a transaction by another one.  Called by `Branch`.

`lake revert` undoes any transaction of a branch, `lake undo` only maintenance: compaction, applied deletes,
retired tombstones.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from lake_core import naming
from lake_core.errors import InvalidInput, LakeError, NotFound
from lake_core.history import Draft, History, PoolState
from lake_core.history.fold import fold_transaction
from lake_core.history.repeated import REVERTS
from lake_core.history.vacuuming import check_objects
from lake_core.ids import is_id
from lake_core.records import (
    Action,
    AddTombstone,
    PutReference,
    PutTombstone,
    RemoveReference,
    RemoveTombstone,
)
from lake_core.records.transactions import sequence
from log_lake.lake.branches import planned
from log_lake.lake.line import Line
from log_lake.objects.failures import missing
from log_lake.presence.absence import planning_again
from log_lake.reading.stored_sums import quoted_content
from log_lake.reverts.change import Change
from log_lake.reverts.revert import Inverse, inverse
from log_lake.texts.is_text import require_text


@dataclass(frozen=True)
class RevertResult:
    """What a revert of the version `reverted` did: how many references and deletes it removed and restored.

    `hidden`: objects whose records a new tombstone hides, because a compaction had rewritten them.  `content`:
    what the branch contains now by its stored sums, as `lake verify` prints it; "" if that is not known.
    """

    version: int
    transaction_id: str
    reverted: int
    branch: str
    removed: int
    restored: int
    deletes_removed: int
    deletes_restored: int
    hidden: int
    content: str = ""


def revert(branch: Line, revision: str, *, message: str, maintenance: bool = False) -> RevertResult:
    """Undoes the transactions of a version on the branch, or one transaction by its id."""
    branch.check_writable()
    if not maintenance:
        branch.check_not_derived()
    return planned(lambda: _revert(branch, revision, message=message, maintenance=maintenance))


def _revert(branch: Line, revision: str, *, message: str, maintenance: bool) -> RevertResult:
    version, id = _found(branch.history, revision)
    newest = branch.history.load_open()
    if version > newest.version:
        raise NotFound(f"version {version} does not exist; the newest is {newest.version}")
    if branch.name not in newest.state.branches:
        raise NotFound(f"branch {branch.name!r} does not exist; it was deleted meanwhile")
    changes = list(changes_of(branch.history, branch.name, since=version, until=newest.version))
    chosen = [c for c in changes if c.version == version and id in ("", c.transaction.id)]
    later = [c for c in changes if c.version > version]
    if not chosen:
        raise InvalidInput(
            f"version {version} did not change branch {branch.name!r}; name the one that it changed (lake log)"
        )
    if maintenance and not all(change.is_maintenance for change in chosen):
        raise InvalidInput(
            f"version {version} is no maintenance: it changes what is read; take it back with lake revert"
        )
    draft_id = branch.context.ids.new()
    done = [
        inverse(change, later, newest.state, id=f"{draft_id}-{number}", rule=branch.rule)
        for number, change in enumerate(reversed(chosen), 1)
    ]
    together = Inverse(tuple(action for one in done for action in one.actions))
    draft = Draft(
        draft_id,
        branch.name,
        newest.version,
        branch.context.author,
        together.actions,
        message=message or f"revert version {version}",
        metadata={REVERTS: " ".join(str(change.version) for change in chosen)}
        if branch.context.format_version >= 2
        else {},
        is_exact=True,
    )
    check_objects(newest.state, draft)
    with planning_again(branch.history):
        _check_there(branch, together.actions)
    committed = branch.commit_draft(draft, does=f"takes back version {version}")
    return RevertResult(
        committed.version,
        committed.transaction_id,
        version,
        branch.name,
        removed=together.count(RemoveReference),
        restored=together.count(PutReference),
        deletes_removed=together.count(RemoveTombstone),
        deletes_restored=together.count(PutTombstone),
        hidden=together.count(AddTombstone),
        content=_quoted(branch),
    )


def _quoted(branch: Line) -> str:
    """Returns what the branch holds now, by its stored sums; "" if they are missing. It must not fail, because the
    revert is committed."""
    if branch.has_sums:
        with contextlib.suppress(LakeError):
            return quoted_content(branch.revision(recent=True))
    return ""


def _check_there(branch: Line, actions: Sequence[Action]) -> None:
    """Raises ObjectMissing if an object to which the branch would refer again is not on the store; opens each such
    object."""
    put = (action for action in actions if isinstance(action, PutReference))
    ids = sorted({action.object for action in put if not action.data})
    list(branch.history.journal.read_all(partial(_open, branch), ids))


def _open(branch: Line, id: str) -> None:
    name = naming.data_object(branch.config.id, id)
    try:
        branch.store.open_input(name).close()
    except FileNotFoundError as error:
        advice = "the revert would refer to it again: put it back from a backup, then revert"
        raise missing(branch.store.uri, name, advice) from error


def _found(history: History, revision: str) -> tuple[int, str]:
    """Returns the version that a revision names, and the transaction's id if it is one."""
    require_text(revision, "revision", example="'12', or the id of a transaction")
    if revision.isascii() and revision.isdigit() and int(revision) > 0:
        return int(revision), ""
    if is_id(revision):
        for version, transaction in history.read_transactions():
            if transaction.id == revision:
                return version, revision
    raise NotFound(
        f"transaction {revision!r} does not exist; name a version or a transaction id (see lake log)"
    )


def changes_of(history: History, branch: str, *, since: int, until: int) -> Sequence[Change]:
    """Returns the changes of a branch from version `since` to `until`, each with the state before it.

    Raises NotFound if entries of these versions are purged.
    """
    state: PoolState = history.load_version(since - 1).state if since > 1 else history.journal.initial
    changes = []
    for version, entry in history.journal.between(since - 1, until):
        index = 0
        for transaction in entry.transactions:
            if transaction.branch == branch:
                changes.append(Change(version, sequence(version, index), transaction, state))
            state = fold_transaction(state, version, index, transaction)
            index += transaction.width
    return changes
