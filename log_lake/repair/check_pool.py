"""Finds the faults of one pool: of its journal, requests, state and objects, and objects that nothing refers to.

References are checked a table at a time, each once, however many branches have it.  In memory, a reference that
was checked takes a number of eight bytes, an object that the history refers to 27 bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lake_core import naming
from lake_core.context import Context
from lake_core.errors import Corrupt, JournalLost, NotFound, Unavailable
from lake_core.history import History, Reference
from lake_core.history.branch_state import BranchState
from lake_core.history.checkpoint import reference_tables
from lake_core.history.group_commit.requests import MAX_WAIT_MICROSECONDS, DraftRequest
from lake_core.history.snapshot.reference import from_rows
from lake_core.history.state import PoolState
from lake_core.history.vacuuming import objects_of, unlisted_objects
from lake_core.ids import id_seconds, in_home, is_id
from lake_core.phrases import counted, human_size
from lake_core.records import Entry
from lake_core.records.codec import Codec
from lake_core.records.decoding import decoded_json, decoding
from lake_core.records.pools import PoolConfig
from lake_core.schemas.rule import rule_of
from lake_core.schemas.schema import schema_id
from lake_core.store import ObjectInfo
from log_lake.indexes.lookup import index_fault
from log_lake.indexes.names import listed_index
from log_lake.leases import LeaseNote
from log_lake.presence.absence import is_damage
from log_lake.presence.extent import Extent, journal_extent
from log_lake.repair.check_checkpoint import ShapeTotals, add_totals, lying_totals
from log_lake.repair.check_journal import JournalCheck
from log_lake.repair.check_objects import CheckObjects, batches_of
from log_lake.repair.check_receipts import erasures_of, lost_receipts
from log_lake.repair.finding import Finding, finding, on_branches

CheckProgress = Callable[[str, int], None]
"""Called with the name of the checked things, and how many more were checked."""

BATCH = 256
"""References that are handed out at a time: enough to keep all threads at work."""

LISTED = 4096
"""Names of objects that are looked up at a time."""

IdArray = npt.NDArray[np.bytes_]


@dataclass
class Seen:
    """A set of values of one size in bytes, which grows in pieces: sorted arrays, merged when there are
    many."""

    kind: str
    _pieces: list[npt.NDArray[Any]] = field(default_factory=list)

    def add(self, values: npt.NDArray[Any]) -> None:
        """Adds values to the set."""
        if len(values):
            self._pieces.append(np.unique(values.astype(self.kind)))
        # like a binary counter: each value is merged about log2(pieces) times
        while len(self._pieces) > 1 and len(self._pieces[-1]) * 2 >= len(self._pieces[-2]):
            newer, older = self._pieces.pop(), self._pieces.pop()
            self._pieces.append(np.union1d(older, newer))

    def has(self, values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Returns for each value whether it is in the set."""
        mask = np.zeros(len(values), bool)
        sought = values.astype(self.kind)
        for piece in self._pieces:
            at = np.minimum(np.searchsorted(piece, sought), len(piece) - 1)
            mask |= piece[at] == sought
        return mask


@dataclass
class PoolCheck:
    """Checks one pool, and counts what it has checked."""

    context: Context
    config: PoolConfig
    check_objects: CheckObjects
    older_than: float
    progress: CheckProgress = lambda what, count: None
    listed: Collection[str] = ()
    """The ids of the pools of the lake, dropped ones too."""
    references: int = 0
    objects: int = 0
    without_sum: int = 0
    """The number of objects whose reference has no content sum."""
    journal: JournalCheck = field(init=False)
    _history: History = field(init=False)
    _reached: Seen = field(default_factory=lambda: Seen(f"S{naming.OBJECT_LENGTH}"))
    _checked: Seen = field(default_factory=lambda: Seen("u8"))
    _added: list[str] = field(default_factory=list)
    _erasures: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        # a history of its own: what was read before the fault is no proof
        self._history = History(
            self.context.store,
            pool_id=self.config.id,
            key=self.config.key,
            rule=rule_of(self.config),
            clock=self.context.clock,
            gated=False,  # it looks once
            homes=self.config.homes,
        )
        self.journal = JournalCheck(
            self._history.journal,
            self.config.name,
            on_base=self._reach_state,
            on_entry=self._reach_entry,
            progress=self.progress,
        )

    def run(self) -> Iterator[Finding]:
        """Yields all faults of the pool.  Raises Unavailable."""
        yield from self.journal.run()
        yield from self._requests()
        yield from self._notes()
        try:
            state = self._history.load().state
        except Corrupt as error:
            if not isinstance(error, JournalLost):  # which the check of the journal has found
                yield self._finding("no_state", naming.pool_journal(self.config.id), str(error))
            yield self._finding(
                "unchecked", naming.data(self.config.id), "no state tells which objects the pool has"
            )
            return
        if state.closed is not None:
            what = f"{state.closed.author} began to drop the pool; the list of pools still has it"
            yield self._finding("drop_interrupted", naming.pool_journal(self.config.id), what)
            return
        yield from lost_receipts(self.context.store, self.config, state, self._erasures)
        yield from self._schemas(state)
        for name, branch in sorted(state.branches.items()):
            yield from self._branch(name, branch, state)
        yield from self._tags(state)
        yield from self._unreferenced(state)

    def _tags(self, state: PoolState) -> Iterator[Finding]:
        """Yields live tags whose version cannot be read; notes which objects the other tags refer to."""
        for name, tag in sorted(state.tags.items()):
            if not tag.is_live(self._history.now()):
                continue
            if (clone := naming.clone_of(name)) and clone not in self.listed:
                what = f"tag {name} of version {tag.version}, for the {tag.reason}, which the list of pools lacks"
                yield self._finding("clone_hold_left", naming.pool_journal(self.config.id), what, id=clone)
            try:
                self._reach_state(self._history.load_version(tag.version).state)
            except (Corrupt, NotFound) as error:
                damaged = list(self._damaged_marks(name, tag.version))
                yield from damaged
                if damaged:
                    continue
                where = naming.pool_journal(self.config.id)
                yield self._finding("tag_dangling", where, f"tag {name} of version {tag.version}: {error}")

    def _damaged_marks(self, tag: str, version: int) -> Iterator[Finding]:
        """Yields the checkpoints of the tag's version that cannot be read."""
        for mark in self._history.journal.marks().at(version):
            try:
                self._history.journal.verify(mark)
            except Corrupt as error:
                what = f"tag {tag} of version {version} cannot be read without it: {error}"
                one = self._finding("checkpoint_damaged", mark.name, what)
                do = f"put it back from a backup, or delete the tag: lake tag {self.config.name} -d {tag}"
                yield msgspec.structs.replace(one, do=do)

    def _notes(self) -> Iterator[Finding]:
        """Leases and plans that cannot be read."""
        id = self.config.id
        for kind, folder, type in (
            ("lease_unreadable", naming.leases(id), LeaseNote),
            ("plan_unreadable", naming.plans(id), dict[str, object]),
        ):
            for info in self.context.store.list(folder):
                try:
                    data = self.context.store.get(info.name)
                    if data is not None:  # otherwise its work has ended
                        decoded_json(data, type, name=info.name)
                except Corrupt as error:
                    yield self._finding(kind, info.name, f"it cannot be read: {error}")
                except Unavailable as error:
                    yield self._finding("unread", info.name, str(error))

    def _finding(self, kind: str, where: str, what: str, id: str = "") -> Finding:
        return finding(kind, pool=self.config.name, where=where, what=what, id=id)

    def _reach_state(self, state: PoolState) -> None:
        for _, branch in state.branches.items():
            for _, table in tables_of(branch):
                self._reached.add(_ids(table["object"]))

    def _reach_entry(self, entry: Entry) -> None:
        for transaction in entry.transactions:
            self._erasures |= erasures_of(transaction.message)
            self._added += [a.object for a in transaction.actions if hasattr(a, "object")]
        if len(self._added) >= LISTED:
            self._reach_added()

    def _reach_added(self) -> None:
        self._reached.add(np.array(self._added, dtype=f"S{naming.OBJECT_LENGTH}"))
        self._added.clear()

    def _requests(self) -> Iterator[Finding]:
        now = self._history.now()
        for info in self.journal.requests:
            id = naming.request_id(info.name)
            if not naming.is_request(info.name) or not is_id(id):
                yield self._finding("object_unknown", info.name, "not a request")
                continue
            try:
                data = self.context.store.get(info.name)
                if data is None:  # its writer withdrew it
                    continue
                time, what = Codec(DraftRequest).decode(data, name=info.name).time, "its writer is gone"
            except Unavailable as error:
                yield self._finding("unread", info.name, str(error))
                continue
            except Corrupt as error:
                time, what = int(id_seconds(id) * 1_000_000), f"it cannot be read: {error}"
            if now - time > MAX_WAIT_MICROSECONDS:
                yield self._finding("request_leaked", info.name, f"a request that expired; {what}")

    def _schemas(self, state: PoolState) -> Iterator[Finding]:
        for id in sorted(state.schemas):
            try:
                true = schema_id(state.schema(id))
            except (OSError, pa.ArrowException) as error:
                true = f"not readable: {error}"
            if true != id:
                what = f"the schema {id} is {true}, by its content"
                yield self._finding("schema_lies", naming.pool_journal(self.config.id), what)

    def _branch(self, name: str, branch: BranchState, state: PoolState) -> Iterator[Finding]:
        totals: ShapeTotals = {}
        unknown: dict[str, int] = {}
        for sub_pool, table in tables_of(branch):
            add_totals(totals, table, sub_pool=sub_pool)
            self._reached.add(_ids(table["object"]))
            for schema in table["schema"].unique().to_pylist():
                if schema not in state.schemas:
                    unknown[schema] = unknown.get(schema, 0) + 1
            self.references += table.num_rows
            references = self._unseen(table, sub_pool)
            findings = self.check_objects(self.config, self._counted(batches_of(references, BATCH)))
            checked = (one for one in findings if self._is_damage(one))
            yield from checked if len(state.branches) == 1 else self._on_branches(list(checked), state)
        for schema in unknown:
            where = naming.pool_journal(self.config.id)
            yield self._finding(
                "schema_lies", where, f"schema {schema} of objects of {name} was never announced"
            )
        if (lie := lying_totals(dict(branch.snapshot.shapes.items()), totals)) is not None:
            yield self._finding("totals_lie", naming.pool_journal(self.config.id), f"branch {name}: {lie}")

    def _is_damage(self, one: Finding) -> bool:
        """Whether a finding about an object is still true: a vacuum may have deleted a missing one
        meanwhile."""
        return one.kind != "object_missing" or is_damage(self._history, self._object_of(one))

    def _object_of(self, one: Finding) -> str:
        """Returns the id by which references of the pool name the object of a finding; "" if the finding is not
        about a data object."""
        id, home = naming.data_id(one.where), one.where.partition("/")[0]
        return "" if id is None else id if home == self.config.id else in_home(id, home)

    def _on_branches(self, findings: list[Finding], state: PoolState) -> Iterator[Finding]:
        """Yields the findings about objects, each with all branches that must be repaired."""
        ids = {id for one in findings if (id := self._object_of(one))}
        referring: dict[str, list[str]] = {id: [] for id in ids}
        for name, branch in sorted(state.branches.items()):
            for id in set(objects_of(branch.snapshot, ids)):
                referring[id].append(name)
        for one in findings:
            id = self._object_of(one)
            yield on_branches(one, id=id, branches=referring.get(id, ()))

    def _counted(self, batches: Iterable[list[Reference]]) -> Iterator[list[Reference]]:
        for batch in batches:
            yield batch
            self.objects += len(batch)
            self.without_sum += sum(not reference.content for reference in batch)
            self.progress("objects", len(batch))

    def _unseen(self, table: pa.Table, sub_pool: str) -> list[Reference]:
        """Returns the references that no earlier branch had."""
        with decoding(naming.pool_journal(self.config.id), "a row of references is damaged"):
            references = list(from_rows(table, sub_pool=sub_pool))
        marks = np.array([_mark(r) for r in references], dtype="u8")
        are_checked = self._checked.has(marks)
        self._checked.add(marks[~are_checked])
        return [r for r, seen in zip(references, are_checked, strict=True) if not seen]

    def _unreferenced(self, state: PoolState) -> Iterator[Finding]:
        """Objects to which no branch and no older revision in reach refers; names that are not the lake's."""
        self._reach_added()
        folder = naming.data(self.config.id)
        if self.journal.damaged:
            what = "part of the history cannot be read, and may refer to objects that seem unused"
            yield self._finding("unchecked", folder, what)
            return
        extent = journal_extent(self._history, state)
        behind: list[ObjectInfo] = []
        for infos in batches_of(self.context.store.list(folder), LISTED):
            ids = [naming.data_id(info.name) or "" for info in infos]
            reached = self._reached.has(np.array(ids, dtype=f"S{naming.OBJECT_LENGTH}"))
            listed = state.removed.get_many(ids)
            self.progress("names", len(infos))
            for id, info, is_reached in zip(ids, infos, reached, strict=True):
                if (index := listed_index(info)) is not None:
                    if fault := index_fault(self.context.store, index):
                        yield self._finding("index_damaged", info.name, fault)
                elif not id or info.name != naming.data_object(self.config.id, id):
                    yield self._finding("object_unknown", info.name, "not a data object")
                elif is_reached:
                    continue
                elif id in listed or (
                    extent.first is not None and extent.first <= info.modified < extent.last
                ):
                    yield from self._unused("object_unreferenced", id, info, extent)
                elif extent.first is not None and info.modified < extent.first:
                    yield from self._unused("object_before_journal", id, info, extent)
                else:
                    behind.append(info)
        yield from self._behind(behind, extent)

    def _unused(self, kind: str, id: str, info: ObjectInfo, extent: Extent) -> Iterator[Finding]:
        if self._is_old(id, info, extent):
            day = datetime.fromtimestamp(id_seconds(id), UTC)
            what = f"{human_size(info.size)} of {day:%Y-%m-%d}; no revision in reach refers to it"
            yield self._finding(kind, info.name, what, id=id)

    def _behind(self, infos: list[ObjectInfo], extent: Extent) -> Iterator[Finding]:
        """Yields a finding for objects newer than the newest write.  They are of loads that still run or failed,
        or of entries that are lost."""
        if not infos:
            return
        by_id = {naming.data_id(info.name) or "": info for info in infos}
        unlisted = unlisted_objects(self._history.load().state, by_id)  # some may be committed meanwhile
        old = sorted(id for id in unlisted if self._is_old(id, by_id[id], extent))
        young = sorted(unlisted.difference(old))
        lost, place = "tail_may_be_lost", "newer than the newest write"
        if extent.first is None:
            lost, place = "journal_missing", "of a pool whose journal has no entry"
        for kind, objects in ((lost, old), ("in_flight", young)):
            if objects:
                what = f"{counted(len(objects), 'data object')} {place}, from {objects[0]} on"
                yield self._finding(kind, naming.pool_journal(self.config.id), what)

    def _is_old(self, id: str, info: ObjectInfo, extent: Extent) -> bool:
        """Returns whether an object that nothing refers to is reported, because its id or the store says that it
        is as old as `older_than`.

        If the clock of its writer was ahead, only the store's time shows its age.  If `older_than` is 0, each
        such object is reported.
        """
        is_old_by_id = id_seconds(id) < self.context.now() - self.older_than
        return self.older_than <= 0 or is_old_by_id or info.modified < extent.last - self.older_than


def tables_of(branch: BranchState) -> Iterator[tuple[str, pa.Table]]:
    """Yields the references of a branch as rows, a sub-pool and a table at a time."""
    shapes = branch.snapshot.shapes.items()
    for sub_pool in sorted({sub_pool for (sub_pool, _), shape in shapes if shape.references}):
        for table in reference_tables(branch.snapshot, sub_pool):
            if table.num_rows:
                yield sub_pool, table


def _ids(column: pa.ChunkedArray) -> IdArray:
    return column.to_numpy(zero_copy_only=False).astype(f"S{naming.OBJECT_LENGTH}")


def _mark(reference: Reference) -> int:
    digest = blake2b(msgspec.msgpack.encode(reference), digest_size=8).digest()
    return int.from_bytes(digest, "big")
