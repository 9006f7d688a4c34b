"""Decides how a draft that prepares or settles a part fits the newest state, and folds such transactions; pure.

A prepared part is a promise to merge a branch.  So `preparing` refuses whatever a merge would refuse now, and
`commuting` keeps out every draft that could cause a refusal later.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from rpds import HashTrieMap

from lake_core.errors import Conflict, Corrupt, InvalidInput, NotFound
from lake_core.history.branching import split_writes
from lake_core.history.draft import Draft
from lake_core.history.merge import mergeable
from lake_core.history.state import PoolState, Remembered
from lake_core.history.transactions.part import PendingPart
from lake_core.naming import transaction_of
from lake_core.records import (
    Action,
    CreateBranch,
    DeleteBranch,
    EndBranch,
    Merge,
    Prepare,
    Settle,
    Transaction,
)

Merging = Callable[[PoolState, Draft, Merge], tuple[Action, ...]]


def preparing(
    state: PoolState, draft: Draft, action: Prepare, merging: Merging
) -> tuple[Action, ...] | Remembered:
    """Returns the actions of a draft that prepares a part, or what the transaction's token committed before.

    There are no actions if the part is already prepared, or if its branch has nothing to merge.  Raises what a
    merge raises.
    """
    if action.over in state.pending:
        return ()
    if action.token and (first := state.tokens.get(action.token)) is not None:
        return first
    child, fork = mergeable(state, action.branch, into=action.into)
    if fork.merged or fork.writes is None or not split_writes(fork, child.tip)[0]:
        return ()
    merging(state, _merge_of(draft, action), Merge(action.branch, child.tip))
    return (msgspec.structs.replace(action, upto=child.tip),)


def _merge_of(draft: Draft, action: Prepare) -> Draft:
    """Returns the draft of the merge that a part promises."""
    return Draft(action.settle_id, action.into, draft.read_version, draft.author, (), token=action.token)


def settling(part: PendingPart, over: str, *, committed: bool, prepared: dict[str, int]) -> Draft:
    """Returns the draft that settles a part.  Every process that settles the part makes the same draft."""
    if not committed:
        return Draft(part.settle_id, "", part.version, part.author, (Settle(over),), message=f"abort {over}")
    return Draft(
        part.settle_id,
        part.into,
        part.version,
        part.author,
        (Merge(part.branch, part.upto), Settle(over, True, prepared)),
        message=f"transaction {over} over {len(prepared)} pools",
        token=part.token,
    )


def is_settled(state: PoolState, draft: Draft) -> bool:
    """Whether the draft settles a part that another writer has settled."""
    return any(isinstance(action, Settle) and action.over not in state.pending for action in draft.actions)


def check_branch_of_transaction(state: PoolState, draft: Draft) -> None:
    """Raises an error for a draft that would break up the writes of a transaction over pools on its own branch.

    Raises InvalidInput if the draft merges the branch, deletes it with a tag, or begins another branch on it.
    Raises Conflict if the transaction is already committed.
    """
    first = draft.actions[0] if draft.actions else None
    settles = any(isinstance(action, Settle) for action in draft.actions)
    if isinstance(first, Merge) and transaction_of(first.branch) and not settles:
        raise InvalidInput(
            f"branch {first.branch!r} belongs to a transaction, which commits all its pools at once: "
            f"lake.transaction({transaction_of(first.branch)!r}).commit()"
        )
    if isinstance(first, CreateBranch) and transaction_of(first.parent):
        raise InvalidInput(f"branch {first.parent!r} belongs to a transaction; no other branch begins on it")
    branch = state.branches.get(draft.branch)
    over = transaction_of(draft.branch)
    if over and isinstance(first, DeleteBranch):
        raise InvalidInput(
            f"branch {draft.branch!r} belongs to a transaction, whose other pools would be committed without it: "
            f"lake.transaction({over!r}).abort() removes it"
        )
    fork = None if branch is None else branch.fork
    if over and fork is not None and fork.merged and not isinstance(first, EndBranch):
        raise Conflict(f"transaction {over} is committed, and takes no more writes")


def check_ended(state: PoolState, draft: Draft, action: EndBranch) -> None:
    """Raises InvalidInput if the branch does not belong to a transaction over pools, and PlanAgain if it has moved
    since."""
    branch = state.branches.get(draft.branch)
    if branch is None:
        raise NotFound(f"branch {draft.branch!r} does not exist")
    if not transaction_of(draft.branch):
        raise InvalidInput(f"branch {draft.branch!r} belongs to no transaction; delete it (lake branch -d)")


def pended(state: PoolState, version: int, transaction: Transaction) -> HashTrieMap[str, PendingPart]:
    """Returns the pending parts after a transaction of no branch.  Raises Corrupt if an action does not fit."""
    pending = state.pending
    for action in transaction.actions:
        if isinstance(action, Prepare):
            pending = pending.insert(action.over, _prepared(state, version, transaction, action))
        elif isinstance(action, Settle):
            if action.committed or action.over not in pending:
                raise Corrupt(
                    f"settle {action.over}: no part of it is pending, or it comes without its merge"
                )
            pending = pending.remove(action.over)
    return pending


def _prepared(state: PoolState, version: int, transaction: Transaction, action: Prepare) -> PendingPart:
    child = state.branches.get(action.branch)
    fork = None if child is None else child.fork
    if action.over in state.pending:
        raise Corrupt(f"prepare {action.over}: it is pending already")
    if child is None or fork is None or (fork.parent, child.tip) != (action.into, action.upto):
        raise Corrupt(
            f"prepare {action.over}: branch {action.branch!r} is not at {action.upto}, or not of {action.into!r}"
        )
    return PendingPart(
        action.branch, action.into, action.upto, version, action.settle_id, transaction.author, action.token
    )


def merged_part(
    pending: HashTrieMap[str, PendingPart], transaction: Transaction, action: Settle
) -> HashTrieMap[str, PendingPart]:
    """Returns the pending parts after this transaction merged one of them.  Raises Corrupt if the transaction does
    not merge the part that `action` names."""
    part = pending.get(action.over)
    merges = [(a.branch, a.upto) for a in transaction.actions if isinstance(a, Merge)]
    if (
        part is None
        or not action.committed
        or (merges, transaction.branch) != ([(part.branch, part.upto)], part.into)
    ):
        raise Corrupt(f"settle {action.over}: no such part is pending, or it is not merged here")
    return pending.remove(action.over)
