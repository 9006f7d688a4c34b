"""Checks whether pools have new transactions, for many pools at once and without loading their states.

A check costs one read for the list of pools, and one for each pool, in parallel.  If many pools are watched, it
is cheaper to list activity notes (`history.activity`) and to read only the pools that were written to lately.
Notes are hints, so every pool is read once in `ALL` seconds; then one listing for each shows whether entries
were purged unseen, or the pool was rebuilt.

A position is the last entry of a pool that was seen.  It names the pool by its id, so a pool that was dropped
and created again has a position of its own.  The position of a pool that does not exist yet has no id, and the
version 0.

    positions = begin(lake, ["flights"])
    watcher = Watcher(lake)
    while True:
        news, positions = watcher.look(positions)

Called by the trigger of Airflow (`airflow_lake.triggers`).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

from lake_core.errors import LakeError
from lake_core.history.activity import is_quiet, listing_pays, read_notes
from lake_core.journal.newest import newest_version
from lake_core.records import Entry
from log_lake.lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.reverts.change import changes_records

log = logging.getLogger(__name__)

ALL = 3_600.0
"""Seconds after which every pool is read again, whatever its activity note says."""

READERS = 16
"""How many pools are read at the same time."""

MAX_ENTRIES = 1_000
"""The most entries of a pool that one look reads; the next look continues."""


class WatchPosition(NamedTuple):
    """The last entry of a pool that was seen; `pool_id` is empty if the pool did not exist."""

    pool_id: str = ""
    version: int = 0

    def version_of(self, pool_id: str) -> int:
        """Returns the version of this pool that was seen; 0 if the position belongs to another pool."""
        return self.version if self.pool_id == pool_id else 0


@dataclass(frozen=True)
class News:
    """A new transaction of a branch of a pool; `changes_records` is as in `reverts.change`.

    `branch` is empty if entries were purged before they were seen: then any branch may have changed.
    """

    pool: str
    position: WatchPosition
    branch: str
    changes_records: bool


def begin(lake: Lake, names: list[str]) -> dict[str, WatchPosition]:
    """Returns the current positions of the pools: only later transactions will be news.  Raises Unavailable,
    Corrupt."""
    pools = lake.pools_of(names)

    def newest(name: str) -> WatchPosition:
        if name not in pools:
            return WatchPosition()
        pool = pools[name]
        return WatchPosition(pool.config.id, newest_version(pool.store, pool.history.journal.name))

    with ThreadPoolExecutor(max_workers=READERS) as threads:
        return dict(zip(names, threads.map(newest, names), strict=True))


class Watcher:
    """Looks at pools again and again. It remembers which of them it has read to their end, and reads only the
    others.

    Every `all_each` seconds it reads all of them.
    """

    def __init__(self, lake: Lake, *, all_each: float = ALL) -> None:
        self._lake, self._all_each = lake, all_each
        self._ends: dict[str, WatchPosition] = {}
        self._notes = 0
        self._looked = self._all = -math.inf

    def look(self, positions: Mapping[str, WatchPosition]) -> tuple[list[News], dict[str, WatchPosition]]:
        """Returns the transactions committed after the positions, by pool and oldest first; and the new positions.

        A pool that cannot be read keeps its position and does not delay others.  Raises Unavailable or Corrupt
        if the list of pools cannot be read.
        """
        now = self._lake.context.now()  # before anything is read
        asks_marks = False
        if not 0 <= now - self._all < self._all_each:  # after a clock was set back too
            asks_marks = self._all > -math.inf  # at first, `begin` and `resume` have just asked
            self._ends, self._all = {}, now
        pools = self._lake.pools_of(list(positions))
        notes: dict[str, float] = {}
        if listing_pays(reads=len(positions), notes=self._notes):
            notes = read_notes(self._lake.store) or {}
            self._notes = len(notes)
        since = min(self._looked, now)  # a clock that was set back makes new notes look old

        def is_at_end(name: str) -> bool:
            """Whether the position was the pool's end at the last look, and its activity note shows no write
            since."""
            at = positions[name]
            same_pool = name in pools and pools[name].config.id == at.pool_id
            return same_pool and self._ends.get(name) == at and is_quiet(notes, at.pool_id, since=since)

        ends = {name: positions[name] for name in positions if is_at_end(name)}

        def read(name: str) -> list[News]:
            try:
                news = _read(pools[name], name, positions[name])
                if asks_marks and not news and (passed := _passed(pools[name], name, positions[name])):
                    news = [*passed, *_read(pools[name], name, passed[0].position)]
            except LakeError as error:
                log.warning("%s: %s; looks again later", name, error)
                return []
            if len(news) < MAX_ENTRIES:
                ends[name] = news[-1].position if news else positions[name]
            return news

        with ThreadPoolExecutor(max_workers=READERS) as threads:
            to_read = [name for name in positions if name in pools and name not in ends]
            news = [one for part in threads.map(read, to_read) for one in part]
        self._ends, self._looked = ends, now
        return news, {**positions, **{one.pool: one.position for one in news}}


def resume(lake: Lake, name: str, position: WatchPosition) -> tuple[list[News], WatchPosition]:
    """Returns the new transactions of one pool and its new position, as `Watcher.look` does, from a position that
    may be old, so that its entries may be purged by now.

    All entries that were purged unseen are one event, of any branch.
    """
    pool = lake.pools_of([name]).get(name)
    if pool is None:
        return [], position
    passed = _passed(pool, name, position)
    return passed, passed[0].position if passed else WatchPosition(
        pool.config.id, position.version_of(pool.config.id)
    )


def _passed(pool: Pool, name: str, position: WatchPosition) -> list[News]:
    """Returns one event for entries that were purged unseen; no event if none were."""
    fence = pool.history.journal.marks().fence
    is_passed = fence > position.version_of(pool.config.id)
    return [News(name, WatchPosition(pool.config.id, fence), "", True)] if is_passed else []


def _read(pool: Pool, name: str, position: WatchPosition) -> list[News]:
    after = position.version_of(pool.config.id)
    news: list[News] = []
    for version in range(after + 1, after + 1 + MAX_ENTRIES):
        entry = pool.history.journal.read(version)
        if entry is None:
            break
        news += _news(entry, name, WatchPosition(pool.config.id, version))
    return news


def _news(entry: Entry, name: str, position: WatchPosition) -> list[News]:
    """Returns one piece of news for each branch for which the entry has transactions."""
    changed: dict[str, bool] = {}
    for transaction in entry.transactions:
        changed[transaction.branch] = changed.get(transaction.branch, False) or changes_records(transaction)
    return [News(name, position, branch, changes) for branch, changes in changed.items()]
