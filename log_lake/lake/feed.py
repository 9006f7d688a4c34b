"""Follows a branch: yields the objects of its transactions, each once and in order, for streams.

A position in the feed is the version of the last entry that was delivered; 0 is the beginning.  Objects follow
by entry, by index of the transaction, by ordinal; each has records in key order.  A transaction that removes
references rewrites records that were delivered before, so the feed skips it.  A merge delivers the objects of
the merged branch as that branch had them, compacted or not.  `between` ignores tombstones: an object has all
records that were written, also those that a replace hides because it overtook their load.

`changes` yields the deletes too, as ranges with conditions.  A change has a sequence, and a delete hides
everything that was inserted with a smaller one.  So the changes of a pool from the beginning add up to its
records.  A self-only tombstone is not a delete of the feed: its records were never visible, and the reader of
the object leaves them out.  Two changes cannot be expressed this way and raise an error: the revert of a
delete, and a merge that brings deletes together with objects that have older and newer records.  Expired
records and reverted loads show no change, because the feed cannot distinguish the removal of a reference from a
compaction.

Entries may be purged.  A reader at the beginning then gets the state at the oldest entry that can be resolved,
instead of the transactions before it (`start`).  A reader at a later position gets an error, never a gap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lake_core.errors import InvalidInput, NotFound
from lake_core.history import History
from lake_core.history.create import branch_of
from lake_core.history.lift import Lift
from lake_core.history.tombstone import Tombstone
from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.ranges import EVERYTHING
from lake_core.naming import MAIN
from lake_core.records import (
    AddObject,
    AddTombstone,
    Entry,
    Merge,
    PutReference,
    PutTombstone,
    RemoveReference,
    RemoveTombstone,
    Transaction,
)
from lake_core.records.transactions import sequence
from lake_core.schemas.hidden import DELETED
from lake_core.store import Store
from log_lake.objects.located import Located
from log_lake.objects.read import DataObject
from log_lake.reading.deleted import apply_tombstones, fields_of

BATCH_ROWS = 65_536

Brought = AddObject | PutReference
"""An object that a transaction brought to a branch."""


@dataclass(frozen=True)
class Inserted:
    """The records of an object that a transaction brought.  The tombstones `own` hide some of these records from
    the beginning on."""

    version: int
    seq: int
    action: Brought
    own: tuple[AddTombstone, ...] = ()


@dataclass(frozen=True)
class Deleted:
    """A delete of records that were inserted before it: the range of their keys, and the condition that they
    fulfil."""

    version: int
    seq: int
    mark: AddTombstone | PutTombstone


@dataclass(frozen=True)
class Feed:
    """The objects and changes of one branch of a pool, or of a sub-pool, in order."""

    history: History
    branch: str
    sub_pool: str = ""

    def newest(self) -> int:
        """Returns the newest version of the pool, with one request if nothing is new.  Raises NotFound if the pool
        was dropped."""
        return self.history.load_open().version

    def start(self) -> int:
        """Returns the version at which a reader from the beginning starts, with the state of that version; 0 if no
        entry is purged.

        If the branch was created from another one, this is at least the version that created it.  Raises
        NotFound.
        """
        fork = branch_of(self.history.load_open().state, self.branch).fork
        return max(self.history.journal.marks().fence, 0 if fork is None else fork.created)

    def changes(self, after: int, until: int) -> Iterator[Inserted | Deleted]:
        """Yields the inserts and deletes of the entries above `after` up to `until`, in order.

        Raises InvalidInput for a change that ranges and records cannot express, and what `between` raises.
        """
        for version, entry in self._entries(after, until):
            yield from changes_of(entry, version, branch=self.branch, sub_pool=self.sub_pool)

    def between(self, after: int, until: int) -> Iterator[tuple[int, Brought]]:
        """Yields the objects that the entries above `after` up to `until` brought, with the version of each.

        Raises NotFound if one of the entries is purged, and Corrupt, Unavailable.
        """
        for version, entry in self._entries(after, until):
            for action in brought(entry, branch=self.branch, sub_pool=self.sub_pool):
                yield version, action

    def _entries(self, after: int, until: int) -> Iterator[tuple[int, Entry]]:
        in_a_branch = after and self.branch != MAIN  # otherwise nothing needs to be looked up
        fork = branch_of(self.history.load_open().state, self.branch).fork if in_a_branch else None
        if fork is not None and after < fork.created:
            raise NotFound(
                f"branch {self.branch!r} was created in version {fork.created}: what was committed between version "
                f"{after} and that is of another branch; begin at {fork.created}, or with the state there"
            )
        try:
            yield from self.history.journal.between(after, until)
        except NotFound as error:
            raise NotFound(
                f"{error}. A purge removed the transactions that come next: begin again from the state at the "
                "beginning of the history, and keep more of it from now on (lake set POOL history.keep=60d)"
            ) from error


def brought(entry: Entry, *, branch: str, sub_pool: str) -> list[Brought]:
    """Returns the objects that an entry added to the branch, in order of arrival."""
    return [
        action
        for transaction in entry.transactions
        if transaction.branch == branch
        for action in _of_transaction(transaction)
        if action.sub_pool == sub_pool
    ]


def changes_of(entry: Entry, version: int, *, branch: str, sub_pool: str) -> list[Inserted | Deleted]:
    """Returns the inserts and deletes of one entry on the branch, in order.

    Raises InvalidInput for a change that ranges and records cannot express.
    """
    changes: list[Inserted | Deleted] = []
    index = 0
    for transaction in entry.transactions:
        if transaction.branch == branch:
            seq = sequence(version, index)
            changes += _changes(transaction, version, seq=seq, sub_pool=sub_pool)
        index += transaction.width
    return changes


def _changes(transaction: Transaction, version: int, *, seq: int, sub_pool: str) -> list[Inserted | Deleted]:
    objects = [action for action in _of_transaction(transaction) if action.sub_pool == sub_pool]
    marks = [
        action
        for action in transaction.actions
        if isinstance(action, AddTombstone | PutTombstone) and action.sub_pool == sub_pool
    ]
    marks = [mark for mark in marks if not (isinstance(mark, PutTombstone) and mark.settled)]
    own = tuple(mark for mark in marks if isinstance(mark, AddTombstone) and mark.self_only)
    deletes = [mark for mark in marks if mark not in own]
    if any(isinstance(action, RemoveTombstone) and action.forced for action in transaction.actions):
        raise _unsaid(version, "takes a delete back")
    if any(mark.only not in (None, (0, sequence(version) - 1)) for mark in deletes):
        raise _unsaid(version, "takes a load back, or hides only older records for an erasure")
    if deletes and any(isinstance(one, PutReference) and one.oldest is not None for one in objects):
        raise _unsaid(version, "merges deletes together with compacted records")
    merge = next((action for action in transaction.actions if isinstance(action, Merge)), None)
    lift = Lift(merge.writes, seq) if merge is not None else None

    def seq_of(action: Brought | PutTombstone | AddTombstone) -> int:
        if isinstance(action, AddObject | AddTombstone):
            return seq
        return lift.of(action.seq) if lift is not None else action.seq

    changes: list[Inserted | Deleted] = [Deleted(version, seq_of(mark), mark) for mark in deletes]
    changes += [Inserted(version, seq_of(one), one, own) for one in objects]
    return sorted(changes, key=lambda change: change.seq)


def _unsaid(version: int, what: str) -> InvalidInput:
    return InvalidInput(
        f"version {version} {what}, which no change of records or ranges says; read the pool at version {version} "
        f"anew, and follow its changes from there on (startingTransaction={version + 1}, since={version})"
    )


def _of_transaction(transaction: Transaction) -> list[Brought]:
    """Returns the objects of new records: those of a load, or those that a merge brought."""
    if any(isinstance(action, RemoveReference) for action in transaction.actions):
        return []
    if any(isinstance(action, Merge) for action in transaction.actions):
        put = [a for a in transaction.actions if isinstance(a, PutReference)]
        return [*sorted(put, key=lambda one: (one.seq, one.ordinal, one.low))]
    added = [a for a in transaction.actions if isinstance(a, AddObject)]
    return [*sorted(added, key=lambda one: one.ordinal)]


def read_object(
    store: Store,
    *,
    pool_id: str,
    located: Located,
    key: PoolKey,
    columns: list[str],
    key_range: KeyRange = EVERYTHING,
    filters: Sequence[Tombstone] = (),
    has_markers: bool = False,
) -> Iterator[pa.Table]:
    """Yields the records of one object in a range, in key order, a table at a time, with the `columns` that the
    object has.

    Records that the `filters` hide are left out; with `has_markers` they become delete markers, as in an upsert
    pool, and `columns` must name the column of these.  Raises ObjectMissing, Corrupt, Unavailable.
    """
    more = [*key.names, *fields_of(filters)] if filters else []
    read = list(dict.fromkeys([*columns, *more]))
    with DataObject.at(store, located, pool_id=pool_id) as data:
        batches = data.batches(key_range, key=key, columns=read, batch_rows=BATCH_ROWS)
        tables: Iterator[pa.Table] = (pa.Table.from_batches([batch]) for batch in batches)
        if not filters:
            yield from tables
            return
        if has_markers:
            tables = map(with_marker_column, tables)
        for table in apply_tombstones(tables, filters, key=key, has_markers=has_markers):
            yield table.select([name for name in table.schema.names if name in columns])


def with_marker_column(table: pa.Table) -> pa.Table:
    """Returns the records with the column of delete markers; if they lack it, one of nulls is added."""
    if DELETED in table.schema.names:
        return table
    return table.append_column(DELETED, pa.nulls(table.num_rows, pa.bool_()))
