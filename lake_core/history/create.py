"""Decides how a draft that creates or deletes a branch fits the newest state; pure.

A new branch begins with the references and tombstones of its parent.  To begin it on an older revision, the
same transaction carries the difference between that revision and the parent's tip.  The difference was computed
for one tip; if the parent has moved, the draft must be planned again.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from lake_core.errors import AlreadyExists, Conflict, InvalidInput, NotFound, PlanAgain
from lake_core.history.branch_state import BranchState, Fork, children
from lake_core.history.draft import Draft
from lake_core.history.lift import pack
from lake_core.history.snapshot.reference import Reference
from lake_core.history.state import PoolState
from lake_core.history.tombstone import Tombstone
from lake_core.naming import MAIN
from lake_core.phrases import did_you_mean, listed
from lake_core.records import (
    Action,
    CreateBranch,
    DeleteBranch,
    PutInlined,
    PutReference,
    PutSummed,
    PutTombstone,
    RemoveReference,
    RemoveTombstone,
)
from lake_core.records.branching import Restored


def branch_of(state: PoolState, name: str) -> BranchState:
    """Returns the branch with this name.  Raises NotFound."""
    branch = state.branches.get(name)
    if branch is None:
        raise NotFound(f"branch {name!r} does not exist; {did_you_mean(name, state.branches)}")
    return branch


def creating(state: PoolState, draft: Draft, action: CreateBranch) -> tuple[Action, ...]:
    """Returns the complete actions of a draft that creates its branch.  Raises AlreadyExists, NotFound (no such
    parent), PlanAgain if the parent has moved since the difference was computed."""
    if draft.branch in state.branches or draft.branch in state.tags:
        what = "branch" if draft.branch in state.branches else "tag"
        raise AlreadyExists(f"a {what} {draft.branch!r} exists already; choose another name")
    parent = branch_of(state, action.parent)
    if action.tip is None:
        action = msgspec.structs.replace(action, tip=parent.tip, at=parent.tip)
    elif action.tip != parent.tip:
        raise PlanAgain(f"branch {action.parent!r} has moved from {action.tip} to {parent.tip}; plan again")
    return action, *draft.actions[1:]


def check_deleted(state: PoolState, draft: Draft, action: DeleteBranch) -> None:
    """Raises InvalidInput if the branch cannot be deleted (main, or a branch with children), NotFound if it does
    not exist, and PlanAgain if it has moved."""
    if draft.branch == MAIN:
        raise InvalidInput("the branch 'main' cannot be deleted; lake drop removes the whole pool")
    branch = branch_of(state, draft.branch)
    if below := children(state.branches, draft.branch):
        raise InvalidInput(
            f"branch {draft.branch!r} cannot be deleted: {listed(below)} began on it; delete these first"
        )
    if branch.tip > action.version:
        raise PlanAgain(f"branch {draft.branch!r} has moved to {branch.tip}; plan again")
    if action.root in state.tags:
        raise Conflict(f"tag {action.root!r} exists already; plan again")


def restored(fork: Fork) -> Restored:
    """Returns how a restored branch relates to its parent, as the action states it."""
    writes = None if fork.writes is None else pack(reversed(list(fork.writes)))
    return Restored(fork.created, fork.merged, fork.joined, writes)


def difference(present: BranchState, target: BranchState) -> Iterator[Action]:
    """Yields the actions that turn the content of one branch (`present`) into that of another (`target`), in a
    fixed order."""
    ours, theirs = _references(present), _references(target)
    for identity, reference in sorted(ours.items()):
        if theirs.get(identity) != reference:
            yield RemoveReference(reference.object, reference.low)
    for identity, reference in sorted(theirs.items()):
        if ours.get(identity) != reference:
            yield putting(reference)
    for name, tombstone in sorted(present.tombstones.items()):
        if target.tombstones.get(name) != tombstone:
            yield RemoveTombstone(name, forced=True)
    for name, tombstone in sorted(target.tombstones.items()):
        if present.tombstones.get(name) != tombstone:
            yield putting_tombstone(tombstone)


def _references(branch: BranchState) -> dict[tuple[str, bytes], Reference]:
    return {(r.object, r.low): r for r in branch.snapshot.all()}


def putting(reference: Reference) -> PutReference:
    """Returns the action that gives a branch this reference."""
    kind: type[PutReference] = PutInlined if reference.data else PutReference
    sums = {}
    if reference.content:
        kind, sums = PutSummed, {"content": reference.content}
    return kind(
        object=reference.object,
        low=reference.low,
        high=reference.high,
        seq=reference.seq,
        records=reference.records,
        size=reference.size,
        schema=reference.schema,
        ordinal=reference.ordinal,
        sub_pool=reference.sub_pool,
        columns=reference.columns,
        oldest=reference.oldest,
        applied=reference.applied,
        lifts=reference.lifts,
        data=reference.data,
        **sums,
    )


def putting_tombstone(tombstone: Tombstone, *, settled: bool = False, replaced_in: int = 0) -> PutTombstone:
    """Returns the action that gives a branch this tombstone."""
    return PutTombstone(
        tombstone=tombstone.id,
        seq=tombstone.seq,
        low=tombstone.low,
        high=tombstone.high,
        condition=tombstone.condition,
        reason=tombstone.reason,
        replaces=tombstone.replaces,
        only=tombstone.exactly,
        sub_pool=tombstone.sub_pool,
        settled=settled,
        replaced_in=replaced_in,
    )
