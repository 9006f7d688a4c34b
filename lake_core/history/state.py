"""The state of a pool: each branch's tip and snapshot, and the tokens and source files that writers must not
repeat.

Entries make it (`fold`).  The state has

- branches, by name: the newest version, the snapshot and the tombstones of each;
- schemas, by id, and which of them are used by objects of the pool itself (the others belong to its sub-pools);
- tokens: the transaction that each token committed. `rebase` uses them, so that a repeated commit changes
  nothing. The fold keeps the newest use of a token, because a writer whose state had forgotten the token may
  have used it again;
- sources: the source files that were ingested, so that none is ingested twice; a branch knows its parent's too;
- lifts of merges, tags, split points, and the stored names of fields that were renamed or dropped;
- the objects that branches gave up and that are not deleted yet (`removal`);
- the pending parts of transactions over several pools, and what is known of their other pools;
- whether the pool was dropped: a dropped pool accepts no transaction until one opens it again (decision 78).

Large parts may rest on a checkpoint, which is read when needed (`LayeredMap`, `Snapshot`).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

import msgspec
import pyarrow as pa
from rpds import HashTrieMap, HashTrieSet

from lake_core.errors import Corrupt
from lake_core.history.branch_state import BranchState
from lake_core.history.layered_map import LayeredMap
from lake_core.history.lift import Lift
from lake_core.history.removal import Removed
from lake_core.history.snapshot.snapshot import MIN_CHANGES, Snapshot
from lake_core.history.tombstone import NEVER
from lake_core.history.transactions.part import PendingPart
from lake_core.naming import MAIN, NOKEY, REJECTED
from lake_core.records import (
    AddObject,
    Source,
    Transaction,
)
from lake_core.records.decoding import LAST_TIME, check_counts, check_times
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
        check_times(f"token of transaction {self.transaction_id[:80]!r}", time=self.time)


def remembered(version: int, transaction: Transaction) -> Remembered:
    """Returns what the state remembers of a transaction of a version."""
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
    """A source file that was ingested, by the transaction of `version`; 0 in states older than branches.  From
    the version `until` on (a revert), it no longer counts as ingested; None means that it still counts."""

    source: Source
    version: int = field(default=0, compare=False)
    until: int | None = None

    def is_known_at(self, version: int) -> bool:
        """Whether a state of this version knows the file as ingested."""
        return self.version <= version and (self.until is None or version < self.until)


class Tag(msgspec.Struct, frozen=True, omit_defaults=True):
    """A name for the state of a branch at a version.  `time` and `expires` are in microseconds since 1970.

    `set_at` is the version of the transaction that set it.  `deleted`: the tag keeps a deleted branch, a child
    of `parent` with this `boundary`.
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
        counts = {"version": self.version, "set": self.set_at, "boundary": self.boundary}
        check_counts("tag", **counts, expires=self.expires)
        check_times("tag", time=self.time)
        if self.expires is not None and self.expires > LAST_TIME:  # the first release set no bound
            msgspec.structs.force_setattr(self, "expires", LAST_TIME)

    def is_live(self, now: int) -> bool:
        """Whether the tag keeps its version at `now`, in microseconds since 1970."""
        return self.expires is None or now < self.expires


class Closing(msgspec.Struct, frozen=True):
    """How a pool was closed: the version, its time in microseconds since 1970, and its author."""

    version: int = msgspec.field(name="n")
    time: int
    author: str

    def __post_init__(self) -> None:
        check_counts("closing", version=self.version)
        check_times("closing", time=self.time)


@dataclass(frozen=True)
class PoolState:
    """A pool at a version.

    `time`, in microseconds since 1970, is the latest time of its transactions and its checkpoint; a writer whose
    clock is behind cannot turn it back.  `used` holds, for a token whose writer had a slow clock, the
    value of `time` when the token was used.  `reopened` is the version that opened the pool again after its last
    drop, 0 if none did.  `split_at` are encoded keys that cut the keys of all branches into ranges
    (`records.points`).  `inlines`: the journal has had inlined objects, so that entries may still have them after
    no branch refers to one.  `pending` are the parts of transactions over several pools, by their ids; `prepared`
    holds, by id of a pool, the greatest version of its pending entries of transactions that are settled here.
    `homes` are the other pools in whose folders objects of a clone may lie, by id.  `stored` maps each name of
    a field that differs from its stored name to that stored name, `added` the stored names of added fields to
    their types (`renaming`).
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
    split_at: HashTrieSet[bytes] = field(default_factory=HashTrieSet)
    inlines: bool = False
    pending: HashTrieMap[str, PendingPart] = field(default_factory=HashTrieMap)
    prepared: HashTrieMap[str, int] = field(default_factory=HashTrieMap)
    homes: frozenset[str] = frozenset()
    stored: HashTrieMap[str, str] = field(default_factory=HashTrieMap)
    added: HashTrieMap[str, str] = field(default_factory=HashTrieMap)
    time: int = field(default=0, compare=False)
    used: HashTrieMap[str, int] = field(default_factory=HashTrieMap, compare=False)

    @classmethod
    def empty(cls, *, min_changes: int = MIN_CHANGES) -> PoolState:
        """Returns the state before the first entry."""
        return cls(HashTrieMap({MAIN: BranchState(snapshot=Snapshot(min_changes=min_changes))}))

    def schema(self, schema_id: str) -> pa.Schema:
        """Returns the schema with this id.  Raises Corrupt if the history never announced it."""
        data = self.schemas.get(schema_id)
        if data is None:
            raise Corrupt(f"schema {schema_id}: never announced in the journal")
        return _schema(data)

    @functools.cached_property
    def points(self) -> tuple[bytes, ...]:
        """The encoded split points of the pool, ascending."""
        return tuple(sorted(self.split_at))

    @property
    def kept(self) -> frozenset[int]:
        """The versions that live tags keep."""
        return frozenset(tag.version for tag in self.tags.values() if tag.is_live(self.time))

    def kept_at(self, now: float) -> frozenset[int]:
        """Returns the versions whose checkpoints a purge keeps for tags, at a time of the store, in seconds
        since 1970.  A writer whose clock is ahead cannot make a tag expire too early."""
        time = min(self.time, int(now * 1_000_000))
        return frozenset(tag.version for tag in self.tags.values() if tag.is_live(time))

    def ingested(self, branch: str, uri: str) -> Source | None:
        """Returns the source file of this name if the branch ingested it, or its parent did before the branch
        began; otherwise None."""
        return ingested_as(self.branches, self.sources, branch, uri)

    def source_changed(self, branch: str, uri: str) -> int:
        """Returns the newest version that ingested a source file of this name, or that reverted such a load, on
        the branch or one of its parents; 0 if none did."""
        newest, branch_state = 0, self.branches.get(branch)
        while branch_state is not None:  # bounded: a parent is older than its children
            own = self.sources.get((branch, uri))
            if own is not None:
                newest = max(newest, own.version, own.until or 0)
            if branch_state.fork is None:
                break
            branch = branch_state.fork.parent
            branch_state = self.branches.get(branch)
        return newest


def ingested_as(
    branches: HashTrieMap[str, BranchState],
    sources: LayeredMap[tuple[str, str], Ingested],
    branch: str,
    uri: str,
) -> Source | None:
    """Returns the source file as `PoolState.ingested` would."""
    branch_state, until = branches.get(branch), NEVER
    while branch_state is not None:  # bounded: a parent is older than its children
        own = sources.get((branch, uri))
        # a deleted branch may have had this name
        began = branch_state.fork.created if branch_state.fork else -1
        if own is not None and own.version > began:
            return own.source if own.is_known_at(until) else None
        if branch_state.fork is None:
            break
        branch, until = branch_state.fork.parent, min(until, branch_state.fork.at)
        branch_state = branches.get(branch)
    return None


@functools.lru_cache(maxsize=4096)
def _schema(data: bytes) -> pa.Schema:
    return stored_schema(data)
