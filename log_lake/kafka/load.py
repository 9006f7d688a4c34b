"""Loads the new records of topics into a pool, batch after batch, each as one transaction with its offsets.

A batch begins at the next offsets that the pool's newest state records. If another reader commits these offsets
first, this one has lost a race: it drops its batch and reads from the offsets that the pool then records. So no
record is lost or loaded twice, and no reader waits for another.  After a batch is read, the brokers are asked
again whether the topics are still those that the offsets belong to.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from lake_core.errors import Conflict
from lake_core.history.offsets import held_offsets, offsets_source
from lake_core.naming import MAIN
from lake_core.phrases import counted
from lake_core.records import Source
from log_lake.kafka.broker import Broker, Message
from log_lake.kafka.messages import MessageReading, blocks_of
from log_lake.kafka.plan import KIND, OffsetFault, Partition, ReadPlan, SeenPartition, Span, plan_reads
from log_lake.kafka.settings import SKIP, KafkaPolicy, kafka_policy
from log_lake.lake.branch import Branch
from log_lake.lake.loads import builder_of, commit_load, lease_of
from log_lake.lake.pool import Pool
from log_lake.lake.results import LoadResult
from log_lake.loading.misfits import summed

log = logging.getLogger(__name__)

CHUNK_MESSAGES, CHUNK_BYTES = 65_536, 16 << 20
"""The most messages, and the most bytes of them, that are made into blocks at a time; memory holds them."""

LOST_IN_A_ROW = 100
"""How many races may be lost in a row. Each lost race means that another reader has loaded a batch."""


@dataclass(frozen=True)
class KafkaLoad:
    """What a load of topics did: the results of its batches, one after another, and the partitions that were not
    read."""

    results: tuple[LoadResult, ...] = ()
    faults: tuple[OffsetFault, ...] = ()
    lost: int = 0


@dataclass
class MessageBatch:
    """A batch while it is read: `next` is the offset at which each partition continues."""

    policy: KafkaPolicy
    next: dict[Partition, int] = field(default_factory=dict)
    counts: dict[Partition, int] = field(default_factory=dict)
    skipped: int = 0

    def chunks(self, received: Iterator[Message | Span]) -> Iterator[list[Message]]:
        """Yields the messages, some at a time, until the batch is full, or all messages were read."""
        began, size, records = time.monotonic(), 0, 0
        chunk: list[Message] = []
        chunk_bytes = 0
        for one in received:  # bounded by the spans, and by the policy
            if isinstance(one, Span):
                self.next[one.partition] = one.end
                continue
            self.next[one.partition] = one.offset + 1
            self.counts[one.partition] = self.counts.get(one.partition, 0) + 1
            self.skipped += one.value is None and self.policy.nulls == SKIP
            chunk.append(one)
            bytes_of_it = one.size
            size, chunk_bytes, records = size + bytes_of_it, chunk_bytes + bytes_of_it, records + 1
            if len(chunk) >= CHUNK_MESSAGES or chunk_bytes >= CHUNK_BYTES:
                yield chunk
                chunk, chunk_bytes = [], 0
            if (
                records >= self.policy.batch_records
                or size >= self.policy.batch_bytes
                or time.monotonic() - began >= self.policy.batch_time
            ):
                break
        if chunk:
            yield chunk

    def sources(self, spans: Sequence[Span], *, id: str) -> list[Source]:
        """Returns the offsets that the batch has read, in the form in which its transaction records them."""
        return [
            offsets_source(
                span.partition.stream,
                span.begin,
                self.next[span.partition],
                id=id,
                records=self.counts.get(span.partition, 0),
            )
            for span in spans
            if self.next.get(span.partition, span.begin) > span.begin
        ]


def plan_of(pool: Pool, seen: Sequence[SeenPartition]) -> ReadPlan:
    """Decides what is to be read into the pool: `seen` is what the brokers have, and the pool's newest state says
    what was read. Raises NotFound, Unavailable, Corrupt."""
    view = pool.at(MAIN)
    return plan_reads(seen, held_offsets(view.state, KIND), is_empty=view.records == 0)


def load_topics(pool: Pool, broker: Broker) -> KafkaLoad:
    """Loads the messages that the topics had when this began, and commits each batch exactly once.

    Raises InvalidInput for bad records, NotFound, Unavailable, Denied, OutcomeUnknown; batches that were
    committed before stay.
    """
    branch, policy = pool.branch(MAIN), kafka_policy(pool.settings)
    seen = broker.look()
    results: list[LoadResult] = []
    lost = in_a_row = 0
    while True:  # each round commits offsets up to `seen`, or another reader did
        plan = plan_of(pool, seen)
        if not plan.spans:
            return KafkaLoad(tuple(results), plan.faults, lost)
        result = _load_batch(pool, branch, broker, plan, policy)
        if result is not None:
            results.append(result)
            in_a_row = 0
            continue
        lost, in_a_row = lost + 1, in_a_row + 1
        if in_a_row > LOST_IN_A_ROW:
            raise Conflict(
                f"{pool.name}: lost {in_a_row} races in a row against other readers; one agent is enough"
            )


def _load_batch(
    pool: Pool, branch: Branch, broker: Broker, plan: ReadPlan, policy: KafkaPolicy
) -> LoadResult | None:
    """Loads one batch. Returns None if another reader committed its first offsets before."""
    topics = counted(len({span.partition.topic for span in plan.spans}), "topic")
    pending = branch.begin_load(token=plan.token, message=f"kafka: {topics}")
    if isinstance(pending, LoadResult):
        log.info(
            "%s: another reader committed these offsets as version %s; reads on", pool.name, pending.version
        )
        return None
    name = broker.name
    reading = MessageReading.like(branch.readings([name], fields=pending.fields)[name])
    batch = MessageBatch(policy)
    with builder_of(branch, pending, alone=True) as building, lease_of(branch, pending, why="kafka"):
        with closing(broker.read(plan.spans)) as received:
            for chunk in batch.chunks(received):
                for block in blocks_of(chunk, policy, reading):
                    building.add(block)
        written = building.finish()
        broker.check_same(plan.spans)
        try:
            result = commit_load(
                branch,
                pending,
                objects=[one.action for one in written],
                schemas=[one.schema for one in written],
                sources=batch.sources(plan.spans, id=pending.origin.transaction_id),
                misfits=summed(one.misfits for one in written),
            )
        except Conflict as error:
            log.info("%s: %s", pool.name, error)
            return None
    if result.repeated:
        log.info("%s: another reader committed these offsets as version %s", pool.name, result.version)
        return None
    if batch.skipped:
        log.info(
            "%s: version %s leaves out %s without a value",
            pool.name,
            result.version,
            counted(batch.skipped, "message"),
        )
    return result
