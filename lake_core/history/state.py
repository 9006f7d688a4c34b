"""The state of a pool: each branch's tip and snapshot, and the tokens and source files that writers must not
repeat.

`fold_entry` is pure and total: an entry that does not fit the state is Corrupt.  The state holds

- branches, by name: the newest version, the snapshot and the tombstones there,
- schemas, by id, and which of them objects of the pool itself have (the others belong to its sub-pools),
- tokens: the transaction that each token committed, so that a repeated commit changes nothing.  `rebase` checks
  that; the fold keeps the newest use, because a writer whose state had forgotten the token may have used it
  again.
- sources: the source files that were ingested, so that none is ingested twice,
- whether the pool was dropped: no transaction follows, so that no writer writes where no reader looks.

Large parts may rest on a checkpoint, which is read when needed (`LayeredMap`, `Snapshot`).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

import msgspec
import pyarrow as pa
from rpds import HashTrieMap, HashTrieSet

from lake_core.errors import CheckpointDamaged, Corrupt
from lake_core.history.layered_map import LayeredMap
from lake_core.history.snapshot.reference import Reference
from lake_core.history.snapshot.snapshot import MIN_CHANGES, Snapshot
from lake_core.history.tombstone import Tombstone
from lake_core.naming import NOKEY, REJECTED
from lake_core.records import (
    AddObject,
    AddTombstone,
    Close,
    Consume,
    Entry,
    MarkApplied,
    RemoveReference,
    RemoveTombstone,
    SetSchema,
    Source,
    Transaction,
)
from lake_core.records.transactions import sequence

MAIN = "main"


@dataclass(frozen=True)
class BranchState:
    """A branch: `tip` is the version of its newest transaction, 0 before the first.

    `tombstones` are by name.  `replaced` is the newest version whose replace left a tombstone that is retired by
    now; a load that began before it cannot tell any more whether that replace overtook it.
    """

    tip: int = 0
    snapshot: Snapshot = field(default_factory=Snapshot)
    tombstones: HashTrieMap[str, Tombstone] = field(default_factory=HashTrieMap)
    replaced: int = 0


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


class Closing(msgspec.Struct, frozen=True):
    """The version that closed the pool, its time in microseconds since 1970, and its author."""

    version: int = msgspec.field(name="n")
    time: int
    author: str


@dataclass(frozen=True)
class PoolState:
    """A pool at a version.

    `time`, in microseconds since 1970, is the latest time of its transactions and its checkpoint; a writer whose
    clock is behind cannot turn it back.  `used` is that time when a token was used, if it is later than the
    writer's.
    """

    branches: HashTrieMap[str, BranchState] = field(
        default_factory=lambda: HashTrieMap({MAIN: BranchState()})
    )
    schemas: HashTrieMap[str, bytes] = field(default_factory=HashTrieMap)
    pool_schemas: HashTrieSet[str] = field(default_factory=HashTrieSet)
    tokens: LayeredMap[str, Remembered] = field(default_factory=LayeredMap)
    sources: LayeredMap[tuple[str, str], Source] = field(default_factory=LayeredMap)
    closed: Closing | None = None
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


@functools.lru_cache(maxsize=4096)
def _schema(data: bytes) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(data))


def fold_entry(state: PoolState, version: int, entry: Entry) -> PoolState:
    """The state after the entry of a version.  Raises Corrupt if an action does not fit."""
    for index, transaction in enumerate(entry.transactions):
        try:
            state = fold_transaction(state, version, index, transaction)
        except CheckpointDamaged:  # the entry is sound: it can be folded from another state
            raise
        except Corrupt as error:
            raise Corrupt(f"entry {version}, transaction {transaction.id}: {error}") from error
    return state


def fold_transaction(state: PoolState, version: int, index: int, transaction: Transaction) -> PoolState:
    """The state after the transaction of a version and index.  Raises Corrupt if an action does not fit."""
    if state.closed is not None:
        raise Corrupt(f"entry {state.closed.version} closed the pool, and no transaction may follow")
    branch = state.branches.get(transaction.branch)
    if branch is None:
        raise Corrupt(f"branch {transaction.branch!r} does not exist")
    if branch.tip != transaction.parent:
        raise Corrupt(f"branch {transaction.branch!r} is at {branch.tip}, not at {transaction.parent}")
    snapshot, schemas, sources = branch.snapshot, state.schemas, state.sources
    pool_schemas, tombstones, replaced = state.pool_schemas, branch.tombstones, branch.replaced
    closed = None
    seq = sequence(version, index)
    for action in transaction.actions:
        match action:
            case AddObject():
                if action.schema not in schemas:
                    raise Corrupt(f"object {action.object}: schema {action.schema} was not announced")
                snapshot = snapshot.add(_reference(action, seq))
                if not action.sub_pool and action.schema not in pool_schemas:
                    pool_schemas = pool_schemas.insert(action.schema)
            case RemoveReference():
                snapshot = snapshot.remove(action.object, action.low)
            case MarkApplied():
                snapshot = snapshot.mark_applied(action.object, action.low, action.upto)
            case AddTombstone():
                if action.tombstone in tombstones:
                    raise Corrupt(f"tombstone {action.tombstone}: added, but the branch has it already")
                tombstones = tombstones.insert(
                    action.tombstone, _tombstone(action, version, seq, transaction)
                )
            case RemoveTombstone():
                removed = tombstones.get(action.tombstone)
                if removed is None:
                    raise Corrupt(f"tombstone {action.tombstone}: removed, but the branch does not have it")
                tombstones = tombstones.remove(action.tombstone)
                replaced = max(replaced, removed.version) if removed.replaces else replaced
            case SetSchema():
                if action.schema in schemas:
                    raise Corrupt(f"schema {action.schema}: announced twice")
                schemas = schemas.insert(action.schema, action.arrow)
            case Consume():
                for source in action.sources:
                    if sources.get((transaction.branch, source.uri)) == source:
                        raise Corrupt(f"source file {source.uri}: ingested twice")
                    sources = sources.insert((transaction.branch, source.uri), source)
            case Close():
                closed = Closing(version, transaction.time, transaction.author)
    tokens, used, time = state.tokens, state.used, max(state.time, transaction.time)
    if transaction.token:
        tokens = tokens.insert(transaction.token, remembered(version, transaction))
        if time > transaction.time or transaction.token in used:
            used = used.insert(transaction.token, time)
    branches = state.branches.insert(transaction.branch, BranchState(version, snapshot, tombstones, replaced))
    return PoolState(  # `replace` would take three times as long, for each transaction of a history
        branches=branches,
        schemas=schemas,
        pool_schemas=pool_schemas,
        sources=sources,
        tokens=tokens,
        closed=closed,
        time=time,
        used=used,
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
    )
