"""The state of a pool: each branch's tip and snapshot, and the tokens and source files that writers must not
repeat.

`fold_entry` is pure and total: an entry that does not fit the state is Corrupt.  The state holds

- branches, by name: the newest version, the snapshot and the tombstones there,
- schemas, by id, and which of them objects of the pool itself have (the others belong to its sub-pools),
- tokens: the transaction that each token committed, so that a repeated commit changes nothing.  `rebase` checks
  that; the fold keeps the newest use, because a writer whose state had forgotten the token may have used it
  again.
- sources: the source files that were ingested, so that none is ingested twice; a branch knows its parent's too,
- lifts of merges, and tags,
- the objects that branches gave up and that are not deleted yet (`removal`),
- whether the pool was dropped: no transaction follows, so that no writer writes where no reader looks, until one
  opens it again (decision 78).

What actions on branches and tags make of the state is in `branching`.

Large parts may rest on a checkpoint, which is read when needed (`LayeredMap`, `Snapshot`).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace

import msgspec
import pyarrow as pa
from rpds import HashTrieMap, HashTrieSet

from lake_core.errors import CheckpointDamaged, Corrupt
from lake_core.history.branch_state import BranchState, Fork, Roots, is_needed, with_settled
from lake_core.history.branching import (
    created,
    deleted,
    merged,
    merged_until,
    put_reference,
    put_tombstone,
)
from lake_core.history.layered_map import LayeredMap
from lake_core.history.lift import Lift
from lake_core.history.removal import Removal, Removed, VacuumAction, fold_vacuum
from lake_core.history.snapshot.reference import Reference
from lake_core.history.snapshot.snapshot import MIN_CHANGES, Snapshot
from lake_core.history.tombstone import NEVER, Tombstone
from lake_core.naming import MAIN, NOKEY, REJECTED
from lake_core.records import (
    AddObject,
    AddTombstone,
    Close,
    Consume,
    CreateBranch,
    DeleteBranch,
    DeleteTag,
    Entry,
    MarkApplied,
    Merge,
    PutReference,
    PutTombstone,
    Release,
    RemoveReference,
    RemoveTombstone,
    Reopen,
    SetMerged,
    SetSchema,
    SetTag,
    Source,
    Transaction,
)
from lake_core.records.decoding import check_counts
from lake_core.records.transactions import sequence
from lake_core.schemas.schema import stored_schema


class Remembered(msgspec.Struct, frozen=True, array_like=True):
    """The transaction that a token committed, with its totals: the answer to a repeated commit.

    It outlives the entry, which may be purged.  `time` is in microseconds since 1970, `size` in bytes.  `records`
    are those of the pool itself, `nokey` and `rejected` those of its sub-pools.
    """

    version: int
    transaction_id: str
    time: int
    objects: int
    size: int
    records: int
    nokey: int
    rejected: int

    def __post_init__(self) -> None:
        counts = (self.version, self.objects, self.size, self.records, self.nokey, self.rejected)
        check_counts(f"token of transaction {self.transaction_id[:80]!r}", least=min(counts))


def remembered(version: int, transaction: Transaction) -> Remembered:
    """The transaction of a version as the state remembers it."""
    added = [a for a in transaction.actions if isinstance(a, AddObject)]

    def records(sub_pool: str) -> int:
        return sum(a.records for a in added if a.sub_pool == sub_pool)

    size = sum(a.size for a in added)
    return Remembered(
        version,
        transaction.id,
        transaction.time,
        len(added),
        size,
        records(""),
        records(NOKEY),
        records(REJECTED),
    )


@dataclass(frozen=True)
class Ingested:
    """A source file that was ingested, and the version of the transaction; 0: before branches were known.

    `until` is the version that gave it back; None: none did.
    """

    source: Source
    version: int = field(default=0, compare=False)
    until: int | None = None

    def is_known_at(self, version: int) -> bool:
        """Whether a state of this version knows the file as ingested."""
        return self.version <= version and (self.until is None or version < self.until)


class Tag(msgspec.Struct, frozen=True, omit_defaults=True):
    """A name for the state of a branch at a version.  `time` and `expires` are in microseconds since 1970.

    `set_at` is the version of the transaction that set it.  `deleted`: it keeps a deleted branch, which began on
    `parent`, and knew the replaces there up to the version `boundary`.
    """

    version: int = msgspec.field(name="n")
    branch: str
    owner: str
    time: int
    set_at: int = msgspec.field(name="set")
    reason: str = ""
    expires: int | None = None
    deleted: bool = False
    parent: str = ""
    boundary: int = 0

    def __post_init__(self) -> None:
        check_counts("tag", version=self.version, set=self.set_at, boundary=self.boundary)

    def is_live(self, now: int) -> bool:
        """Whether it holds its version at `now`, in microseconds since 1970."""
        return self.expires is None or now < self.expires


class Closing(msgspec.Struct, frozen=True):
    """The version that closed the pool, its time in microseconds since 1970, and its author."""

    version: int = msgspec.field(name="n")
    time: int
    author: str

    def __post_init__(self) -> None:
        check_counts("closing", version=self.version)


@dataclass(frozen=True)
class PoolState:
    """A pool at a version.

    `time`, in microseconds since 1970, is the latest time of its transactions and its checkpoint; a writer whose
    clock is behind cannot turn it back.  `used` is that time when a token was used, if it is later than the
    writer's.  `reopened` is the version that opened the pool again after its last drop, 0 if none did.
    """

    branches: HashTrieMap[str, BranchState] = field(
        default_factory=lambda: HashTrieMap({MAIN: BranchState()})
    )
    schemas: HashTrieMap[str, bytes] = field(default_factory=HashTrieMap)
    pool_schemas: HashTrieSet[str] = field(default_factory=HashTrieSet)
    tokens: LayeredMap[str, Remembered] = field(default_factory=LayeredMap)
    sources: LayeredMap[tuple[str, str], Ingested] = field(default_factory=LayeredMap)
    closed: Closing | None = None
    reopened: int = 0
    lifts: HashTrieMap[int, Lift] = field(default_factory=HashTrieMap)
    tags: HashTrieMap[str, Tag] = field(default_factory=HashTrieMap)
    removed: Removed = field(default_factory=Removed)
    time: int = field(default=0, compare=False)
    used: HashTrieMap[str, int] = field(default_factory=HashTrieMap, compare=False)

    @classmethod
    def empty(cls, *, min_changes: int = MIN_CHANGES) -> PoolState:
        """The state before the first entry."""
        return cls(HashTrieMap({MAIN: BranchState(snapshot=Snapshot(min_changes=min_changes))}))

    def schema(self, schema_id: str) -> pa.Schema:
        """The schema of an id.  Raises Corrupt if the history never announced it."""
        data = self.schemas.get(schema_id)
        if data is None:
            raise Corrupt(f"schema {schema_id}: never announced in the journal")
        return _schema(data)

    @property
    def kept(self) -> frozenset[int]:
        """The versions that live tags hold."""
        return frozenset(tag.version for tag in self.tags.values() if tag.is_live(self.time))

    def kept_at(self, now: float) -> frozenset[int]:
        """The versions whose checkpoints a purge keeps for tags, at a time of the store, in seconds since 1970.

        A writer whose clock is ahead cannot make a tag expire too early.
        """
        time = min(self.time, int(now * 1_000_000))
        return frozenset(tag.version for tag in self.tags.values() if tag.is_live(time))

    def ingested(self, branch: str, uri: str) -> Source | None:
        """The source file as the branch knows it: ingested by itself, or by its parent before it began."""
        branch_state, until = self.branches.get(branch), NEVER
        while branch_state is not None:  # bounded: a parent is older than its children
            own = self.sources.get((branch, uri))
            began = (
                branch_state.fork.created if branch_state.fork else -1
            )  # a deleted branch may have had this name
            if own is not None and own.version > began:
                return own.source if own.is_known_at(until) else None
            if branch_state.fork is None:
                break
            branch, until = branch_state.fork.parent, min(until, branch_state.fork.at)
            branch_state = self.branches.get(branch)
        return None


@functools.lru_cache(maxsize=4096)
def _schema(data: bytes) -> pa.Schema:
    return stored_schema(data)


def fold_entry(state: PoolState, version: int, entry: Entry) -> PoolState:
    """The state after the entry of a version.  Raises Corrupt if an action does not fit."""
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
    """The state after the transaction of a version and index.  Raises Corrupt if an action does not fit."""
    if state.closed is not None and not isinstance(transaction.actions[0], Close | Reopen):
        raise Corrupt(f"entry {state.closed.version} closed the pool, and no transaction may follow")
    seq = sequence(version, index)
    time = max(state.time, transaction.time)
    if not transaction.branch:
        given_up, tags = _vacuumed(state.removed, seq, transaction), _tagged(state, version, transaction)
        branches = state.branches
        for parent in {tag.parent for name, tag in state.tags.items() if tag.deleted and name not in tags}:
            branches = with_settled(branches, parent, roots=_roots(tags))
        return replace(state, branches=branches, tags=tags, removed=given_up, time=time)
    branches = _with_branch(state, version, transaction)
    branch = branches[transaction.branch]
    snapshot, schemas, sources = branch.snapshot, state.schemas, state.sources
    pool_schemas, tombstones, replaced = state.pool_schemas, branch.tombstones, branch.replaced
    settled, tags, lifts = branch.settled, state.tags, state.lifts
    revealed = branch.revealed
    closed, reopened = state.closed, state.reopened
    writes, given_up = range(0), state.removed
    merge = next((a for a in transaction.actions if isinstance(a, Merge)), None)
    lift = None if merge is None else Lift(merge.writes, seq)
    for action in transaction.actions:
        match action:
            case AddObject() | PutReference():
                if action.schema not in schemas:
                    raise Corrupt(f"object {action.object}: schema {action.schema} was not announced")
                if isinstance(action, AddObject):
                    reference = _reference(action, seq)
                    writes = range(seq, seq + 1) if action.seqs is None else writes
                else:
                    reference = put_reference(action, lift, version)
                    if lift is not None and reference.lifts:
                        lifts = lifts.insert(lift.base, lift)
                    given_up = given_up.without(action.object)
                snapshot = snapshot.add(reference)
                if not action.sub_pool and action.schema not in pool_schemas:
                    pool_schemas = pool_schemas.insert(action.schema)
            case RemoveReference():
                snapshot, taken = snapshot.take(action.object, action.low)
                given_up = given_up.with_removed(action.object, Removal(version, time, taken.size))
            case MarkApplied():
                snapshot = snapshot.mark_applied(action.object, action.low, action.upto)
            case AddTombstone() | PutTombstone():
                if action.tombstone in tombstones:
                    raise Corrupt(f"tombstone {action.tombstone}: added, but the branch has it already")
                if isinstance(action, AddTombstone):
                    tombstone = _tombstone(action, version, seq, transaction)
                    writes = range(seq, seq + 1)
                else:
                    tombstone = put_tombstone(action, lift, version, transaction)
                if isinstance(action, PutTombstone) and action.settled:
                    settled = settled.insert(action.tombstone, tombstone)
                else:
                    tombstones = tombstones.insert(action.tombstone, tombstone)
            case RemoveTombstone():
                revealed = version if action.forced else revealed
                removed = tombstones.get(action.tombstone)
                if removed is not None:
                    tombstones = tombstones.remove(action.tombstone)
                    replaced = max(replaced, removed.version) if removed.replaces else replaced
                    if not action.forced and is_needed(
                        branches, transaction.branch, removed, roots=_roots(tags)
                    ):
                        settled = settled.insert(action.tombstone, removed)
                elif action.forced and action.tombstone in settled:
                    settled = settled.remove(action.tombstone)
                else:
                    raise Corrupt(f"tombstone {action.tombstone}: removed, but the branch does not have it")
            case SetSchema():
                if action.schema in schemas:
                    raise Corrupt(f"schema {action.schema}: announced twice")
                schemas = schemas.insert(action.schema, action.arrow)
            case Consume():
                for source in action.sources:
                    so_far = replace(state, branches=branches, sources=sources)
                    if so_far.ingested(transaction.branch, source.uri) == source:
                        raise Corrupt(f"source file {source.uri}: ingested twice")
                    sources = sources.insert((transaction.branch, source.uri), Ingested(source, version))
            case Release():
                for source in action.sources:
                    known_as = sources.get((transaction.branch, source.uri))
                    if known_as is None or known_as.source != source or known_as.until is not None:
                        raise Corrupt(f"source file {source.uri}: given back, but it was not ingested")
                    sources = sources.insert(
                        (transaction.branch, source.uri), replace(known_as, until=version)
                    )
            case Merge():
                branches = merged(branches, transaction.branch, version, action, roots=_roots(tags))
                writes = range(seq + 1, seq + 1 + action.lifted)
            case SetMerged():
                branches = merged_until(
                    branches, transaction.branch, version, transaction, action, roots=_roots(tags)
                )
            case DeleteBranch():
                tags = tags.insert(action.root, _root(action, version, transaction, branch.fork))
            case Close():
                closed = Closing(version, transaction.time, transaction.author)
            case Reopen():
                if closed is None or closed.version != action.closed:
                    raise Corrupt(f"reopen: entry {action.closed} is not the one that closed the pool last")
                closed, reopened = None, version
            case CreateBranch():  # `_with_branch` made it
                pass
            case _:
                raise Corrupt(
                    f"{type(action).__name__} on the branch {transaction.branch!r}; it belongs to no branch"
                )
    tokens, used = state.tokens, state.used
    if transaction.token:
        tokens = tokens.insert(transaction.token, remembered(version, transaction))
        if time > transaction.time or transaction.token in used:
            used = used.insert(transaction.token, time)
    fork = branch.fork.with_writes(writes) if branch.fork is not None and writes else branch.fork
    after = BranchState(version, snapshot, tombstones, replaced, fork, settled, revealed)
    branches = branches.insert(transaction.branch, after)
    if any(isinstance(action, DeleteBranch) for action in transaction.actions):
        branches = deleted(branches, transaction.branch, roots=_roots(tags))
    elif merge is not None:
        branches = with_settled(branches, transaction.branch, roots=_roots(tags))
    return PoolState(  # `replace` would take three times as long, for each transaction of a history
        branches=branches,
        schemas=schemas,
        pool_schemas=pool_schemas,
        sources=sources,
        tokens=tokens,
        closed=closed,
        reopened=reopened,
        time=time,
        used=used,
        lifts=lifts,
        tags=tags,
        removed=given_up,
    )


def _vacuumed(removed: Removed, seq: int, transaction: Transaction) -> Removed:
    """The list of the removed after a transaction of no branch."""
    for action in transaction.actions:
        if not isinstance(action, SetTag | DeleteTag):
            assert isinstance(action, VacuumAction)  # no other belongs to no branch
            removed = fold_vacuum(removed, action, seq=seq, id=transaction.id, time=transaction.time)
    return removed


def _with_branch(state: PoolState, version: int, transaction: Transaction) -> HashTrieMap[str, BranchState]:
    """The branches, with the transaction's if it creates it.  Raises Corrupt if the branch is not at the parent."""
    create = next((a for a in transaction.actions if isinstance(a, CreateBranch)), None)
    branches = state.branches
    if create is not None:
        branches = created(branches, transaction.branch, version, create)
    branch = branches.get(transaction.branch)
    if branch is None:
        raise Corrupt(f"branch {transaction.branch!r} does not exist")
    if branch.tip != transaction.parent:
        raise Corrupt(f"branch {transaction.branch!r} is at {branch.tip}, not at {transaction.parent}")
    return branches


def _tagged(state: PoolState, version: int, transaction: Transaction) -> HashTrieMap[str, Tag]:
    """The tags after a transaction of tags."""
    tags = state.tags
    for action in transaction.actions:
        if isinstance(action, SetTag):
            if action.tag in tags:
                raise Corrupt(f"tag {action.tag!r}: set, but it is there already")
            tags = tags.insert(
                action.tag,
                Tag(
                    action.version,
                    action.branch,
                    transaction.author,
                    transaction.time,
                    version,
                    action.reason,
                    action.expires,
                ),
            )
        elif isinstance(action, DeleteTag):
            if action.tag not in tags:
                raise Corrupt(f"tag {action.tag!r}: deleted, but it does not exist")
            tags = tags.remove(action.tag)
    return tags


def _roots(tags: HashTrieMap[str, Tag]) -> Roots:
    """What the tags of deleted branches know of their parents."""
    return [(tag.parent, tag.boundary) for tag in tags.values() if tag.deleted]


def _root(action: DeleteBranch, version: int, transaction: Transaction, fork: Fork | None) -> Tag:
    return Tag(
        action.version,
        transaction.branch,
        transaction.author,
        transaction.time,
        version,
        transaction.message,
        deleted=True,
        parent="" if fork is None else fork.parent,
        boundary=0 if fork is None else fork.parent_boundary,
    )


def _reference(action: AddObject, seq: int) -> Reference:
    oldest, newest = action.seqs or (None, seq)
    return Reference(
        object=action.object,
        low=action.low,
        high=action.high,
        seq=newest,
        oldest=oldest,
        ordinal=action.ordinal,
        records=action.records,
        size=action.size,
        schema=action.schema,
        sub_pool=action.sub_pool,
        columns=action.columns,
        applied=action.applied,
    )


def _tombstone(action: AddTombstone, version: int, seq: int, by: Transaction) -> Tombstone:
    return Tombstone(
        id=action.tombstone,
        version=version,
        seq=seq,
        read_version=by.read_version,
        transaction_id=by.id,
        time=by.time,
        low=action.low,
        high=action.high,
        condition=action.condition,
        reason=action.reason,
        replaces=action.replaces,
        self_only=action.self_only,
        sub_pool=action.sub_pool,
        only=action.only,
    )
