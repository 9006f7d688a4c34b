"""The part of the fold that creates, deletes and merges branches.

Pure and total, like the fold: an action that does not fit is Corrupt.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from rpds import HashTrieMap, List

from lake_core.errors import Corrupt
from lake_core.history.branch_state import BranchState, Fork, Roots, children, with_settled
from lake_core.history.lift import Lift, pack, unpack
from lake_core.history.snapshot.reference import Reference
from lake_core.history.tombstone import Tombstone
from lake_core.records import (
    CreateBranch,
    Merge,
    PutReference,
    PutSummed,
    PutTombstone,
    SetMerged,
    Transaction,
)
from lake_core.records.transactions import version_of

Branches: TypeAlias = "HashTrieMap[str, BranchState]"


def created(branches: Branches, name: str, version: int, action: CreateBranch) -> Branches:
    """Returns the branches with a new one, which has its parent's references and tombstones."""
    if name in branches:
        raise Corrupt(f"branch {name!r}: created, but it exists")
    parent = branches.get(action.parent)
    if parent is None:
        raise Corrupt(f"branch {name!r}: its parent {action.parent!r} does not exist")
    if action.tip != parent.tip or action.at is None or not 0 <= action.at < version:
        raise Corrupt(
            f"branch {name!r}: its parent {action.parent!r} is at {parent.tip}, not at {action.tip}"
        )
    fork = Fork(action.parent, action.at, version)
    restored = action.restored
    if restored is not None:
        writes = None if restored.writes is None else packed_writes(restored.writes)
        fork = Fork(
            action.parent, action.at, restored.created, restored.merged, restored.joined, writes, version
        )
    return branches.insert(name, BranchState(0, parent.snapshot, parent.tombstones, parent.replaced, fork))


def deleted(branches: Branches, name: str, *, roots: Roots) -> Branches:
    """Returns the branches without the deleted one, which must have no children."""
    fork = branches[name].fork
    if fork is None or children(branches, name):
        raise Corrupt(f"branch {name!r}: deleted, but it was not created from another one, or has children")
    return with_settled(branches.remove(name), fork.parent, roots=roots)


def merged(branches: Branches, name: str, version: int, action: Merge, *, roots: Roots) -> Branches:
    """Returns the branches after a merge into `name`.  The merged branch records the merge and the new sequences
    of its writes."""
    child = branches.get(action.branch)
    fork = _fork_of(child, action.branch, name)
    assert child is not None
    brought, kept = split_writes(fork, action.upto)
    if (
        not fork.merged <= action.upto < version
        or (action.since, action.joined) != (fork.merged, fork.joined)
        or pack(brought) != action.writes
    ):
        raise Corrupt(f"branch {action.branch!r}: merged, but these are not its writes since {fork.merged}")
    after = replace(fork, merged=action.upto, joined=version, writes=_newest_first(kept))
    changed = branches.insert(action.branch, replace(child, fork=after))
    return with_settled(changed, action.branch, roots=roots)


def merged_until(
    branches: Branches,
    name: str,
    version: int,
    transaction: Transaction,
    action: SetMerged,
    *,
    roots: Roots,
) -> Branches:
    """Returns the branches after a merge into `name` was reverted, or after such a revert was reverted. The merged
    branch records how far it is merged now."""
    child = branches.get(action.branch)
    fork = _fork_of(child, action.branch, name)
    assert child is not None
    if fork.joined != action.version:
        raise Corrupt(f"branch {action.branch!r}: version {action.version} is not its newest merge")
    writes = None
    if fork.writes is not None:
        unmerged = [*unpack(action.writes), *reversed(list(fork.writes))]
        writes = _newest_first([seq for seq in unmerged if version_of(seq) > action.merged])
    after = replace(fork, merged=action.merged, joined=action.joined, writes=writes)
    settled = child.settled
    for again in action.settled:
        settled = settled.insert(again.tombstone, put_tombstone(again, None, version, transaction))
    changed = branches.insert(action.branch, replace(child, fork=after, settled=settled))
    return with_settled(changed, action.branch, roots=roots)


def _fork_of(child: BranchState | None, name: str, parent: str) -> Fork:
    if child is None or child.fork is None or child.fork.parent != parent:
        raise Corrupt(f"branch {name!r} was not created from {parent!r}")
    return child.fork


def packed_writes(writes: bytes) -> List[int]:
    """Returns the sequences of the writes that `pack` packed, newest first."""
    return _newest_first(unpack(writes))


def split_writes(fork: Fork, upto: int) -> tuple[list[int], list[int]]:
    """Returns the sequences of the unmerged writes up to the version `upto`, and of those after it, both oldest
    first.  Raises Corrupt if the branch no longer knows them, because they were too many."""
    if fork.writes is None:
        raise Corrupt("merged, but the branch gave its writes up")
    writes = list(fork.writes)[::-1]
    return (
        [seq for seq in writes if version_of(seq) <= upto],
        [seq for seq in writes if version_of(seq) > upto],
    )


def _newest_first(writes: list[int]) -> List[int]:
    return List(writes[::-1])


def put_reference(action: PutReference, lift: Lift | None, version: int) -> Reference:
    """Returns the reference as the branch will have it; in a merge its sequences are lifted (renumbered)."""
    seq, oldest, applied, lifts = action.seq, action.oldest, action.applied, action.lifts
    if lift is not None:
        seq, applied = lift.of(seq), version if applied else 0
        if oldest is not None:
            oldest, lifts = lift.of(oldest), (*lifts, lift.base)
    return Reference(
        object=action.object,
        low=action.low,
        high=action.high,
        seq=seq,
        ordinal=action.ordinal,
        records=action.records,
        size=action.size,
        schema=action.schema,
        sub_pool=action.sub_pool,
        columns=action.columns,
        oldest=oldest,
        applied=applied,
        lifts=lifts,
        data=action.data,
        content=action.content if isinstance(action, PutSummed) else b"",
    )


def put_tombstone(
    action: PutTombstone, lift: Lift | None, version: int, transaction: Transaction
) -> Tombstone:
    """Returns the tombstone as the branch will have it; in a merge its sequences are lifted (renumbered).

    Its version becomes that of this transaction. Otherwise references that were already searched for the
    tombstone would count as searched, although they may again have records that it covers.
    """
    seq, only = action.seq, action.only
    if lift is not None:
        seq = lift.of(seq)
        only = None if only is None else (lift.of(only[0]), lift.of(only[1]))
    return Tombstone(
        id=action.tombstone,
        version=version,
        seq=seq,
        read_version=transaction.read_version,
        transaction_id=transaction.id,
        time=transaction.time,
        low=action.low,
        high=action.high,
        condition=action.condition,
        reason=action.reason,
        replaces=action.replaces,
        sub_pool=action.sub_pool,
        only=only,
        replaced_in=action.replaced_in,
    )
