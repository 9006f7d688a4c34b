"""The ingest agent for pools whose source is topics of Kafka (`log_lake.kafka`): finds what to read, and reads it.

To find what is new, the agent compares the newest offsets, from the brokers, with those that the pool has read.
A run reads up to the offsets that the brokers had when it began, in its own process, whatever workers it was
given.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from lake_core.errors import InvalidInput, NotFound
from lake_core.phrases import counted
from lake_core.records.pools import PoolConfig
from log_lake.agents.ingest.batches import summed_results
from log_lake.agents.quiet import Quiet
from log_lake.kafka.broker import Broker
from log_lake.kafka.load import load_topics, plan_of
from log_lake.kafka.plan import ReadPlan, digest_of
from log_lake.kafka.source import is_kafka, kafka_source
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.lake.results import LoadResult
from log_lake.settings import Settings

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TopicsLook:
    """What the topics of a pool have that the pool has not read.  `seen`: a digest of the newest offsets of the
    topics. `faults`: why some partitions are not read."""

    topics: tuple[str, ...]
    plan: ReadPlan
    seen: str
    faults: tuple[str, ...]

    def lines(self, name: str) -> list[str]:
        """Returns what a run will read into the pool `name`, as a line for the log; none if there is nothing to
        read."""
        if not self.plan.spans:
            return []
        partitions = counted(len(self.plan.spans), "partition")
        offsets = counted(self.plan.offsets, "offset")
        return [
            f"{name}: {offsets} to read in {partitions} of {', '.join(self.topics)}, token {self.plan.token}"
        ]


def has_topics(settings: Settings) -> bool:
    """Whether the pool's source is topics of Kafka instead of files."""
    return is_kafka(settings["ingest.source"])


def look_at_topics(lake: Lake, quiet: Quiet, config: PoolConfig) -> TopicsLook | None:
    """Returns what to read into the pool.  Returns None if the pool was dropped or changed meanwhile, or if
    nothing changed since the last look.

    Raises NotFound for a topic that does not exist, Unavailable, Denied, InvalidInput.
    """
    source = kafka_source(Settings(config.settings)["ingest.source"])
    seen = Broker(source, lake.clients).look()
    digest = digest_of(seen)
    if quiet.is_as_seen(config, digest):
        return None
    try:
        pool = lake.pool(config.name)
    except NotFound:
        return None
    if pool.config != config:  # the next run reads its settings anew
        return None
    plan = plan_of(pool, seen)
    return TopicsLook(source.topics, plan, digest, tuple(fault.line(pool.name) for fault in plan.faults))


def load_from_topics(lake: Lake, pool: Pool) -> LoadResult:
    """Loads the records that the topics of the pool have now.  Raises what `load_topics` raises."""
    source = pool.settings["ingest.source"]
    if not is_kafka(source):
        raise InvalidInput(
            f"{pool.name}: ingest.source was changed during this run, and names no topics now; see the next run"
        )
    done = load_topics(pool, Broker(kafka_source(source), lake.clients))
    for fault in done.faults:
        log.warning("%s: %s", pool.name, fault.line(pool.name))
    if done.lost:
        log.info("%s: lost %s to other readers, and read on", pool.name, counted(done.lost, "race"))
    return summed_results(done.results)


def faults_text(faults: Sequence[str]) -> str:
    """Returns words for the partitions that a run does not read: the first ones, and how many more there
    are."""
    most = 3
    more = f"; and {counted(len(faults) - most, 'more partition')}" if len(faults) > most else ""
    return "; ".join(faults[:most]) + more
