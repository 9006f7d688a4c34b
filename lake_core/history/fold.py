"""Folds transactions into a pool's state; pure and total.

An entry has transactions, and a transaction has actions.  `fold_entry` applies them in their order; an action
that does not fit the state is Corrupt, and then nothing of the entry counts.

A transaction belongs to one branch, or to none:

- Without a branch, it changes only tags, split points, names of fields, or the list of removed objects.
- With a branch, `_begun` takes the branch at its tip, which must be the transaction's parent.  `_FOLDS` has one
  small function per kind of action, which applies it.  `_ended` puts the branch back, with the transaction's
  version as its tip.

In between, a `_Change` collects the changes, and no other function sees it.  A new `PoolState` for each action
would take most of the time of reading a history.  `branching` applies actions that create, delete and merge
branches; `removal` applies those of a vacuum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from rpds import HashTrieMap, HashTrieSet

from lake_core.errors import CheckpointDamaged, Corrupt
from lake_core.history.added import added_reference, added_tombstone
from lake_core.history.branch_state import BranchState, Fork, is_needed, with_settled
from lake_core.history.branching import (
    created,
    deleted,
    merged,
    merged_until,
    put_reference,
    put_tombstone,
)
from lake_core.history.conserved import imbalance
from lake_core.history.layered_map import LayeredMap
from lake_core.history.lift import Lift
from lake_core.history.points import pointed
from lake_core.history.removal import Removal, Removed, VacuumAction, fold_vacuums
from lake_core.history.renaming import edited
from lake_core.history.snapshot.reference import Reference
from lake_core.history.snapshot.snapshot import Snapshot
from lake_core.history.state import Closing, Ingested, PoolState, Tag, ingested_as, remembered
from lake_core.history.tags import parents_of_deleted_tags, root_of, roots_of, tagged
from lake_core.history.tombstone import Tombstone
from lake_core.history.transactions.part import PendingPart
from lake_core.history.transactions.preparing import merged_part, pended
from lake_core.ids import home_of
from lake_core.records import (
    Action,
    AddInlined,
    AddObject,
    AddTombstone,
    Close,
    Conserve,
    Consume,
    CreateBranch,
    DeleteBranch,
    EndBranch,
    Entry,
    MarkApplied,
    Merge,
    PutInlined,
    PutReference,
    PutSummed,
    PutTombstone,
    Release,
    RemoveReference,
    RemoveTombstone,
    Reopen,
    SetMerged,
    SetSchema,
    Settle,
    Transaction,
)
from lake_core.records.transactions import sequence


def fold_entry(state: PoolState, version: int, entry: Entry) -> PoolState:
    """Returns the state after the entry of a version.  Raises Corrupt if an action does not fit."""
    index = 0
    for transaction in entry.transactions:
        try:
            state = fold_transaction(state, version, index, transaction)
        except CheckpointDamaged:  # the entry is sound: it can be folded from another state
            raise
        except Corrupt as error:
            raise Corrupt(f"entry {version}, transaction {transaction.id}: {error}") from error
        index += transaction.width
    return state


def fold_transaction(state: PoolState, version: int, index: int, transaction: Transaction) -> PoolState:
    """Returns the state after a transaction of a version and index.  Raises Corrupt if an action does not fit."""
    if state.closed is not None and not isinstance(transaction.actions[0], Close | Reopen):
        raise Corrupt(f"entry {state.closed.version} closed the pool, and no transaction may follow")
    seq = sequence(version, index)
    time = max(state.time, transaction.time)
    if not transaction.branch:
        state = edited(state, seq, transaction.actions)
        removed, tags = _vacuumed(state.removed, seq, transaction), tagged(state, version, transaction)
        branches = state.branches
        for parent in parents_of_deleted_tags(state.tags, tags, transaction):
            branches = with_settled(branches, parent, roots=roots_of(tags))
        return replace(
            state,
            branches=branches,
            tags=tags,
            removed=removed,
            split_at=pointed(state.split_at, transaction.actions),
            pending=pended(state, version, transaction),
            time=time,
        )
    change = _begun(state, version, seq, transaction, time=time)
    for action in transaction.actions:
        fold = _FOLDS.get(type(action))
        if fold is None:
            raise Corrupt(
                f"{type(action).__name__} on the branch {transaction.branch!r}; it belongs to no branch"
            )
        fold(change, action)
    return _ended(state, change)


@dataclass(slots=True)
class _Change:
    """The changes of one transaction of a branch, by the actions applied so far.  `lift` is the renumbering of
    the transaction's merge.  `writes` are the sequences that the branch brings to its parent."""

    transaction: Transaction
    version: int
    seq: int
    time: int
    lift: Lift | None
    # of the branch
    snapshot: Snapshot
    tombstones: HashTrieMap[str, Tombstone]
    settled: HashTrieMap[str, Tombstone]
    replaced: int
    revealed: int
    fork: Fork | None
    # of the pool
    branches: HashTrieMap[str, BranchState]
    schemas: HashTrieMap[str, bytes]
    pool_schemas: HashTrieSet[str]
    sources: LayeredMap[tuple[str, str], Ingested]
    closed: Closing | None
    reopened: int
    lifts: HashTrieMap[int, Lift]
    tags: HashTrieMap[str, Tag]
    removed: Removed
    inlines: bool
    pending: HashTrieMap[str, PendingPart]
    prepared: HashTrieMap[str, int]
    homes: frozenset[str]
    writes: range = range(0)
    taken: list[Reference] = field(default_factory=list)  # the removed references

    @property
    def branch(self) -> str:
        return self.transaction.branch


def _begun(state: PoolState, version: int, seq: int, transaction: Transaction, *, time: int) -> _Change:
    """Returns the state and the transaction's branch, before its first action.  Raises Corrupt if there is no
    such branch, or if it is not at the parent."""
    create = next((a for a in transaction.actions if isinstance(a, CreateBranch)), None)
    branches = state.branches
    if create is not None:
        branches = created(branches, transaction.branch, version, create)
    branch = branches.get(transaction.branch)
    if branch is None:
        raise Corrupt(f"branch {transaction.branch!r} does not exist")
    if branch.tip != transaction.parent:
        raise Corrupt(f"branch {transaction.branch!r} is at {branch.tip}, not at {transaction.parent}")
    merge = next((a for a in transaction.actions if isinstance(a, Merge)), None)
    return _Change(
        transaction,
        version,
        seq,
        time,
        None if merge is None else Lift(merge.writes, seq),
        snapshot=branch.snapshot,
        tombstones=branch.tombstones,
        settled=branch.settled,
        replaced=branch.replaced,
        revealed=branch.revealed,
        fork=branch.fork,
        branches=branches,
        schemas=state.schemas,
        pool_schemas=state.pool_schemas,
        sources=state.sources,
        closed=state.closed,
        reopened=state.reopened,
        lifts=state.lifts,
        tags=state.tags,
        removed=state.removed,
        inlines=state.inlines,
        pending=state.pending,
        prepared=state.prepared,
        homes=state.homes,
    )


def _ended(state: PoolState, change: _Change) -> PoolState:
    """Returns the state after the last action: the branch has this tip, and the token is remembered."""
    transaction, version, branches = change.transaction, change.version, change.branches
    tokens, used = state.tokens, state.used
    if transaction.token:
        tokens = tokens.insert(transaction.token, remembered(version, transaction))
        if change.time > transaction.time or transaction.token in used:
            used = used.insert(transaction.token, change.time)
    fork = change.fork.with_writes(change.writes) if change.fork and change.writes else change.fork
    after = BranchState(
        version, change.snapshot, change.tombstones, change.replaced, fork, change.settled, change.revealed
    )
    branches = branches.insert(transaction.branch, after)
    if any(isinstance(action, DeleteBranch | EndBranch) for action in transaction.actions):
        branches = deleted(branches, transaction.branch, roots=roots_of(change.tags))
    elif change.lift is not None:
        branches = with_settled(branches, transaction.branch, roots=roots_of(change.tags))
    return PoolState(  # `replace` would take three times as long, for each transaction of a history
        branches=branches,
        schemas=change.schemas,
        pool_schemas=change.pool_schemas,
        sources=change.sources,
        tokens=tokens,
        closed=change.closed,
        reopened=change.reopened,
        time=change.time,
        used=used,
        lifts=change.lifts,
        tags=change.tags,
        removed=change.removed,
        split_at=state.split_at,
        inlines=change.inlines,
        pending=change.pending,
        prepared=change.prepared,
        homes=change.homes,
        stored=state.stored,
        added=state.added,
    )


# Objects


def _add_object(change: _Change, action: AddObject) -> None:
    _check_announced(change, action)
    _refer(change, added_reference(action, change.seq))
    if action.seqs is None:
        change.writes = range(change.seq, change.seq + 1)


def _put_reference(change: _Change, action: PutReference) -> None:
    _check_announced(change, action)
    reference = put_reference(action, change.lift, change.version)
    _refer(change, reference)
    if change.lift is not None and reference.lifts:
        change.lifts = change.lifts.insert(change.lift.base, change.lift)
    if not action.data:
        change.removed = change.removed.without((action.object,))


def _check_announced(change: _Change, action: AddObject | PutReference) -> None:
    if action.schema not in change.schemas:
        raise Corrupt(f"object {action.object}: schema {action.schema} was not announced")
    if (home := home_of(action.object)) and home not in change.homes:
        raise Corrupt(f"object {action.object}: the pool is no clone with objects in the folder of {home}")


def _refer(change: _Change, reference: Reference) -> None:
    change.snapshot = change.snapshot.add(reference)
    change.inlines = change.inlines or bool(reference.data)
    if not reference.sub_pool and reference.schema not in change.pool_schemas:
        change.pool_schemas = change.pool_schemas.insert(reference.schema)


def _remove_reference(change: _Change, action: RemoveReference) -> None:
    change.snapshot, taken = change.snapshot.take(action.object, action.low)
    change.taken.append(taken)
    if taken.data:  # nothing is on the store that a vacuum could delete
        return
    removal = Removal(change.version, change.time, taken.size)
    change.removed = change.removed.with_removed({action.object: removal})


def _conserve(change: _Change, action: Conserve) -> None:
    if fault := imbalance(change.taken, change.transaction.actions):
        raise Corrupt(f"the inputs of a rewriting {fault}")


def _mark_applied(change: _Change, action: MarkApplied) -> None:
    change.snapshot = change.snapshot.mark_applied(action.object, action.low, action.upto)


def _set_schema(change: _Change, action: SetSchema) -> None:
    if action.schema in change.schemas:
        raise Corrupt(f"schema {action.schema}: announced twice")
    change.schemas = change.schemas.insert(action.schema, action.arrow)


# Deletes


def _add_tombstone(change: _Change, action: AddTombstone) -> None:
    _check_new(change, action.tombstone)
    tombstone = added_tombstone(action, change.version, change.seq, change.transaction)
    change.tombstones = change.tombstones.insert(action.tombstone, tombstone)
    change.writes = range(change.seq, change.seq + 1)


def _put_tombstone(change: _Change, action: PutTombstone) -> None:
    _check_new(change, action.tombstone)
    tombstone = put_tombstone(action, change.lift, change.version, change.transaction)
    if action.settled:
        change.settled = change.settled.insert(action.tombstone, tombstone)
    else:
        change.tombstones = change.tombstones.insert(action.tombstone, tombstone)


def _check_new(change: _Change, tombstone: str) -> None:
    if tombstone in change.tombstones:
        raise Corrupt(f"tombstone {tombstone}: added, but the branch has it already")


def _remove_tombstone(change: _Change, action: RemoveTombstone) -> None:
    if action.forced:
        change.revealed = change.version
    tombstone = change.tombstones.get(action.tombstone)
    if tombstone is not None:
        change.tombstones = change.tombstones.remove(action.tombstone)
        if tombstone.replaces:
            change.replaced = max(change.replaced, tombstone.since)
        roots = roots_of(change.tags)
        if not action.forced and is_needed(change.branches, change.branch, tombstone, roots=roots):
            change.settled = change.settled.insert(action.tombstone, tombstone)
    elif action.forced and action.tombstone in change.settled:
        change.settled = change.settled.remove(action.tombstone)
    else:
        raise Corrupt(f"tombstone {action.tombstone}: removed, but the branch does not have it")


# Source files


def _consume(change: _Change, action: Consume) -> None:
    for source in action.sources:
        if ingested_as(change.branches, change.sources, change.branch, source.uri) == source:
            raise Corrupt(f"source file {source.uri}: ingested twice")
        change.sources = change.sources.insert((change.branch, source.uri), Ingested(source, change.version))


def _release(change: _Change, action: Release) -> None:
    for source in action.sources:
        name = (change.branch, source.uri)
        known_as = change.sources.get(name)
        if known_as is None or known_as.source != source or known_as.until is not None:
            raise Corrupt(f"source file {source.uri}: given back, but it was not ingested")
        change.sources = change.sources.insert(name, replace(known_as, until=change.version))


# Branches, and the pool itself


def _nothing(change: _Change, action: CreateBranch | EndBranch) -> None:
    """Does nothing, because this action is handled elsewhere: `_begun` made the branch, and `_ended` deletes it
    without a tag."""


def _merge(change: _Change, action: Merge) -> None:
    roots = roots_of(change.tags)
    change.branches = merged(change.branches, change.branch, change.version, action, roots=roots)
    change.writes = range(change.seq + 1, change.seq + 1 + action.lifted)


def _set_merged(change: _Change, action: SetMerged) -> None:
    change.branches = merged_until(
        change.branches,
        change.branch,
        change.version,
        change.transaction,
        action,
        roots=roots_of(change.tags),
    )


def _delete_branch(change: _Change, action: DeleteBranch) -> None:
    root = root_of(action, change.version, change.transaction, change.fork)
    change.tags = change.tags.insert(action.root, root)


def _settle(change: _Change, action: Settle) -> None:
    change.pending = merged_part(change.pending, change.transaction, action)
    for pool_id, version in action.prepared.items():
        change.prepared = change.prepared.insert(pool_id, max(version, change.prepared.get(pool_id, 0)))


def _close(change: _Change, action: Close) -> None:
    change.closed = Closing(change.version, change.transaction.time, change.transaction.author)


def _reopen(change: _Change, action: Reopen) -> None:
    if change.closed is None or change.closed.version != action.closed:
        raise Corrupt(f"reopen: entry {action.closed} is not the one that closed the pool last")
    change.closed, change.reopened = None, change.version


_FOLDS: dict[type[Action], Callable[[_Change, Any], None]] = {
    AddObject: _add_object,
    AddInlined: _add_object,
    PutReference: _put_reference,
    PutInlined: _put_reference,
    PutSummed: _put_reference,
    RemoveReference: _remove_reference,
    MarkApplied: _mark_applied,
    Conserve: _conserve,
    SetSchema: _set_schema,
    AddTombstone: _add_tombstone,
    PutTombstone: _put_tombstone,
    RemoveTombstone: _remove_tombstone,
    Consume: _consume,
    Release: _release,
    CreateBranch: _nothing,
    Merge: _merge,
    SetMerged: _set_merged,
    DeleteBranch: _delete_branch,
    EndBranch: _nothing,
    Settle: _settle,
    Close: _close,
    Reopen: _reopen,
}
"""The function for each kind of action; kinds that are missing here belong to no branch."""


# Transactions of no branch


def _vacuumed(removed: Removed, seq: int, transaction: Transaction) -> Removed:
    """Returns the list of removed objects after a transaction without a branch."""
    actions = [action for action in transaction.actions if isinstance(action, VacuumAction)]
    return fold_vacuums(removed, actions, seq=seq, id=transaction.id, time=transaction.time)
