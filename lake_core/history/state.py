"""The state of a pool: every branch's tip and snapshot, and what a writer must remember.

`fold_entry` is pure and total: an entry that does not fit the state is Corrupt.  The state knows

- branches, by name: the entry of the tip, the snapshot and the tombstones there,
- schemas, by id, and which of them objects of the pool itself have (the others are those of its sub-pools),
- tokens: which transaction a token stands for, so that a repeated commit changes nothing (landing sees to that;
  here the newest use counts: a writer whose state had forgotten the token may have used it again),
- sources: which landed files were taken in, so that none is taken twice,
- whether the pool was dropped: then nothing comes after, so that nobody writes where no reader will look.

Large parts of it may rest on a checkpoint, which is read where it is needed (`LayeredMap`, `Snapshot`).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace

import msgspec
import pyarrow as pa
from rpds import HashTrieMap, HashTrieSet

from lake_core.errors import CheckpointDamaged, Corrupt
from lake_core.history.layered_map import LayeredMap
from lake_core.history.snapshot.reference import Reference
from lake_core.history.snapshot.snapshot import Snapshot
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
    """Where a branch stands: `tip` is the entry of its newest transaction, 0 before the first.

    `tombstones` by name; `replaced` is the newest entry whose replace left a tombstone that is retired by now: what
    began before it cannot tell any more whether a replace overtook it.
    """

    tip: int = 0
    snapshot: Snapshot = field(default_factory=Snapshot)
    tombstones: HashTrieMap[str, Tombstone] = field(default_factory=HashTrieMap)
    replaced: int = 0


class Remembered(msgspec.Struct, frozen=True, array_like=True):
    """The transaction that a token stands for, and what it brought: so that a repeated commit can be answered
    when the entry itself is purged.  `time` in microseconds since 1970; records of the pool and its sub-pools."""

    version: int
    transaction_id: str
    time: int
    objects: int
    size: int
    records: int
    nokey: int
    rejected: int


def remembered(version: int, transaction: Transaction) -> Remembered:
    """What to remember of transaction n."""
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
    """The entry that ended the pool's history, its time in microseconds since 1970, and who wrote it."""

    version: int = msgspec.field(name="n")
    time: int
    author: str


@dataclass(frozen=True)
class PoolState:
    """A pool after some entry of its journal.

    `time` is the latest that its transactions and its checkpoint tell, in microseconds since 1970: the time of the
    history, which no writer whose clock is behind can turn back.  `used` is that time when a token was used, as far
    as it is later than the writer said.
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

    def schema(self, schema_id: str) -> pa.Schema:
        """A schema by id; raises Corrupt where the history never made it known."""
        data = self.schemas.get(schema_id)
        if data is None:
            raise Corrupt(f"schema {schema_id}: not known to the journal")
        return _schema(data)


@functools.lru_cache(maxsize=4096)
def _schema(data: bytes) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(data))


def fold_entry(state: PoolState, version: int, entry: Entry) -> PoolState:
    """The state after entry `n`; raises Corrupt where an action does not fit."""
    for index, transaction in enumerate(entry.transactions):
        try:
            state = fold_transaction(state, version, index, transaction)
        except CheckpointDamaged:  # not the entry's fault: it may be folded from another state
            raise
        except Corrupt as error:
            raise Corrupt(f"entry {version}, transaction {transaction.id}: {error}") from error
    return state


def fold_transaction(state: PoolState, version: int, index: int, transaction: Transaction) -> PoolState:
    """The state after transaction `place` of entry `n`; raises Corrupt where an action does not fit."""
    if state.closed is not None:
        raise Corrupt(f"the pool was closed by entry {state.closed.version}, and nothing comes after that")
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
                    raise Corrupt(f"object {action.object}: schema {action.schema} is not known")
                snapshot = snapshot.add(_reference(action, seq))
                if not action.sub_pool and action.schema not in pool_schemas:
                    pool_schemas = pool_schemas.insert(action.schema)
            case RemoveReference():
                snapshot = snapshot.remove(action.object, action.low)
            case MarkApplied():
                snapshot = snapshot.mark_applied(action.object, action.low, action.upto)
            case AddTombstone():
                if action.tombstone in tombstones:
                    raise Corrupt(f"tombstone {action.tombstone}: added although it is there")
                tombstones = tombstones.insert(
                    action.tombstone, _tombstone(action, version, seq, transaction)
                )
            case RemoveTombstone():
                gone = tombstones.get(action.tombstone)
                if gone is None:
                    raise Corrupt(f"tombstone {action.tombstone}: removed although it is not there")
                tombstones = tombstones.remove(action.tombstone)
                replaced = max(replaced, gone.version) if gone.replaces else replaced
            case SetSchema():
                if action.schema in schemas:
                    raise Corrupt(f"schema {action.schema}: known already")
                schemas = schemas.insert(action.schema, action.arrow)
            case Consume():
                for source in action.sources:
                    if sources.get((transaction.branch, source.uri)) == source:
                        raise Corrupt(f"source {source.uri}: taken in before")
                    sources = sources.insert((transaction.branch, source.uri), source)
            case Close():
                closed = Closing(version, transaction.time, transaction.author)
    tokens, used, time = state.tokens, state.used, max(state.time, transaction.time)
    if transaction.token:
        tokens = tokens.insert(transaction.token, remembered(version, transaction))
        if time > transaction.time or transaction.token in used:
            used = used.insert(transaction.token, time)
    branches = state.branches.insert(transaction.branch, BranchState(version, snapshot, tombstones, replaced))
    return replace(
        state,
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
