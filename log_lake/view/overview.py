"""All pools of a lake at a glance: read in parallel, and cached by the version of their journals.

A pool whose journal has not changed costs two requests: one for the entry after the last known one, and one for
the marks, because a checkpoint adds no entry.  A pool that has changed is loaded again.  If a pool cannot be
read, its row says why. Callers ask as often as they like: within `FRESH_SECONDS` they get the same answer.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from lake_core.errors import InvalidInput, LakeError
from lake_core.naming import MAIN
from lake_core.phrases import counted, human_duration
from lake_core.records import Entry
from lake_core.records.pools import PoolConfig
from log_lake.lake import Lake
from log_lake.lake.isolated import isolated
from log_lake.lake.pool import Pool
from log_lake.reading.revision import Revision
from log_lake.settings import Settings
from log_lake.view.figures import PoolFigures, Recency, figures_of, recency

log = logging.getLogger(__name__)

READERS = 16
"""How many pools are read at the same time."""
FRESH_SECONDS = 2.0
"""For how many seconds an answer is given again, so that many open pages cost the store as much as one."""
LOOK_BACK = 16
"""The most entries that are read, each by a request, to find the last write and the last upkeep of a pool."""
MAX_ROWS = 10_000
"""The most pools that are shown, the first by name; as many rows are cached, of about 1 kB each."""


class Row(msgspec.Struct, frozen=True):
    """What is cached of a pool for the table."""

    figures: PoolFigures
    recency: Recency


class PoolRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A pool in the table: its figures, or why there are none.  `tail` counts entries after the newest
    checkpoint.

    `lag`: by agent, what it has not done yet.
    """

    pool: str
    key: str
    kind: str
    figures: PoolFigures | None = None
    tail: int | None = None
    written: float | None = None
    kept: float | None = None
    how: str = ""
    lag: dict[str, str] = {}
    error: str = ""


class Table(msgspec.Struct, frozen=True):
    """The pools by name.  `total` also counts pools that are left out; `now` is the lake's time, in seconds
    since 1970."""

    pools: list[PoolRow]
    total: int
    now: float


class Overview:
    """The pools of one lake, for several threads; one of them reads.  `clock` is in seconds, from any origin."""

    def __init__(self, clock: Callable[[], float], *, max_rows: int = MAX_ROWS) -> None:
        self._clock = clock
        self._max_rows = max_rows
        self._rows: OrderedDict[str, Row] = OrderedDict()
        self._reading = threading.Lock()
        self._table: Table | None = None
        self._read_at = 0.0

    def table(self, lake: Lake) -> Table:
        """Returns the table of all pools.  Raises Unavailable or Corrupt if the list of pools cannot be
        read."""
        with self._reading:
            if self._table is None or self._clock() - self._read_at >= FRESH_SECONDS:
                self._table, self._read_at = self._read(lake), self._clock()
            return self._table

    def _read(self, lake: Lake) -> Table:
        configs = lake.pools()
        shown = configs[: self._max_rows]
        pools = lake.pools_of([config.name for config in shown])
        before = dict(self._rows)
        with ThreadPoolExecutor(max_workers=READERS) as threads:
            answers = list(threads.map(lambda c: self._row(c, pools.get(c.name), before.get(c.id)), shown))
        self._rows = OrderedDict((id, row) for id, row, _ in answers if row is not None)
        return Table([shown_row for _, _, shown_row in answers], len(configs), lake.context.now())

    @staticmethod
    def _row(config: PoolConfig, pool: Pool | None, before: Row | None) -> tuple[str, Row | None, PoolRow]:
        about: dict[str, Any] = {"pool": config.name, "key": str(config.key), "kind": config.kind}
        try:
            if pool is None:
                return config.id, None, PoolRow(**about, error="dropped a moment ago")
            with isolated(config.name):
                row, tail = look(pool, before)
        except LakeError as error:
            log.warning("%s: %s", config.name, error)
            return config.id, before, PoolRow(**about, error=str(error))
        news = row.recency
        return (
            config.id,
            row,
            PoolRow(
                **about,
                figures=row.figures,
                tail=tail,
                written=news.written,
                kept=news.kept,
                how=news.how,
                lag=lag_of(row.figures, pool.settings, tail=tail, now=pool.context.now()),
            ),
        )


def look(pool: Pool, before: Row | None) -> tuple[Row, int]:
    """Returns the current facts of the pool, and how many entries follow its newest checkpoint.

    `before` are the facts that were seen last.  Raises Unavailable, Corrupt.
    """
    journal = pool.history.journal
    marks = journal.marks()
    checkpoint = max((mark.version for mark in marks.checkpoints), default=0)
    if before is not None and marks.fence <= before.figures.version:
        version = before.figures.version
        if journal.read(version + 1) is None:
            return before, version - min(checkpoint, version)
    loaded = pool.history.load()
    after = max(marks.fence, loaded.version - LOOK_BACK, before.figures.version if before is not None else 0)

    def entries() -> Iterator[Entry]:
        for version in range(loaded.version, after, -1):
            entry = journal.read(version)
            if entry is None:  # purged meanwhile
                return
            yield entry

    older = before.recency if before is not None else Recency()
    revision = Revision(
        config=pool.config,
        version=loaded.version,
        branch=MAIN,
        state=loaded.state,
        now=pool.context.now(),
        limits=pool.limits,
    )
    row = Row(figures_of(revision), recency(entries(), older))
    return row, loaded.version - min(checkpoint, loaded.version)


def lag_of(figures: PoolFigures, settings: Settings, *, tail: int, now: float) -> dict[str, str]:
    """Returns, by agent, what it has not done yet.  `tail` counts entries after the newest checkpoint; `now` is in
    seconds.

    Pure.  It uses only what the overview knows; the reports of the agents have the rest, such as files that
    wait to be ingested.  Empty if no agent lags, or if the settings cannot be read (the agents report that).
    """
    lag: dict[str, str] = {}
    try:
        depth, entries = settings.allowed_depth, settings["checkpoint.entries"]
        apply = settings["tombstones.apply"]
    except InvalidInput:
        return lag
    if figures.depth > depth:
        lag["compact"] = (
            f"{counted(figures.depth, 'object overlaps', 'objects overlap')}; the policy allows {depth:,}"
        )
    if figures.oldest_delete is not None and now - figures.oldest_delete > apply:
        age = human_duration(now - figures.oldest_delete)
        lag["tombstones"] = f"a delete is {age} old; it is due after {human_duration(apply)}"
    if tail > entries:
        lag["checkpoint"] = (
            f"{counted(tail, 'entry', 'entries')} since the newest checkpoint; one is due after {entries:,}"
        )
    return lag
