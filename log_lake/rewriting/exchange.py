"""Commits one transaction that removes references of a branch and adds objects; a lost race is an ordinary
result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from lake_core.errors import Conflict
from lake_core.history import Committed, Draft, Reference
from lake_core.records import Action, RemoveReference
from log_lake.lake.branch import Branch
from log_lake.measuring import timed
from log_lake.objects.write import WrittenObject
from log_lake.rewriting.pieces import RewrittenPiece, objects_of, statement
from log_lake.rewriting.rewriting import Rewriting


@dataclass(frozen=True)
class LostRace:
    """The result if another writer changed one of the inputs first, so that nothing was committed.  Plan
    again."""

    error: Conflict


@dataclass(frozen=True)
class Exchange:
    """What one transaction does to a branch, as planned on `read_version`.

    It removes the references `removed`, adds the objects `written`, and has further actions `others`.
    `oldest_only`: the removed references must not hide records of references that stay.  `does` describes the
    transaction for logs.
    """

    id: str
    read_version: int
    does: str
    removed: Sequence[Reference] = ()
    written: Sequence[WrittenObject] = ()
    others: Sequence[Action] = ()
    message: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    oldest_only: bool = False


def exchange(branch: Branch, change: Exchange) -> Committed | LostRace:
    """Commits the change.  Raises NotFound (the branch was deleted), OutcomeUnknown, Unavailable."""
    draft = Draft(
        id=change.id,
        branch=branch.name,
        read_version=change.read_version,
        author=branch.context.author,
        actions=(
            *(RemoveReference(r.object, r.low) for r in change.removed),
            *(msgspec.structs.replace(w.action, applied=change.read_version) for w in change.written),
            *change.others,
        ),
        schemas=tuple({w.action.schema: w.schema for w in change.written}.values()),
        message=change.message,
        oldest_only=change.oldest_only,
        metadata=change.metadata,
    )
    try:
        return branch.commit_draft(draft, does=change.does)
    except Conflict as error:
        return LostRace(error)


def commit(
    branch: Branch, work: Rewriting, pieces: Sequence[RewrittenPiece], *, does: str
) -> Committed | LostRace:
    """Commits the removal of the inputs and the new objects.  Raises NotConserved, and what `exchange` raises."""
    stated = statement(work, pieces)
    change = Exchange(
        work.origin.transaction_id,
        work.read_version,
        does,
        removed=work.inputs,
        written=objects_of(pieces),
        others=() if stated is None else (stated,),
        message=work.message,
        metadata=work.metadata,
        oldest_only=work.oldest_only,
    )
    with timed(branch.store, "rewriting.commit"):
        return exchange(branch, change)
