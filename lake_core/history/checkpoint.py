"""The state of a pool as a checkpoint holds it.

    section      branch   key              other columns
    branch       ""       the name         value: tip and totals (`BranchRow`)
    closing      ""       ""               value: `Closing`; only of a pool that is dropped
    reopening    ""       ""               value: the version that opened the pool again; only of a restored pool
    tombstone    yes      its name         value: `Tombstone`
    schema       ""       the id           value: the Arrow schema; seq: 1 if objects of the pool itself have it
    token        ""       the token        value: `Remembered`
    source       yes      the URI          value: `Source`; seq: the version of its transaction; applied: that
                                           of the transaction that gave it back
    fork         ""       the branch       value: `ForkRow`; only of branches that were created from another one
    settled      yes      its name         value: `Tombstone`
    lift         ""       its base         value: the sequences that it lifts, packed
    tag          ""       the name         value: `Tag`
    point        ""       the split point  none
    name         ""       a field's name   value: its stored name, if that is another one
    added        ""       a stored name    value: the type of a field that was added
    removed      ""       the object       seq: the version that removed it; applied: when; size
    vacuum       ""       its sequence     value: `Vacuum`; only of those that have not ended
    vacuuming    ""       ""               value: `VacuumingRow`
    pending      ""       a transaction    value: `PendingPart`; of transactions over several pools
    prepared     ""       another pool     value: the greatest version of its pending entries that is settled here
    home         ""       a pool           none; of a clone: its objects may lie in the folder of that pool
    inlined      ""       ""               value: the bytes of all inlined objects; only if there ever were any
    reference    yes      the low bound    one for each property of the reference (`checkpoints.layout.ROW`); value:
                                           the fields' statistics, lifts, and bytes if inlined

Writing merges the previous checkpoint with what later entries changed, row group by row group.  Opening a
checkpoint reads neither tokens, source files and removed objects (module `below`) nor references (package
`snapshot`).  Their rows are looked up when needed (decision 11).

Writing leaves out tokens older than `token_keep` seconds; that is how they are forgotten.  A token's age does not
rest on its writer's clock alone: it is no older than the transactions before it in the history
(`PoolState.used`), and the store must say that its version is that old (`journal.ages`).
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
from rpds import HashTrieMap, HashTrieSet

from lake_core import naming
from lake_core.checkpoints import CheckpointFile, SectionPart
from lake_core.checkpoints.layout import LazyColumn, rows
from lake_core.checkpoints.limits import CHECKPOINT_LIMITS
from lake_core.errors import Corrupt
from lake_core.history.below import REMOVED, SOURCE, TOKEN, RemovedBelow, SourcesBelow, TokensBelow
from lake_core.history.branch_state import BranchState, Fork
from lake_core.history.branching import packed_writes
from lake_core.history.layered_map import LayeredMap, MapBelow, NothingBelow
from lake_core.history.lift import Lift, pack
from lake_core.history.limits import HISTORY_LIMITS, HistoryLimits
from lake_core.history.points import check_number
from lake_core.history.removal import OFF, Removal, Removed, Vacuum
from lake_core.history.restored import check_restored
from lake_core.history.rows import HOME, POINT, check_rows
from lake_core.history.snapshot.fixed import REFERENCE, CheckpointReferences, by_key, without
from lake_core.history.snapshot.reference import from_rows
from lake_core.history.snapshot.snapshot import Shape, Snapshot
from lake_core.history.state import Closing, PoolState, Remembered, Tag
from lake_core.history.tombstone import Tombstone, tombstone_of
from lake_core.history.transactions.part import PendingPart
from lake_core.ids import id_time
from lake_core.naming import check_objects
from lake_core.records.branching import check_writes
from lake_core.records.decoders import MSGPACK
from lake_core.records.decoding import check_counts

_TABLE_ROWS = CHECKPOINT_LIMITS.group_rows
"""Rows that are passed to the writer at once."""

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

BRANCH, SCHEMA, TOMBSTONE = "branch", "schema", "tombstone"
CLOSING, REOPENING, INLINED = "closing", "reopening", "inlined"
FORK, SETTLED, LIFT, TAG = "fork", "settled", "lift", "tag"
VACUUM, VACUUMING = "vacuum", "vacuuming"
PENDING, PREPARED, NAME, ADDED = "pending", "prepared", "name", "added"


class BranchRow(msgspec.Struct, frozen=True):
    """The stored value of a branch: its tip, the greatest id of an object that it refers to, and its totals by
    sub-pool and schema. `revealed` is left out if it is 0."""

    tip: int
    newest: str
    shapes: list[tuple[str, str, Shape]]
    replaced: int = 0
    revealed: int | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        check_objects((self.newest,) if self.newest else (), what="the row of a branch")
        check_counts("the row of a branch", tip=self.tip, replaced=self.replaced, revealed=self.revealed or 0)
        if any(sub_pool not in ("", *naming.SUB_POOLS) for sub_pool, _, _ in self.shapes):
            raise Corrupt("the row of a branch has an unknown sub-pool")


class ForkRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """The relation of a branch to its parent; the fields are those of `Fork`, but `writes` are packed."""

    parent: str
    at: int
    created: int
    merged: int = 0
    joined: int = 0
    writes: bytes | None = b""
    restored: int = 0

    def __post_init__(self) -> None:
        versions = {"at": self.at, "created": self.created, "merged": self.merged, "joined": self.joined}
        check_counts(f"a branch of {self.parent[:80]!r}", **versions, restored=self.restored)
        check_writes(self.writes or b"", "the row of a branch")


class VacuumingRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """The versions up to which objects were deleted, and the names up to which orphans were searched
    (`removal.Removed`)."""

    horizon: int = 0
    floor: str = ""
    scanned: str = ""
    known_from: str = ""

    def __post_init__(self) -> None:
        check_counts("the row of vacuums", horizon=self.horizon)
        check_objects(filter(None, (self.floor, self.scanned, self.known_from)), what="the row of vacuums")


@dataclass(frozen=True)
class PoolStateFormat:
    """How a pool's state is written into a checkpoint (`journal.StateFormat`).  `token_keep` is in seconds.
    `homes`: the other pools in whose folders the list of pools says that objects of this one may lie."""

    token_keep: float = 30 * 86400
    limits: HistoryLimits = HISTORY_LIMITS
    homes: frozenset[str] = frozenset()

    def parts(self, state: PoolState, *, now: float, forget: int) -> Iterator[SectionPart]:
        """Yields the state as rows, one part for each section, branch and sub-pool."""
        forget_before = int((now - self.token_keep) * 1_000_000)
        branches, encode = sorted(state.branches.items()), msgspec.msgpack.encode
        yield _values(BRANCH, ((name, _branch_row(b)) for name, b in branches))
        if state.closed is not None:
            yield _values(CLOSING, [("", msgspec.msgpack.encode(state.closed))])
        if state.reopened:
            yield _values(REOPENING, [("", msgspec.msgpack.encode(state.reopened))])
        if state.inlines:
            inlined = sum(branch.snapshot.inlined for _, branch in branches)
            yield _values(INLINED, [("", msgspec.msgpack.encode(inlined))])
        for name, branch in branches:
            sub_pools = sorted(
                {sub_pool for (sub_pool, _), shape in branch.snapshot.shapes.items() if shape.references}
            )
            for sub_pool in sub_pools:
                yield SectionPart(REFERENCE, name, sub_pool, reference_tables(branch.snapshot, sub_pool))
        for section in (TOMBSTONE, SETTLED):
            for name, branch in branches:
                tombstones = sorted((branch.tombstones if section == TOMBSTONE else branch.settled).items())
                yield _values(section, ((id, encode(t)) for id, t in tombstones), branch=name)
        yield _values(FORK, ((name, _fork_row(b.fork)) for name, b in branches if b.fork is not None))
        yield _values(LIFT, ((f"{base:020d}", lift.writes) for base, lift in sorted(state.lifts.items())))
        yield _values(TAG, ((name, msgspec.msgpack.encode(tag)) for name, tag in sorted(state.tags.items())))
        yield _values(PENDING, ((over, encode(part)) for over, part in sorted(state.pending.items())))
        yield _values(PREPARED, ((pool, encode(version)) for pool, version in sorted(state.prepared.items())))
        yield SectionPart(POINT, "", "", (rows(key=batch) for batch in _batches(state.points)))
        yield _values(NAME, ((name, under.encode()) for name, under in sorted(state.stored.items())))
        yield _values(ADDED, ((name, kind.encode()) for name, kind in sorted(state.added.items())))
        homes = [id.encode() for id in sorted(state.homes)]
        yield SectionPart(HOME, "", "", [rows(key=homes)] if homes else [])
        yield from _removed_parts(state.removed)
        yield SectionPart(SCHEMA, "", "", _schemas(state))
        yield from _sources(state)
        tokens = ((token, _dated(token, r, state, now=now)) for token, r in _sorted_items(state.tokens))
        values = (
            (token, msgspec.msgpack.encode(r))
            for token, r in tokens
            if r.time >= forget_before or r.version > forget
        )
        yield _values(TOKEN, values)

    def restore(self, file: CheckpointFile) -> PoolState:
        """Returns the state in the file; the state may read from the file later.  Raises Corrupt, also for a
        state that no entries up to the checkpoint's version can make."""
        decode = msgspec.msgpack.decode
        branches = {
            name: self._branch_state(file, name, decode(value, type=BranchRow))
            for name, value in _all_values(file, BRANCH)
        }
        closings = [decode(value, type=Closing) for _, value in _all_values(file, CLOSING)]
        reopenings = [decode(value, type=int) for _, value in _all_values(file, REOPENING)]
        lifts = {_sequence(base): Lift(value, _sequence(base)) for base, value in _all_values(file, LIFT)}
        tags = {name: decode(value, type=Tag) for name, value in _all_values(file, TAG)}
        pending = {over: MSGPACK.of(PendingPart).decode(value) for over, value in _all_values(file, PENDING)}
        prepared = {pool: decode(value, type=int) for pool, value in _all_values(file, PREPARED)}
        schemas = list(_all_schemas(file))
        state = PoolState(
            branches=HashTrieMap(branches),
            schemas=HashTrieMap({id: arrow for id, arrow, _ in schemas}),
            pool_schemas=HashTrieSet(id for id, _, in_pool in schemas if in_pool),
            tokens=LayeredMap(TokensBelow(file)),
            sources=LayeredMap(SourcesBelow(file)),
            closed=closings[0] if closings else None,
            reopened=reopenings[0] if reopenings else 0,
            lifts=HashTrieMap(lifts),
            tags=HashTrieMap(tags),
            removed=_removed(file),
            inlines=any(True for _ in _all_values(file, INLINED)),
            split_at=HashTrieSet(_points(file)),
            pending=HashTrieMap(pending),
            prepared=HashTrieMap(prepared),
            homes=frozenset(_homes(file)),
            stored=HashTrieMap({name: stored.decode() for name, stored in _all_values(file, NAME)}),
            added=HashTrieMap({name: kind.decode() for name, kind in _all_values(file, ADDED)}),
            time=_time(file),
        )
        if others := sorted(state.homes - self.homes):
            raise Corrupt(f"the list of pools does not have it as a clone with objects of {others[0][:80]!r}")
        if any(group.section == REFERENCE and group.reach <= group.last for group in file.footer.groups):
            raise Corrupt("the index of a row group says that the range of a reference is empty")
        check_restored(state, version=file.footer.version)
        return state

    def check(self, table: pa.Table, section: str, version: int) -> str | None:
        """Returns in words what is wrong with a section's rows in a checkpoint of this version; None if nothing
        is."""
        return check_rows(table, section=section, version=version, homes=self.homes)

    def verify(self, state: PoolState) -> None:
        """Decodes every row of a restored state.  Raises Corrupt, Unavailable."""
        for _, branch in state.branches.items():
            for sub_pool in ("", *naming.SUB_POOLS):
                for table in branch.snapshot.checkpoint.tables(sub_pool=sub_pool):
                    deque(from_rows(table, sub_pool=sub_pool), maxlen=0)
        for items in (state.tokens.items(), state.sources.items(), state.removed.items()):
            deque(items, maxlen=0)
        for schema in state.schemas:
            state.schema(schema)

    def _branch_state(self, file: CheckpointFile, name: str, row: BranchRow) -> BranchState:
        shapes: HashTrieMap[tuple[str, str], Shape] = HashTrieMap(
            {(sub_pool, schema): shape for sub_pool, schema, shape in row.shapes}
        )
        forks = [MSGPACK.of(ForkRow).decode(v.as_py()) for v in file.at_key(FORK, name.encode())["value"]]
        return BranchState(
            row.tip,
            Snapshot(
                CheckpointReferences(file, name, row.newest),
                shapes=shapes,
                min_changes=self.limits.min_changes,
            ),
            _tombstones(file, TOMBSTONE, name),
            row.replaced,
            _fork(forks[0]) if forks else None,
            _tombstones(file, SETTLED, name),
            row.revealed or 0,
        )


def _dated(token: str, remembered: Remembered, state: PoolState, *, now: float) -> Remembered:
    """Returns the remembered transaction.  If its writer's clock was behind, its time becomes that of the
    history.  That time is never later than `now`, because a writer's clock may be ahead as well."""
    used = min(state.used.get(token) or 0, int(now * 1_000_000))
    return msgspec.structs.replace(remembered, time=used) if used > remembered.time else remembered


def _sequence(key: str) -> int:
    """Returns the sequence that the key of a row spells, in 20 digits.  Raises Corrupt."""
    if len(key) != 20 or not key.isascii() or not key.isdigit():
        raise Corrupt(f"{key[:80]!r} is not a sequence")
    return int(key)


def _time(file: CheckpointFile) -> int:
    """Returns when the checkpoint was written, by its writer's clock; 0 if its id holds no time."""
    try:
        return int(id_time(file.footer.id).timestamp() * 1_000_000)
    except ValueError:
        return 0


def _schemas(state: PoolState) -> Iterator[pa.Table]:
    for batch in _batches(sorted(state.schemas.items())):
        in_pool = [int(id in state.pool_schemas) for id, _ in batch]
        yield rows(key=[id.encode() for id, _ in batch], value=[arrow for _, arrow in batch], seq=in_pool)


def _all_schemas(file: CheckpointFile) -> Iterator[tuple[str, bytes, bool]]:
    """Yields the id of each schema, its Arrow form, and whether records of the pool itself have it."""
    for table in file.scan(SCHEMA, columns=("key", "value", "seq")):
        columns = (table[name].to_pylist() for name in ("key", "value", "seq"))
        for key, arrow, in_pool in zip(*columns, strict=True):
            yield key.decode(), arrow, bool(in_pool)


def _branch_row(branch: BranchState) -> bytes:
    snapshot = branch.snapshot
    newest = max([snapshot.checkpoint.newest, snapshot.folded.newest, *(id for id, _ in snapshot.added)])
    shapes = sorted((sub_pool, schema, shape) for (sub_pool, schema), shape in snapshot.shapes.items())
    revealed = branch.revealed or msgspec.UNSET
    return msgspec.msgpack.encode(BranchRow(branch.tip, newest, shapes, branch.replaced, revealed))


def _tombstones(file: CheckpointFile, section: str, branch: str) -> HashTrieMap[str, Tombstone]:
    values = _all_values(file, section, branch)
    return HashTrieMap({id: tombstone_of(value) for id, value in values})


def _removed_parts(removed: Removed) -> Iterator[SectionPart]:
    """Yields the list of removed objects.  The row `vacuuming` shows that the checkpoint has this list."""
    row = VacuumingRow(removed.horizon, removed.floor, removed.scanned, removed.known_from)
    if row == VacuumingRow() and removed.is_empty():
        return
    yield SectionPart(REMOVED, "", "", _removed_rows(removed))
    vacuums = ((f"{seq:020d}", msgspec.msgpack.encode(v)) for seq, v in sorted(removed.vacuums.items()))
    yield _values(VACUUM, vacuums)
    yield _values(VACUUMING, [("", msgspec.msgpack.encode(row))])


def _removed_rows(removed: Removed) -> Iterator[pa.Table]:
    for batch in _batches((id, r) for id, r in _sorted_items(removed.objects) if r != OFF):
        yield rows(
            key=[id.encode() for id, _ in batch],
            seq=[removal.version for _, removal in batch],
            applied=[removal.time for _, removal in batch],
            size=[removal.size for _, removal in batch],
        )


def _removed(file: CheckpointFile) -> Removed:
    vacuums = {_sequence(s): MSGPACK.of(Vacuum).decode(v) for s, v in _all_values(file, VACUUM)}
    vacuuming_rows = [MSGPACK.of(VacuumingRow).decode(v) for _, v in _all_values(file, VACUUMING)]
    row = vacuuming_rows[0] if vacuuming_rows else VacuumingRow()
    below: MapBelow[str, Removal] = RemovedBelow(file) if vacuuming_rows else NothingBelow()
    return Removed(
        LayeredMap(below), HashTrieMap(vacuums), row.horizon, row.floor, row.scanned, row.known_from
    )


def _points(file: CheckpointFile) -> list[bytes]:
    """Returns the split points.  Raises Corrupt if they are out of order, or too many; in that case they are not
    read."""
    check_number(file.count(POINT))
    points = [point for table in file.scan(POINT, columns=("key",)) for point in table["key"].to_pylist()]
    if any(low >= high for low, high in pairwise((b"", *points))):
        raise Corrupt("the split points are not ascending and distinct")
    return points


def _homes(file: CheckpointFile) -> Iterator[str]:
    for table in file.scan(HOME, columns=("key",)):
        yield from (key.decode() for key in table["key"].to_pylist())


def _fork_row(fork: Fork) -> bytes:
    writes = None if fork.writes is None else pack(reversed(list(fork.writes)))
    row = ForkRow(fork.parent, fork.at, fork.created, fork.merged, fork.joined, writes, fork.restored)
    return msgspec.msgpack.encode(row)


def _fork(row: ForkRow) -> Fork:
    writes = None if row.writes is None else packed_writes(row.writes)
    return Fork(row.parent, row.at, row.created, row.merged, row.joined, writes, row.restored)


def _sources(state: PoolState) -> Iterator[SectionPart]:
    """Yields the source files, one part per branch, including deleted branches, which may be restored."""
    deleted = (tag.branch for tag in state.tags.values() if tag.deleted)
    for name in sorted({*state.branches, *deleted}):
        yield SectionPart(SOURCE, name, "", _source_rows(state, name))


def _source_rows(state: PoolState, branch: str) -> Iterator[pa.Table]:
    for batch in _batches((uri, s) for (of, uri), s in _sorted_items(state.sources) if of == branch):
        yield rows(
            key=[uri.encode() for uri, _ in batch],
            value=[msgspec.msgpack.encode(ingested.source) for _, ingested in batch],
            seq=[ingested.version for _, ingested in batch],
            applied=[ingested.until for _, ingested in batch],
        )


def reference_tables(snapshot: Snapshot, sub_pool: str) -> Iterator[pa.Table]:
    """Yields all references of the pool or sub-pool in order: those of the checkpoint, merged with those added
    since.

    An added reference follows those of the checkpoint with an equal low bound, also across table boundaries.
    """
    since = snapshot.since_checkpoint(sub_pool=sub_pool)
    lows = LazyColumn(since, "key")
    done = 0
    for table in snapshot.checkpoint.tables(sub_pool=sub_pool):
        end = bisect_left(lows, table["key"][-1].as_py(), lo=done)
        below = without(table.drop_columns(["section", "branch", "sub"]), snapshot.removed)
        yield by_key(pa.concat_tables([below, since.slice(done, end - done)])) if end > done else below
        done = end
    for start in range(done, since.num_rows, _TABLE_ROWS):
        yield since.slice(start, _TABLE_ROWS)


def _values(section: str, pairs: Iterable[tuple[str, bytes]], *, branch: str = "") -> SectionPart:
    def tables() -> Iterator[pa.Table]:
        for batch in _batches(pairs):
            yield rows(key=[k.encode() for k, _ in batch], value=[v for _, v in batch])

    return SectionPart(section, branch, "", tables())


def _batches(items: Iterable[T]) -> Iterator[list[T]]:
    batch: list[T] = []
    for item in items:
        batch.append(item)
        if len(batch) == _TABLE_ROWS:
            yield batch
            batch = []
    if batch:
        yield batch


def _all_values(file: CheckpointFile, section: str, branch: str = "") -> Iterator[tuple[str, bytes]]:
    for table in file.scan(section, branch=branch, columns=("key", "value")):
        for key, value in zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True):
            yield key.decode(), value


def _sorted_items(layered: LayeredMap[K, V]) -> Iterator[tuple[K, V]]:
    """Yields all items by key: the map below is in order, the added items are sorted here."""
    below = ((k, v) for k, v in layered.below.items() if k not in layered.added)

    def key(item: tuple[K, V]) -> Any:
        return item[0]

    return heapq.merge(below, sorted(layered.added.items(), key=key), key=key)
