"""One transaction that removes references of a branch and adds objects; a race that it loses is a result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from lake_core.errors import Conflict
from lake_core.history import Committed, Draft, Reference
from lake_core.records import Action, RemoveReference
from log_lake.lake.branch import Branch
from log_lake.objects.write import WrittenObject
from log_lake.rewriting.work import Rewriting


@dataclass(frozen=True)
class LostRace:
    """Another writer changed first what was to be changed: nothing was committed.  Plan again."""

    error: Conflict


@dataclass(frozen=True)
class Exchange:
    """What one transaction does to a branch, as planned on `read_version`.

    The `removed` references go, the `written` objects come, the `others` are further actions.  `oldest_only`: what
    goes must hide nothing of what stays.  `does` says it in a log.
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
    """Commit the change.  Raises NotFound (the branch was deleted), OutcomeUnknown, Unavailable."""
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
    branch: Branch, work: Rewriting, written: Iterable[WrittenObject | None], *, does: str
) -> Committed | LostRace:
    """Remove the inputs and add the new objects.  Raises what `exchange` raises."""
    return exchange(
        branch,
        Exchange(
            work.origin.transaction_id,
            work.read_version,
            does,
            removed=work.inputs,
            written=[one for one in written if one is not None],
            message=work.message,
            metadata=work.metadata,
            oldest_only=work.oldest_only,
        ),
    )
