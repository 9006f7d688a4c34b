"""Deletes: checks the arguments, looks whether anything matches, and commits a tombstone.  Called by
`Branch`."""

from __future__ import annotations

from lake_core.errors import LakeError
from lake_core.history import Draft, PoolState
from lake_core.history.covered import giving_up
from lake_core.history.state import Remembered
from lake_core.journal import LoadedState
from lake_core.keys import KeyRange
from log_lake.lake.branches import planned
from log_lake.lake.counting import removed_by, removed_metadata
from log_lake.lake.delete_spec import check_delete, may_delete
from log_lake.lake.line import Line
from log_lake.lake.results import DeleteResult, repeated_delete
from log_lake.lake.token_kinds import TokenKind, check_kind
from log_lake.lake.write import WriteArguments
from log_lake.texts.keytext import check_classes


def delete(branch: Line, write: WriteArguments) -> DeleteResult:
    """Deletes the records of a key range that fulfil a condition, as `Branch.delete` says."""
    branch.check_not_derived()
    return branch.believing(
        lambda believed: (
            _delete(branch, write, believed)
            if believed is not None
            else planned(lambda: _delete(branch, write))
        )
    )


def _delete(
    branch: Line, write: WriteArguments, believed: LoadedState[PoolState] | None = None
) -> DeleteResult:
    revision, token, key_range = branch.revision(believed=believed), write.token, write.key_range
    if (first := branch.history.first_use(revision.state, token, branch=branch.name)) is not None:
        return _repeated(branch, first, token=token)
    classes = revision.key_classes
    span = key_range if isinstance(key_range, KeyRange) else key_range.read(revision.key, classes)
    spec = check_delete(revision, key_range=span, where=write.where, narrow=True)
    if spec is None:
        return DeleteResult(None)
    id = branch.context.ids.new()
    action, author = spec.tombstone(id, reason=write.message), branch.context.author
    # an interval may be held without records
    if not giving_up(revision.state, [action], branch=branch.name, id=id) and not may_delete(
        revision, spec, branch.history, branch.store
    ):
        return DeleteResult(None)
    check_classes(span, revision.key, classes)
    removed = removed_by(branch, revision, spec, looks=write.count)
    draft = Draft(
        id,
        branch.name,
        revision.version,
        author,
        (action,),
        message=write.message,
        token=token,
        is_exact=believed is not None,
        metadata=branch.own_metadata(removed_metadata(removed)),
    )
    committed = branch.commit_draft(draft, does="deletes")
    if committed.repeated:
        return _repeated(branch, committed.repeated, token=token)
    if committed.version != revision.version + 1:  # others may have added some that it removed, too
        removed = None
    return DeleteResult(
        committed.version,
        committed.transaction_id,
        covers=_covers(branch, id),
        records=None if removed is None else removed.records,
        is_exact=removed is None or removed.is_exact,
    )


def _covers(branch: Line, tombstone_id: str) -> int:
    """Returns the number of references whose records the tombstone may hide."""
    try:
        revision = branch.revision(recent=True)
        tombstone = revision.held.tombstones.get(tombstone_id)
        return len(revision.may_hide(tombstone)) if tombstone is not None else 0
    except LakeError:  # the delete is committed: an error while counting must not become its result
        return 0


def _repeated(branch: Line, first: Remembered, *, token: str) -> DeleteResult:
    done = repeated_delete(first, token=token)
    check_kind(branch.history, first, (TokenKind.DELETE,), token=token)
    return done
