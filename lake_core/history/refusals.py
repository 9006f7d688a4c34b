"""Decides whether a refusal is final: a draft must not be committed by another writer after its own writer was
refused; pure.

A writer that is refused tells its caller, and withdraws its request.  But another writer may have read the
request before, and the store may not delete it.  So a draft that one state refuses must stay refused on all
later states:

- `rebase` refuses forever all work that began before the pool, or the branch, was closed and opened again.
- A draft that later states may accept is never a request (`Draft.is_own`, `may_be_posted`).
- If a later state may accept a request for another reason, other writers leave it to its own writer
  (`may_have_been_refused`).

Maintenance that shows the same records before and after is an exception: compaction, applied deletes, the
retiring of a tombstone.  Whether it is right is decided when it is committed, and another writer's copy of it
does no harm.
"""

from __future__ import annotations

from lake_core.history.covered import is_interval
from lake_core.history.draft import Draft
from lake_core.history.fields import brings_digits, may_be_too_wide
from lake_core.history.offsets import is_offsets
from lake_core.history.state import PoolState
from lake_core.records import Consume
from lake_core.schemas import Rule


def may_be_posted(state: PoolState, draft: Draft, *, rule: Rule) -> bool:
    """Whether a draft may be stored as a request, which other writers may commit from this state on.  Only for
    drafts that are not `is_own`.

    A load that gives a summed decimal field more digits after the point is refused while the pool has large
    values, but accepted once these are deleted.  So only its own writer may commit it.
    """
    return not brings_digits(state, draft, rule)


def may_have_been_refused(state: PoolState, draft: Draft, *, since: int) -> bool:
    """Whether a state after version `since` may have refused a posted draft that this state accepts.

    A source file may have been ingested and then given back, or replaced by a newer version of itself.  The
    offsets of a stream may have moved forward and back.  A sub-pool may have had too many fields.  If the
    answer is yes, it stays yes on all later states.
    """
    consumed = (action for action in draft.actions if isinstance(action, Consume))
    sources = (
        s for action in consumed for s in action.sources if not is_interval(s)
    )  # nothing refuses those
    changed = any(
        (state.ingested(draft.branch, source.uri) is not None and not is_offsets(source))
        or state.source_changed(draft.branch, source.uri) > since
        for source in sources
    )
    return changed or may_be_too_wide(state, draft)
