"""Reads the state of a lake's pools with few requests, however often a scraper asks.

A pool is read again if its activity note says that something may have been written, at most once in
`LOOK_SECONDS`; an idle pool once in `IDLE_SECONDS`, because garbage becomes due by time alone.  If the journal
has no new entry, one request suffices for `WHOLE_SECONDS`.  How late work is can be computed at any time from
what was read, so it needs no further read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from lake_core.errors import LakeError
from lake_core.history.activity import is_quiet, read_notes
from lake_core.naming import MAIN
from lake_core.records.pools import PoolConfig
from log_lake.agents.finding import AT_ONCE
from log_lake.doctor.look import look_at, unread
from log_lake.doctor.signs import PoolSigns
from log_lake.lake import Lake
from log_lake.lake.isolated import answer_of
from log_lake.lake.pool import Pool
from log_lake.reading.revision import Revision
from log_lake.view.figures import PoolFigures, figures_of

LOOK_SECONDS = 30.0
"""Seconds between two reads of a pool that is written to: Prometheus asks every 15 to 60 s."""
WHOLE_SECONDS = 300.0
"""Seconds between two complete reads of a pool without a new entry; a complete read takes about eight
requests."""
UNNOTED_SECONDS = 600.0
"""Seconds between two reads of a pool that has no activity note, or if the notes cannot be read."""
IDLE_SECONDS = 6 * 3600.0
"""Seconds between two reads of an idle pool: 1,000 of them cost a dollar a month on S3."""
MAX_POOLS = 5_000
"""The most pools that are shown, the first by name: each has about 20 series."""


@dataclass(frozen=True)
class SeenPool:
    """The state of a pool when it was last read; `figures` is None if it could not be read.

    `seen`: when its journal was last read.  `whole`: when its signs and figures were last computed; if the
    journal has no new entry, a look keeps them for `WHOLE_SECONDS`.  Both are in seconds since 1970.
    """

    config: PoolConfig
    signs: PoolSigns
    figures: PoolFigures | None
    seen: float
    whole: float


@dataclass(frozen=True)
class SeenPools:
    """The pools of a lake by name, at most `MAX_POOLS` of the `total`; `looked` counts the pools that were just
    read."""

    pools: Sequence[SeenPool]
    total: int
    looked: int
    now: float


class PoolWatch:
    """The known state of the pools of one lake; one thread reads at a time."""

    def __init__(self, *, most: int = MAX_POOLS) -> None:
        self._kept: Mapping[str, SeenPool] = {}
        self._most = most

    def look(self, lake: Lake) -> SeenPools:
        """Returns the present state of the pools.  Raises Unavailable, Denied or Corrupt if the list of pools
        cannot be read."""
        now = lake.context.now()
        configs = lake.pools()
        shown = configs[: self._most]
        notes = read_notes(lake.store) or {}
        opened = lake.pools_of([config.name for config in shown])
        due = [config for config in shown if self._is_due(config, notes, now=now)]

        def look(config: PoolConfig) -> SeenPool:
            return self._looked(config, opened.get(config.name), notes.get(config.id), now=now)

        with ThreadPoolExecutor(max_workers=AT_ONCE) as threads:
            anew = {one.config.id: one for one in threads.map(look, due)}
        kept = {config.id: anew.get(config.id) or self._kept[config.id] for config in shown}
        self._kept = kept
        return SeenPools(list(kept.values()), len(configs), len(anew), now)

    def _is_due(self, config: PoolConfig, notes: Mapping[str, float], *, now: float) -> bool:
        before = self._kept.get(config.id)
        if before is None or before.config != config:
            return True
        age = now - before.seen
        if before.figures is None or (
            config.id in notes and not is_quiet(notes, config.id, since=before.seen)
        ):
            return age >= LOOK_SECONDS
        return age >= (IDLE_SECONDS if config.id in notes else UNNOTED_SECONDS)

    def _looked(self, config: PoolConfig, pool: Pool | None, noted: float | None, *, now: float) -> SeenPool:
        if pool is None:  # dropped since the list was read: the next list lacks it
            return SeenPool(config, PoolSigns(config, now), None, now, now)
        before = self._kept.get(config.id)
        answer = answer_of(config.name, lambda: _look(pool, before, noted, now=now))
        if isinstance(answer, LakeError):
            return SeenPool(config, unread(config, answer, jobs=(), now=now), None, now, now)
        return answer


def _look(pool: Pool, before: SeenPool | None, noted: float | None, *, now: float) -> SeenPool:
    """Returns the state of one pool.  Raises LakeError if the journal cannot be read."""
    loaded = pool.history.load()
    if (
        before is not None
        and before.figures is not None
        and before.config == pool.config
        and before.figures.version == loaded.version
        and now - before.whole < WHOLE_SECONDS
    ):
        return replace(before, seen=now)
    revision = Revision(
        config=pool.config,
        version=loaded.version,
        branch=MAIN,
        state=loaded.state,
        now=now,
        limits=pool.limits,
    )
    signs = look_at(pool, noted=noted, jobs=(), now=now)
    return SeenPool(pool.config, signs, figures_of(revision), now, now)
