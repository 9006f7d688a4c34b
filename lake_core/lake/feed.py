"""Following a branch: the objects of its transactions, each once and in order, for streams.

A position in the feed is the version of the last entry that was delivered; 0 is the beginning.  Objects follow by
entry, by index of the transaction, by ordinal; each holds records in key order.  A transaction that removes
references rewrites records that were delivered before, so the feed passes it over.  A merge brings the objects of
the merged branch as that branch held them, compacted or not.  Tombstones do not act here: an object holds all
records that were written, also those that a replace hides because it overtook their load.

Entries may be purged.  A reader at the beginning then gets the state at the oldest entry that can be resolved,
instead of the transactions before it (`start`).  A reader further on gets an error, never a gap.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from lake_core.errors import NotFound
from lake_core.history import History
from lake_core.history.create import branch_of
from lake_core.keys import PoolKey
from lake_core.keys.ranges import EVERYTHING
from lake_core.objects.read import DataObject
from lake_core.records import AddObject, Entry, Merge, PutReference, RemoveReference, Transaction
from lake_core.store import Store

BATCH_ROWS = 65_536

Brought = AddObject | PutReference
"""An object that a transaction brought to a branch."""


@dataclass(frozen=True)
class Feed:
    """The feed of one branch of a pool, or of a sub-pool of it."""

    history: History
    branch: str
    sub_pool: str = ""

    def newest(self) -> int:
        """The newest version; one request if nothing is new.  Raises NotFound if the pool was dropped."""
        return self.history.load_open().version

    def start(self) -> int:
        """The version whose state replaces all transactions up to it; 0 if none is purged.

        A branch that was created from another one begins with its state.  Raises NotFound.
        """
        fork = branch_of(self.history.load_open().state, self.branch).fork
        return max(self.history.journal.marks().fence, 0 if fork is None else fork.created)

    def between(self, after: int, until: int) -> Iterator[tuple[int, Brought]]:
        """The objects of entries above `after` up to `until`, with the version of each.

        Raises NotFound if one of them is purged, Corrupt, Unavailable.
        """
        try:
            for version, entry in self.history.journal.between(after, until):
                for action in brought(entry, branch=self.branch, sub_pool=self.sub_pool):
                    yield version, action
        except NotFound as error:
            raise NotFound(
                f"{error}. A purge removed the transactions that come next: begin again from the state at the "
                "beginning of the history, and keep more of it from now on (lake set POOL history.keep=60d)"
            ) from error


def brought(entry: Entry, *, branch: str, sub_pool: str) -> list[Brought]:
    """The objects that an entry added to the branch, in order of arrival."""
    return [
        action
        for transaction in entry.transactions
        if transaction.branch == branch
        for action in _of_transaction(transaction)
        if action.sub_pool == sub_pool
    ]


def _of_transaction(transaction: Transaction) -> list[Brought]:
    """The objects of new records: of a load, or what a merge brought."""
    if any(isinstance(action, RemoveReference) for action in transaction.actions):
        return []
    if any(isinstance(action, Merge) for action in transaction.actions):
        put = [a for a in transaction.actions if isinstance(a, PutReference)]
        return [*sorted(put, key=lambda one: (one.seq, one.ordinal, one.low))]
    added = [a for a in transaction.actions if isinstance(a, AddObject)]
    return [*sorted(added, key=lambda one: one.ordinal)]


def read_object(
    store: Store, *, pool_id: str, object_id: str, key: PoolKey, columns: list[str]
) -> Iterator[pa.Table]:
    """The records of one object in key order, a table at a time; of `columns` those that it has.

    Raises ObjectMissing, Corrupt, Unavailable.
    """
    with DataObject(store, pool_id=pool_id, object_id=object_id) as data:
        for batch in data.batches(EVERYTHING, key=key, columns=columns, batch_rows=BATCH_ROWS):
            yield pa.Table.from_batches([batch])
