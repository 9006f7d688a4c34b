"""The figures of one pool, for a row of a table; pure.

The figures describe the branch `main`, and come from the journal alone: no data object is opened.  `records`
counts those that readers see, and is an upper bound unless `is_exact` (`reading.live`); `stored` counts those
in objects.  Times are in seconds since 1970, sizes in bytes.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pyarrow as pa

from lake_core.history import Snapshot
from lake_core.naming import MAIN
from lake_core.records import DeleteTag, Entry, SetTag, Transaction
from log_lake.reading.filters import has_filters
from log_lake.reading.live import LiveCount, live_count
from log_lake.reading.plan import overlap_depth
from log_lake.reading.revision import Revision
from log_lake.reverts.change import changes_records, is_maintenance
from log_lake.view.geometry import depth_of


class PoolFigures(msgspec.Struct, frozen=True):
    """The figures of a pool at a version; `beside` is how many records its sub-pools have.

    `live` are the bytes of the objects of `main`; `held` adds removed objects that are still on the store.
    `oldest_delete` is the time of the oldest tombstone of a delete; None if there is none.
    """

    version: int
    records: int
    is_exact: bool
    stored: int
    beside: int
    references: int
    objects: int
    depth: int
    tombstones: int
    branches: int
    live: int
    held: int
    oldest_delete: float | None = None


class Recency(msgspec.Struct, frozen=True):
    """When records were last written; when upkeep last worked on the pool (`kept`), and what it did (`how`). None
    means not known."""

    written: float | None = None
    kept: float | None = None
    how: str = ""


NEEDED = ("key", "high", "object")
MAX_LISTED = 500
"""Up to this number, references are visited one by one; more of them are handled as columns, which is
faster."""


def figures_of(revision: Revision, *, max_listed: int = MAX_LISTED) -> PoolFigures:
    """Returns the figures of a revision.  It may read immutable checkpoints, and nothing else."""
    snapshot, state = revision.snapshot, revision.state
    is_small = len(snapshot) <= max_listed
    totals = snapshot.totals()
    objects, depth = _looked_at(snapshot) if is_small else _in_columns(snapshot)
    live = _live(revision, is_small=is_small)
    removed = sum(removal.size for _, removal in state.removed.items()) + sum(
        removal.size for vacuum in state.removed.vacuums.values() for removal in vacuum.removals
    )
    deletes = [t.time for t in revision.held.tombstones.values() if not t.replaces]
    return PoolFigures(
        version=revision.version,
        records=live.records,
        is_exact=live.is_exact,
        stored=live.stored,
        beside=snapshot.records - totals.records,
        references=totals.references,
        objects=objects,
        depth=depth,
        tombstones=len(revision.held.tombstones),
        branches=len(state.branches),
        live=snapshot.size,
        held=snapshot.size + removed,
        oldest_delete=min(deletes) / 1e6 if deletes else None,
    )


def _live(revision: Revision, *, is_small: bool) -> LiveCount:
    """Counts the records that readers see.  With `age_off` the count is an upper bound, because records age off
    later."""
    if is_small:
        live = live_count(revision)
        return LiveCount(live.records, live.is_exact and not revision.settings["age_off"], live.stored)
    stored = revision.records
    hides_nothing = not revision.tombstones and not has_filters(revision.settings)
    return LiveCount(stored, hides_nothing and revision.rule.keeps_all, stored)


def _looked_at(snapshot: Snapshot) -> tuple[int, int]:
    """Returns the number of objects, and how many overlap at one key at most, by visiting each reference."""
    references = list(snapshot.all())
    return len({r.object for r in references}), overlap_depth([r for r in references if not r.sub_pool])


def _in_columns(snapshot: Snapshot) -> tuple[int, int]:
    """Like `_looked_at`, without an object of Python for each reference."""
    sub_pools = ["", *snapshot.sub_pools()]
    tables = [snapshot.table(sub_pool=sub_pool, columns=NEEDED) for sub_pool in sub_pools]
    return len(pa.concat_tables(tables)["object"].unique()), depth_of(tables[0])


def recency(entries: Iterable[Entry], before: Recency) -> Recency:
    """Finds the recency in the newest entries, which are given newest first. What these do not show is taken from
    `before`. Reads no more entries than needed."""
    written, kept, how = None, None, ""
    for entry in entries:
        for transaction in reversed(entry.transactions):
            time = transaction.time / 1e6
            if written is None and transaction.branch == MAIN and changes_records(transaction):
                written = time
            elif kept is None and is_upkeep(transaction):
                kept, how = time, transaction.message
        if written is not None and kept is not None:
            break
    return Recency(
        before.written if written is None else written,
        before.kept if kept is None else kept,
        before.how if kept is None else how,
    )


def is_upkeep(transaction: Transaction) -> bool:
    """Whether the transaction is upkeep of `main`: maintenance of it, or work that belongs to no branch, except
    tags."""
    if transaction.branch:
        return transaction.branch == MAIN and is_maintenance(transaction)
    return not any(isinstance(action, SetTag | DeleteTag) for action in transaction.actions)
