"""Decides whether a draft may be committed beside a pending part that is not decided yet; pure.

A part is merged where it is settled, so a draft that is committed in between precedes it in the journal.  By
then a reader may have seen the transaction without the draft.  So both orders must give the same records, and
the part must still be mergeable after the draft:

- Allowed: upkeep of the two branches that shows the same records before and after, tags, split points, vacuums.
- Allowed: a load into an append pool, if the part deletes and replaces nothing, and has none of its source
  files.
- Allowed: a draft that affects neither the part's branch nor the one that it will be merged into, if it does
  not have the part's token and does not give the sums of an aggregate pool more digits.
- Every other draft must wait, but not long: a part is undecided only for a few requests of its owner or, if the
  owner died, until its lease ends.
"""

from __future__ import annotations

from lake_core.history.draft import Draft
from lake_core.history.fields import brings_digits
from lake_core.history.state import PoolState
from lake_core.history.transactions.part import PendingPart
from lake_core.records import (
    AddInlined,
    AddObject,
    Close,
    Conserve,
    Consume,
    CreateBranch,
    MarkApplied,
    Merge,
    Prepare,
    RemoveReference,
    RemoveTombstone,
    SetMerged,
    Settle,
)
from lake_core.schemas import Rule


def undecided(state: PoolState, draft: Draft, rule: Rule) -> str:
    """Returns the transaction whose pending part does not commute with the draft; "" if there is none.  A draft
    that settles a part commutes with it."""
    settled = {action.over for action in draft.actions if isinstance(action, Settle)}
    for over, part in sorted(state.pending.items()):
        if over not in settled and not commutes(state, part, draft, rule):
            return over
    return ""


def commutes(state: PoolState, part: PendingPart, draft: Draft, rule: Rule) -> bool:
    """Whether both orders of the part and the draft give the same records, and both can be committed."""
    of_part = {part.into, part.branch}
    if part.token and part.token in _tokens(draft):
        return False
    if brings_digits(state, draft, rule):  # the merge may have no room for sums any more
        return False
    if any(isinstance(action, Close) for action in draft.actions) or not of_part.isdisjoint(_touched(draft)):
        return False
    if draft.branch not in of_part:
        return True
    return _is_upkeep(draft) or (draft.branch == part.into and _only_adds(state, part, draft, rule))


def _tokens(draft: Draft) -> set[str]:
    """Returns the tokens that the draft uses, or promises to use."""
    return {draft.token, *(a.token for a in draft.actions if isinstance(a, Prepare))}


def _touched(draft: Draft) -> set[str]:
    """Returns the branches, other than its own, that the draft reads or changes as a whole."""
    touched = set()
    for action in draft.actions:
        match action:
            case CreateBranch(parent=name) | Merge(branch=name) | SetMerged(branch=name):
                touched.add(name)
            case Prepare(branch=name, into=into):
                touched |= {name, into}
            case _:
                pass
    return touched


def _is_upkeep(draft: Draft) -> bool:
    """Whether the draft compacts, or applies or retires deletes: readers see the same records before and after."""
    if draft.oldest_only or draft.is_exact or draft.only_takes:
        return False
    return all(
        isinstance(action, RemoveReference | MarkApplied | RemoveTombstone | Conserve)
        or (isinstance(action, AddObject) and action.seqs is not None)
        for action in draft.actions
    )


def _only_adds(state: PoolState, part: PendingPart, draft: Draft, rule: Rule) -> bool:
    """Whether the draft only adds records that the part does not affect, in a pool that keeps all records."""
    child = state.branches[part.branch]
    if not rule.keeps_all or child.fork is None:
        return False
    if any(child.fork.is_unmerged(t.seq) for t in (*child.tombstones.values(), *child.settled.values())):
        return False
    for action in draft.actions:
        if isinstance(action, Consume):
            if any((part.branch, source.uri) in state.sources for source in action.sources):
                return False
        elif not (isinstance(action, AddObject | AddInlined) and action.seqs is None):
            return False
    return True
