"""Adds to the receipt what a run of an erasure finds and does: objects with their checksums, and transactions.

The receipt is written again at every step.  Another process may resume the same erasure, so the stored receipt
and this run's notes are united (`receipt.united`).  Called by `run`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from functools import partial

import msgspec

from lake_core.errors import ObjectMissing
from lake_core.history import PoolState
from lake_core.naming import SUB_POOLS
from lake_core.phrases import counted, human_size
from lake_core.records import AddObject, BeginVacuum, RemoveReference, Transaction
from log_lake.erasure import receipt as receipts
from log_lake.erasure.holders import ANOTHER_RUN
from log_lake.erasure.receipt import Held, Receipt, ReceiptObject, ReceiptTransaction
from log_lake.erasure.search import ALONE, EACH, chunks
from log_lake.erasure.target import Target
from log_lake.lake.pool import Pool
from log_lake.objects.located import Located
from log_lake.workers import Worker, Workers

log = logging.getLogger(__name__)

METADATA = "erasure"
"""The name of the metadata by which the transactions of an erasure are found."""


class Notes:
    """What a run of an erasure has noted; `receipt` is what is known so far."""

    def __init__(self, pool: Pool, receipt: Receipt, workers: Workers) -> None:
        self.pool, self.receipt, self.workers = pool, receipt, workers
        self._own = {one.object for one in receipt.erased}

    def add(self, objects: Iterable[Located]) -> None:
        """Adds objects that hold matching records, with their checksums."""
        by_id = {one.object: one for one in objects}
        ids = {one.object for one in self.receipt.erased}
        new = self._summed(one for id, one in by_id.items() if id not in ids)
        self.receipt = msgspec.structs.replace(self.receipt, erased=(*self.receipt.erased, *new))
        self._own |= set(by_id)

    def held_by_others(self) -> tuple[Held, ...]:
        """Returns objects that another run of this erasure has named and that are on the store: that run may be
        working on them.

        This run has not searched them.  Raises Corrupt, Unavailable.
        """
        stored = receipts.read(self.pool, self.receipt.id)
        named = dict.fromkeys(one.object for one in (*self.receipt.erased, *stored.erased))
        store, pool_id = self.pool.store, self.pool.config.id
        left = [id for id in named if id not in self._own and receipts.exists(store, pool_id, id)]
        return tuple(Held(id, ANOTHER_RUN) for id in left)

    def _summed(self, objects: Iterable[Located]) -> list[ReceiptObject]:
        """Returns those of the objects that are on the store or inlined, with their checksums."""
        total = partial(summed_if_there, self.pool.config.id)
        all_summed = (self.workers.map(total, chunk, each=EACH, alone=ALONE) for chunk in chunks(objects))
        return [one for summed in all_summed for one in summed if one is not None]

    def gather(self, target: Target) -> None:
        """Adds the transactions of this erasure, and the objects that it wrote."""
        erased = {one.object for one in self.receipt.erased}
        transactions_by_id = {one.id: one for one in self.receipt.transactions}
        for version, transaction in self.pool.history.read_transactions():
            if version <= self.receipt.version_before:
                break
            if _is_of(transaction, self.receipt.id, erased):
                transactions_by_id.setdefault(transaction.id, _described(version, transaction))
        transactions = tuple(sorted(transactions_by_id.values(), key=lambda one: (one.version, one.id)))
        ids = {one.object for one in self.receipt.written}
        new = self._summed(Located(id) for one in transactions for id in one.added if id not in ids)
        loaded = self.pool.history.load_open()
        self.receipt = msgspec.structs.replace(
            self.receipt,
            version=loaded.version,
            transactions=transactions,
            written=(*self.receipt.written, *new),
            not_searched=_not_searched(loaded.state, target),
        )

    def write(self, **changes: object) -> Receipt:
        """Stores the receipt, with these changes, beside the pool; returns it.  Raises Corrupt, Unavailable."""
        stored = receipts.read(self.pool, self.receipt.id)  # another process may go on with the same erasure
        self.receipt = msgspec.structs.replace(receipts.united(stored, self.receipt), **changes)
        receipts.write(self.pool, self.receipt)
        log.info(
            "%s: %s: %s erased (%s), %s written, %s held",
            self.pool.name,
            f"erasure {self.receipt.id}",
            counted(len(self.receipt.erased), "object"),
            human_size(self.receipt.size_erased),
            len(self.receipt.written),
            len(self.receipt.held),
        )
        return self.receipt


def summed_if_there(pool_id: str, worker: Worker, located: Located) -> ReceiptObject | None:
    """Returns the object with its checksum; None if it is neither on the store nor inlined.  Raises
    Unavailable."""
    try:
        return receipts.summed(worker.store, pool_id, located)
    except ObjectMissing:  # another vacuum was faster
        return None


def _is_of(transaction: Transaction, id: str, erased: AbstractSet[str]) -> bool:
    if transaction.metadata.get(METADATA) == id:
        return True
    return any(isinstance(a, BeginVacuum) and not erased.isdisjoint(a.objects) for a in transaction.actions)


def _described(version: int, transaction: Transaction) -> ReceiptTransaction:
    actions = transaction.actions
    removed = [a.object for a in actions if isinstance(a, RemoveReference)]
    removed += [id for a in actions if isinstance(a, BeginVacuum) for id in a.objects]
    return ReceiptTransaction(
        version,
        transaction.id,
        transaction.time,
        transaction.branch,
        transaction.message,
        tuple(removed),
        tuple(a.object for a in actions if isinstance(a, AddObject)),
    )


def _not_searched(state: PoolState, target: Target) -> dict[str, int]:
    """Counts, over all branches, the records of each sub-pool that has records and was not searched."""
    counts = {}
    for sub_pool in SUB_POOLS if not target.sub_pool else ():
        records = sum(
            branch_state.snapshot.totals(sub_pool).records for branch_state in state.branches.values()
        )
        if records and sub_pool not in target.sub_pools:
            counts[sub_pool] = records
    return counts
