"""Creates and deletes branches of a pool.  Called by `Pool`.

A branch is made by one small transaction, whatever the pool's size: it gets the references of its parent.  Only
a branch that begins on an older revision also needs the difference to that revision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from lake_core import naming
from lake_core.errors import CheckpointGone, InvalidInput, NotFound, PlanAgain
from lake_core.history import Committed, Draft, PoolState
from lake_core.history.branch_state import BranchState
from lake_core.history.create import branch_of, difference, putting_tombstone, restored
from lake_core.history.limits import MOST_INLINED
from lake_core.journal import LoadedState, write_state
from lake_core.journal.purge import keep_version, passed
from lake_core.naming import MAIN
from lake_core.phrases import human_size
from lake_core.records import Action, CreateBranch, DeleteBranch
from log_lake.lake.journaled import Journaled
from log_lake.lake.named import resolve_revision

TRIES = 10
"""How often an operation is planned again because the branches have moved meanwhile."""

MOST_OF_BRANCHES = 4 * MOST_INLINED
"""How many bytes of inlined objects all branches together may have when a branch is created: a checkpoint stores
those of each branch."""

T = TypeVar("T")


@dataclass(frozen=True)
class BranchResult:
    """A branch that was created or deleted.  `at`: for a created branch the parent's version on which it began,
    for a deleted one its own last version.

    `root`: the tag that keeps a deleted branch.  `unmerged`: the number of writes that were never merged into
    its parent.
    """

    version: int
    transaction_id: str
    branch: str
    parent: str
    at: int
    root: str = ""
    unmerged: int = 0


def planned(plan: Callable[[], T]) -> T:
    """Calls `plan`, and again while it raises PlanAgain, at most `TRIES` times; returns its result."""
    for _ in range(TRIES - 1):
        try:
            return plan()
        except (PlanAgain, CheckpointGone):
            continue
    return plan()


def create(pool: Journaled, name: str, *, at: str) -> BranchResult:
    """Creates a branch on a revision, or restores a deleted one on the tag that keeps it."""
    naming.check_chosen_name(naming.check_branch_name(name), what="branch")
    return planned(lambda: _create(pool, name, at=at))


def _create(pool: Journaled, name: str, *, at: str) -> BranchResult:
    history = pool.history
    loaded, parent = resolve_revision(history, at)
    newest = history.load_open()
    target = branch_of(loaded.state, parent)
    actions: tuple[Action, ...]
    tag = newest.state.tags.get(at)
    if tag is not None and tag.deleted:
        if name != parent:
            raise InvalidInput(
                f"{at!r} is the deleted branch {parent!r}: restore it under its name, then create others on it"
            )
        assert target.fork is not None  # main cannot be deleted
        parent, start = target.fork.parent, target.fork.at
        parent_now = branch_of(newest.state, parent)
        settled = (putting_tombstone(t, settled=True) for _, t in sorted(target.settled.items()))
        actions = (
            CreateBranch(parent, parent_now.tip, start, restored(target.fork)),
            *difference(parent_now, target),
            *settled,
        )
    elif parent not in newest.state.branches:
        raise NotFound(
            f"revision {at!r} is of the branch {parent!r}, which is deleted; restore that branch first (lake tags "
            "lists deleted branches)"
        )
    else:
        actions, start = _of_revision(newest.state, target, parent, version=loaded.version)
    check_inlined(pool, newest.state, target)
    draft = Draft(
        pool.context.ids.new(),
        name,
        newest.version,
        pool.context.author,
        actions,
        message=f"create branch from {at}",
    )
    done = history.commit(draft)
    return BranchResult(done.version, done.transaction_id, name, parent, start)


def check_inlined(pool: Journaled, state: PoolState, target: BranchState) -> None:
    """Raises InvalidInput if all branches, with the new one, would have too many bytes of inlined objects for a
    checkpoint."""
    inlined = sum(branch.snapshot.inlined for _, branch in state.branches.items())
    if target.snapshot.inlined and inlined + target.snapshot.inlined > MOST_OF_BRANCHES:
        raise InvalidInput(
            f"pool {pool.name!r}: its branches have {human_size(inlined)} of small loads in the journal, and this "
            f"one would add {human_size(target.snapshot.inlined)}; write them as files first (lake compact "
            f"{pool.name} --strategy full)"
        )


def _of_revision(
    newest: PoolState, target: BranchState, parent: str, *, version: int
) -> tuple[tuple[Action, ...], int]:
    """Returns the actions that create a branch on a state of the parent, and the parent's version that it begins
    on."""
    parent_now = newest.branches[parent]
    if target.tip == parent_now.tip:
        return (CreateBranch(parent),), parent_now.tip
    return (CreateBranch(parent, parent_now.tip, version), *difference(parent_now, target)), version


def delete(pool: Journaled, name: str) -> BranchResult:
    """Deletes a branch; a tag keeps its state, so that it can be restored."""
    return planned(lambda: _delete(pool, name))


def _delete(pool: Journaled, name: str) -> BranchResult:
    history, context = pool.history, pool.context
    loaded = history.load_open()
    branch = branch_of(loaded.state, name)
    root = naming.deleted_branch(name, loaded.version)
    if name == MAIN or branch.fork is None:
        raise InvalidInput("the branch 'main' cannot be deleted; lake drop removes the whole pool")
    action = DeleteBranch(root, loaded.version)
    draft = Draft(
        context.ids.new(),
        name,
        loaded.version,
        context.author,
        (action,),
        message=f"delete branch {name}",
    )
    done = keeping(pool, loaded, draft)
    unmerged = 0 if branch.fork.writes is None else len(branch.fork.writes)
    return BranchResult(
        done.version, done.transaction_id, name, branch.fork.parent, loaded.version, root, unmerged
    )


def keeping(pool: Journaled, loaded: LoadedState[PoolState], draft: Draft) -> Committed:
    """Commits a draft, such as a tag, after which purges keep the loaded state.  Ensures that this state has a
    checkpoint before and after the commit."""
    pool.history.check_draft(draft)  # before the checkpoint is written
    journal, ids, now = pool.history.journal, pool.context.ids, pool.context.now()
    keep_version(journal, loaded, id=ids.new(), now=now)
    done = pool.history.commit(draft)
    if passed(journal, loaded.version):
        write_state(journal, loaded, id=ids.new(), now=now)
    return done
