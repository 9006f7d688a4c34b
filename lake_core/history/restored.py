"""Checks that a checkpoint's state is one that a fold of entries up to its version can make; pure.

The types of its rows already check each row alone.  This module checks the relations between rows: everything
that a row refers to exists, parents of branches form no circle, and nothing is newer than the checkpoint.
Called by `checkpoint`.
"""

from __future__ import annotations

from collections.abc import Iterator

from lake_core.errors import Corrupt
from lake_core.history.branch_state import BranchState, Fork
from lake_core.history.state import PoolState
from lake_core.history.transactions.part import PendingPart
from lake_core.naming import MAIN
from lake_core.records.transactions import version_of


def check_restored(state: PoolState, *, version: int) -> None:
    """Raises Corrupt if no fold of entries up to the version makes the state."""
    if MAIN not in state.branches:
        raise Corrupt(f"there is no branch {MAIN}")
    for name, branch in state.branches.items():
        _check_branch(state, name, branch)
    for over, part in state.pending.items():
        child = state.branches.get(part.branch)
        if child is None or child.fork is None or not _fits(child, child.fork, part):
            raise Corrupt(f"transaction {over}: its pending part does not fit branch {part.branch[:80]!r}")
    for what, named in _versions(state):
        if named > version:
            raise Corrupt(f"{what} is of version {named}, and the checkpoint of version {version}")


def _fits(child: BranchState, fork: Fork, part: PendingPart) -> bool:
    """Whether the pending part may still be merged: since it was prepared, only upkeep has moved its branch."""
    newest = next(iter(fork.writes or ()), 0)
    return fork.parent == part.into and version_of(newest) <= part.upto <= child.tip


def _check_branch(state: PoolState, name: str, branch: BranchState) -> None:
    for _, schema in branch.snapshot.shapes:
        if schema not in state.schemas:
            raise Corrupt(f"branch {name!r}: schema {schema[:80]!r} was not announced")
    for tombstones in (branch.tombstones, branch.settled):
        if any(id != tombstone.id for id, tombstone in tombstones.items()):
            raise Corrupt(f"branch {name!r}: a tombstone has the name of another one")
    seen = {name}
    fork = branch.fork
    while fork is not None:  # bounded: no branch comes twice
        if fork.parent in seen or fork.parent not in state.branches:
            raise Corrupt(f"branch {name!r}: its parent {fork.parent[:80]!r} does not exist, or begins on it")
        seen.add(fork.parent)
        fork = state.branches[fork.parent].fork


def _versions(state: PoolState) -> Iterator[tuple[str, int]]:
    """Yields a description of each thing in the state that names a version, and that version."""
    for name, branch in state.branches.items():
        yield f"branch {name!r}", max(branch.tip, branch.replaced, branch.revealed)
        if branch.fork is not None:
            fork = branch.fork
            versions = (fork.at, fork.created, fork.merged, fork.joined, fork.restored)
            yield f"the fork of branch {name!r}", max(versions)
        for tombstones in (branch.tombstones, branch.settled):
            for id, tombstone in tombstones.items():
                yield f"tombstone {id!r}", max(tombstone.version, version_of(tombstone.seq))
    for name, tag in state.tags.items():
        yield f"tag {name!r}", max(tag.version, tag.set_at)
    for base in state.lifts:
        yield "a lift", version_of(base)
    for seq, vacuum in state.removed.vacuums.items():
        yield "a vacuum", max(version_of(seq), *(removal.version for removal in vacuum.removals), 0)
    for over, part in state.pending.items():
        yield f"transaction {over}", max(part.version, part.upto)
    yield "the horizon of vacuums", state.removed.horizon
    yield "the closing", max(0 if state.closed is None else state.closed.version, state.reopened)
