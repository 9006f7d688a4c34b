"""The branch that a transaction over several pools has in one of them: whether it has writes, and how it is
removed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence

from lake_core.errors import NotFound
from lake_core.history import Draft, PoolState, Reference, Snapshot
from lake_core.history.branch_state import BranchState
from lake_core.history.transactions.decisions import TOKEN
from lake_core.ids import first_id, id_seconds
from lake_core.naming import transaction_of
from lake_core.records import EndBranch, RemoveReference
from log_lake.lake.pool import Pool

SLACK = 3_600.0
"""Seconds by which the clock of a writer in the transaction may be behind that of the process that began it."""


def branch_of(pool: Pool, state: PoolState, name: str) -> BranchState:
    """Returns the branch of this name.  Raises NotFound."""
    if name not in state.branches:
        raise NotFound(f"pool {pool.name!r}: branch {name!r} does not exist")
    return state.branches[name]


def first_use(pools: Sequence[Pool], token: str) -> dict[str, int]:
    """Returns the versions of the first commit that used a transaction's token, by the names of the pools that
    know it."""
    first = {pool.name: pool.history.load_open().state.tokens.get(f"{TOKEN}{token}") for pool in pools}
    return {name: one.version for name, one in first.items() if one is not None}


def has_writes(child: BranchState) -> bool:
    """Whether the branch has writes that a merge would bring to its parent."""
    return (
        child.fork is not None
        and not child.fork.merged
        and (child.fork.writes is None or bool(child.fork.writes))
    )


def end_committed(pool: Pool) -> None:
    """Removes the branches of transactions that were merged, if their processes died before they removed them.

    Such a branch accepts no writes, so work that changes all branches of a pool could not go on. Raises what
    `end_branch` raises.
    """
    for name, branch in sorted(pool.history.load_open().state.branches.items()):
        if transaction_of(name) and branch.fork is not None and branch.fork.merged:
            end_branch(pool, name)


def end_branch(pool: Pool, name: str) -> None:
    """Removes the branch of a transaction, if it exists; objects that only it has go onto the list of removed
    objects.

    Raises PlanAgain if it has changed meanwhile, NotFound if the pool was dropped.
    """
    loaded = pool.history.load_open()
    child = loaded.state.branches.get(name)
    if child is None or child.fork is None:
        return
    parent = loaded.state.branches[child.fork.parent].snapshot
    own = [r for r in _since(child.snapshot, transaction_of(name)) if not parent.holds(r.object, r.low)]
    context = pool.context
    draft = Draft(
        context.ids.new(),
        name,
        loaded.version,
        context.author,
        (EndBranch(loaded.version), *(RemoveReference(r.object, r.low) for r in own)),
        message=f"end {name}",
        is_exact=True,
    )
    with contextlib.suppress(NotFound):  # another process removed it
        pool.history.commit(draft)


def _since(snapshot: Snapshot, over: str) -> Iterable[Reference]:
    """Returns references; all whose objects were written since the transaction began are among them.

    Loads of the transaction wrote such objects, and so did rewritings of its branch, such as an erasure. A
    fixed part of the snapshot is skipped if its newest id shows that the part is older; otherwise all of its
    references are returned.
    """
    fixed = max(snapshot.checkpoint.newest, snapshot.folded.newest)
    return snapshot.all() if fixed > first_id(id_seconds(over) - SLACK) else snapshot.added.values()
