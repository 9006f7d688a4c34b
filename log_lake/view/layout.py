"""The geometry of one pool at a version, loaded and cached.

A version does not change, so its answer is cached by pool, branch and version, and used again when the slider
returns to it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

import msgspec

from lake_core.naming import MAIN
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.reading.revision import Revision
from log_lake.view.geometry import COLUMNS, MAX_BARS, Bars, Bins, bars, bins

MAX_CACHED = 32
"""How many answers are cached for each lake; each takes at most about 300 kB."""


class PoolLayout(msgspec.Struct, frozen=True):
    """A branch of a pool or sub-pool at a version.

    `oldest` and `newest` are the versions that can be shown; `time` is that of the newest transaction at this
    version, in seconds since 1970.  `fields` are those of the key.
    """

    pool: str
    branch: str
    version: int
    oldest: int
    newest: int
    time: float
    fields: list[str]
    branches: list[str]
    sub_pools: list[str]
    references: int
    records: int
    size: int
    tombstones: int
    geometry: Bars | Bins


class Layouts:
    """The layouts of the pools of a lake; safe to use from several threads."""

    def __init__(self, *, max_cached: int = MAX_CACHED, max_bars: int = MAX_BARS) -> None:
        self._cached: OrderedDict[tuple[str, str, str, int], PoolLayout] = OrderedDict()
        self._changing = threading.Lock()
        self._max_cached, self._max_bars = max_cached, max_bars

    def layout(self, lake: Lake, name: str, *, branch: str = MAIN, version: int | None = None) -> PoolLayout:
        """Returns a branch of a pool, or of a sub-pool such as `logs.$nokey`, at a version; None: the newest
        version.

        Raises NotFound (pool, branch, version), Unavailable, Corrupt.
        """
        pool = lake.pool(name)
        newest = pool.history.load_open()
        oldest = oldest_version(pool)
        at = newest.version if version is None else version
        cache_key = (pool.config.id, pool.sub_pool, branch, at)
        with self._changing:
            cached = self._cached.get(cache_key)
            if cached is not None:
                self._cached.move_to_end(cache_key)
                return msgspec.structs.replace(cached, pool=pool.name, oldest=oldest, newest=newest.version)
        loaded = newest if at == newest.version else pool.history.load_version(at)
        revision = Revision(
            config=pool.config,
            version=at,
            branch=branch,
            state=loaded.state,
            now=lake.context.now(),
            sub_pool=pool.sub_pool,
            limits=pool.limits,
        )
        layout = self._drawn(revision, pool, oldest=oldest, newest=newest.version)
        with self._changing:
            self._cached[cache_key] = layout
            while len(self._cached) > self._max_cached:
                self._cached.popitem(last=False)
        return layout

    def _drawn(self, revision: Revision, pool: Pool, *, oldest: int, newest: int) -> PoolLayout:
        state = revision.state.branches[revision.branch]
        snapshot = state.snapshot
        own = (t for t in state.tombstones.values() if t.sub_pool == revision.sub_pool)
        tombstones = [revision.names.shown_delete(t) for t in own]
        totals = snapshot.totals(revision.sub_pool)
        geometry: Bars | Bins
        if totals.references <= self._max_bars:
            geometry = bars(snapshot.overlapping(sub_pool=revision.sub_pool), tombstones, revision.key)
        else:
            table = snapshot.table(sub_pool=revision.sub_pool, columns=COLUMNS)
            geometry = bins(table, tombstones, revision.key)
        return PoolLayout(
            pool=pool.name,
            branch=revision.branch,
            version=revision.version,
            oldest=oldest,
            newest=newest,
            time=revision.state.time / 1e6,
            fields=list(revision.key.names),
            branches=sorted(revision.state.branches),
            sub_pools=snapshot.sub_pools(),
            references=totals.references,
            records=totals.records,
            size=totals.size,
            tombstones=len(tombstones),
            geometry=geometry,
        )


def oldest_version(pool: Pool) -> int:
    """Returns the oldest version whose state can be loaded; earlier entries are purged.  Raises Unavailable."""
    marks = pool.history.journal.marks()
    return min((mark.version for mark in marks.usable()), default=1) if marks.fence else 1
