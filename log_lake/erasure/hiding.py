"""The tombstones of one erasure.  They hide its records at once, on every branch, until no object holds them.

The tombstones cover records that were written up to a version, and none that are loaded later.  They contain
the erasure's condition, which may be personal data.  So they are removed at the end, when they hide nothing any
more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lake_core.errors import Conflict, NotFound
from lake_core.history import Draft, PoolState, Reference
from lake_core.history.tombstone import Tombstone
from lake_core.naming import MAIN
from lake_core.records import Action, AddTombstone, RemoveTombstone
from lake_core.records.transactions import sequence
from log_lake.erasure.noting import METADATA
from log_lake.erasure.receipt import Held
from log_lake.erasure.search import Search
from log_lake.erasure.target import Target
from log_lake.lake.counting import METADATA as REMOVED
from log_lake.lake.pool import Pool

log = logging.getLogger(__name__)

FORGET_ROUNDS = 16
"""How often the tombstones are removed again, because other writers change them meanwhile."""

HIDES = "hide the records"
"""The message of the transactions that hide the records."""

GOES_ON = "show that the journal goes on"
"""The message of a transaction that hides nothing new.  It only makes a newer write: until the pool has a write
that is newer than an orphan, the scan for orphans leaves that orphan alone."""


NO_COUNTS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class OwnTombstones:
    """The tombstones that an erasure itself sets on the branches of its pool.

    `records`: how many records they hide from readers of `main`, as in the receipt.  The first transaction on
    `main` states this number.
    """

    pool: Pool
    erasure_id: str
    records: int | None = None

    @property
    def reason(self) -> str:
        """The text with which the reasons of the erasure's tombstones and its messages begin."""
        return f"erasure {self.erasure_id}"

    @property
    def metadata(self) -> dict[str, str]:
        """The metadata of the erasure's transactions."""
        return {METADATA: self.erasure_id}

    def hide(self, search: Search) -> None:
        """Puts a tombstone onto each branch that may hold matching records, unless one of this erasure hides them
        already."""
        loaded = self.pool.history.load_open()
        for name in sorted(loaded.state.branches):
            branch_state = loaded.state.branches[name]
            own = [t for t in branch_state.tombstones.values() if self._is_own(t)]
            open_ = {
                r.sub_pool
                for r in search.references(loaded.state, name)
                if search.answers.get(r.object) is not False
                and not any(_hides(t, r, last=search.target.last) for t in own)
            }
            if not open_:
                continue
            id = self.pool.context.ids.new()
            actions = tuple(
                self._tombstone(search.target, id, loaded.version, sub_pool) for sub_pool in sorted(open_)
            )
            counts = {} if name != MAIN or own or self.records is None else {REMOVED: str(self.records)}
            self._commit(name, loaded.version, id, actions, HIDES, counts)

    def write_once_more(self, target: Target) -> bool:
        """Commits a tombstone again although everything is hidden, so that a write is newer than the newest
        orphan.

        Returns False, and commits nothing, if no record can match the erasure's range and condition.
        """
        id, version = self.pool.context.ids.new(), self.pool.history.load_open().version
        sub_pools = [name for name in target.sub_pools if not target.range_in(name).empty]
        if sub_pools:
            self._commit(MAIN, version, id, (self._tombstone(target, id, version, sub_pools[0]),), GOES_ON)
        return bool(sub_pools)

    def forget(self, brought_back: Callable[[PoolState], tuple[Held, ...]]) -> tuple[Held, ...]:
        """Removes the tombstones of this erasure from every branch: they contain the condition, and hide nothing
        any more.

        If an undo brought erased objects back, it stops and returns them, since the tombstones hide their records.
        Raises Conflict if other writers keep changing them.
        """
        for _ in range(FORGET_ROUNDS):
            loaded = self.pool.history.load_open()
            if back := brought_back(loaded.state):
                return back
            own = {
                name: sorted(
                    {t.id for t in (*one.tombstones.values(), *one.settled.values()) if self._is_own(t)}
                )
                for name, one in sorted(loaded.state.branches.items())
            }
            if not any(own.values()):
                return ()
            for name, ids in own.items():
                if ids:
                    actions = tuple(RemoveTombstone(id, forced=True) for id in ids)
                    self._commit(
                        name, loaded.version, self.pool.context.ids.new(), actions, "forget the tombstones"
                    )
        raise Conflict(f"{self.reason}: other writers retire its tombstones at the same time; run it again")

    def _tombstone(self, target: Target, id: str, version: int, sub_pool: str) -> AddTombstone:
        """Returns a tombstone that hides records written up to a version, and none that are loaded later."""
        span = target.range_in(sub_pool)
        return AddTombstone(
            f"{id}{sub_pool}",
            span.low,
            span.high,
            target.condition,
            self.reason,
            sub_pool=sub_pool,
            only=(0, min(sequence(version + 1) - 1, target.last)),
        )

    def _is_own(self, tombstone: Tombstone) -> bool:
        return tombstone.reason == self.reason

    def _commit(
        self,
        branch: str,
        read_version: int,
        id: str,
        actions: tuple[Action, ...],
        what: str,
        counts: Mapping[str, str] = NO_COUNTS,
    ) -> None:
        context = self.pool.context
        draft = Draft(
            id,
            branch,
            read_version,
            context.author,
            actions,
            message=f"{self.reason}: {what}",
            metadata={**counts, **self.metadata},
        )
        try:
            self.pool.history.commit(draft)
        except (Conflict, NotFound) as error:
            # a tombstone was retired, or a branch deleted, meanwhile: the next round looks again
            log.info("%s: %s: %s", self.pool.name, self.reason, error)


def _hides(tombstone: Tombstone, reference: Reference, *, last: int) -> bool:
    """Whether the tombstone hides all records of a reference that were written up to the sequence `last`.

    It compares sub-pool and sequences only: the tombstones of an erasure all have its range and condition.
    """
    first, end = tombstone.exactly or (0, tombstone.seq - 1)
    return (
        tombstone.sub_pool == reference.sub_pool
        and first <= reference.first_seq
        and min(reference.seq, last) <= end
    )
