"""Writes the metrics of several lakes as text, for any number of scrapers.

Each lake is read in a thread of its own.  If its store does not answer, it delays other lakes for at most
`MAX_SECONDS`, and then counts as not readable.  Within `FRESH_SECONDS` all scrapers get the same answer.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from lake_core.errors import LakeError
from lake_core.store.meter import PROCESS
from log_lake.metrics.families import SeenLake, families
from log_lake.metrics.job_sums import JobSums
from log_lake.metrics.pool_watch import PoolWatch
from log_lake.view.lakes import Lakes
from log_lake.view.work import LakeThreads

log = logging.getLogger(__name__)

FRESH_SECONDS = 5.0
MAX_SECONDS = 25.0
"""Seconds to wait for one lake.  Its thread continues afterwards, so a later scrape gets its result."""
MAX_PENDING = 8
"""The most scrapes of one lake that wait at the same time."""


@dataclass(frozen=True)
class _Seen(Collector):
    """The families of one answer, as the library wants them."""

    lakes: Sequence[SeenLake]

    def collect(self) -> Iterator[Metric]:
        return families(self.lakes, PROCESS.counts())


class LakeWatch:
    """The metrics of one lake; one thread reads it at a time."""

    def __init__(self, lakes: Lakes, name: str) -> None:
        self._lakes, self._name = lakes, name
        self._pools, self._jobs = PoolWatch(), JobSums()
        self._threads = LakeThreads(threads=1, max_pending=MAX_PENDING, max_seconds=MAX_SECONDS)
        self._seen: SeenLake | None = None
        self._at = 0.0

    async def seen(self) -> SeenLake:
        """Returns the present state of the lake; without pools if it cannot be read, or does not answer in
        time."""
        try:
            return await self._threads.run(self._look)
        except LakeError as error:
            log.warning("metrics of %s: %s", self._name, self._lakes.without_users(str(error)))
            return SeenLake(self._name)

    def _look(self) -> SeenLake:
        if self._seen is None or time.monotonic() - self._at >= FRESH_SECONDS:
            began = time.monotonic()
            lake, _ = self._lakes.shown(self._name)
            pools = self._pools.look(lake)
            try:
                self._jobs.update(lake)
            except LakeError as error:  # the pool `$jobs` is a pool that says so
                log.warning("metrics of %s: its jobs: %s", self._name, self._lakes.without_users(str(error)))
            self._at = time.monotonic()
            self._seen = SeenLake(self._name, pools, dict(self._jobs.by_agent), self._at - began)
        return self._seen


class Watching:
    """The metrics of all lakes of a server."""

    def __init__(self, lakes: Lakes) -> None:
        self._watches = [LakeWatch(lakes, choice.key) for choice in lakes.choices]

    async def text(self) -> bytes:
        """Returns the metrics in Prometheus' text format."""
        seen = await asyncio.gather(*(watch.seen() for watch in self._watches))
        return await asyncio.to_thread(generate_latest, _Seen(seen))
