"""Decides from which offset each partition is read; pure.

Only the journal says where a partition continues, never a consumer group of the brokers.  A partition that the
journal does not know begins at its first message, if it is certainly new.  Each doubt is a fault, which names
the partition and the command that resolves it; the other partitions are still read:

- retention deleted messages that were not read, or the partition ends before the offset that was read last;
- the topic was deleted and created again, or the name now means a topic of other brokers;
- the pool has records, but its journal has no offsets: it may already have records of the topic (a rebuilt
  pool).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote

import msgspec

from lake_core.records import Source

KIND = "kafka/"
"""The prefix of the names that Kafka's partitions have in a journal."""


class Partition(msgspec.Struct, frozen=True, order=True):
    """A partition of a topic. The brokers give `cluster` and `topic_id`, and never use such an id again."""

    topic: str
    number: int
    cluster: str
    topic_id: str

    @property
    def stream(self) -> str:
        """The partition's name in the journal."""
        names = (self.cluster, self.topic, self.topic_id)
        return f"{KIND}{'/'.join(quote(name, safe='') for name in names)}/{self.number}"

    @property
    def life(self) -> tuple[str, str, str]:
        """What distinguishes the topic from later topics of the same name, and from topics of other brokers."""
        return self.topic, self.cluster, self.topic_id

    def __str__(self) -> str:
        return f"topic {self.topic}, partition {self.number}"


def partition_of(stream: str) -> Partition | None:
    """Returns the partition with this name in the journal; None if it is none of Kafka's."""
    parts = stream.removeprefix(KIND).split("/")
    if not stream.startswith(KIND) or len(parts) != 4 or not parts[3].isdecimal():
        return None
    cluster, topic, topic_id = map(unquote, parts[:3])
    return Partition(topic, int(parts[3]), cluster, topic_id)


class SeenPartition(msgspec.Struct, frozen=True):
    """A partition as the brokers have it: its messages have offsets from `low` up to `high` (exclusive).

    `high` is where the oldest open transaction begins, if there is one: only messages below it can be read.
    """

    partition: Partition
    low: int
    high: int


@dataclass(frozen=True)
class Span:
    """Offsets of a partition that are to be read, or were read: from `begin` up to `end` (exclusive)."""

    partition: Partition
    begin: int
    end: int


@dataclass(frozen=True)
class OffsetFault:
    """Why a partition is not read; and the `position` that a user may set so that it is read, in the form of
    `lake offsets --set`."""

    partition: Partition
    why: str
    position: str

    def line(self, pool_name: str) -> str:
        """Returns a line that names the fault, and says what to do."""
        return f"{self.partition}: {self.why}; lake offsets {pool_name} --set {self.position}"


@dataclass(frozen=True)
class ReadPlan:
    """The spans to read, in the order of partitions, and the faults. `token` is the load's token
    (`token_of`)."""

    spans: tuple[Span, ...]
    faults: tuple[OffsetFault, ...]
    token: str

    @property
    def offsets(self) -> int:
        """The number of offsets to read; some may have no message, because of compaction or transactions."""
        return sum(span.end - span.begin for span in self.spans)


def plan_reads(seen: Iterable[SeenPartition], positions: Mapping[str, Source], *, is_empty: bool) -> ReadPlan:
    """Returns what to read.  `positions` is what the journal has by stream; `is_empty`: the pool has no
    records."""
    lives: dict[str, set[tuple[str, str, str]]] = {}
    for partition in filter(None, map(partition_of, positions)):
        lives.setdefault(partition.topic, set()).add(partition.life)
    spans, faults = [], []
    for one in sorted(seen, key=lambda one: one.partition):
        lives_of_topic = lives.get(one.partition.topic, set())
        source = positions.get(one.partition.stream)
        if source is not None:
            outcome = _goes_on(one, source.size)
        elif one.partition.life in lives_of_topic:
            outcome = _new_partition(one)
        elif lives_of_topic:
            outcome = _other_topic(one, lives_of_topic)
        elif not positions and not is_empty:
            outcome = OffsetFault(
                one.partition,
                "the pool has records, and its journal has no offsets, so it does not say which messages are "
                "loaded (the pool was rebuilt, or loaded by other means before). To load all that are there",
                f"{one.partition.topic}=earliest",
            )
        else:
            outcome = Span(one.partition, one.low, one.high)
        if isinstance(outcome, OffsetFault):
            faults.append(outcome)
        elif outcome.begin < outcome.end:
            spans.append(outcome)
    return ReadPlan(tuple(spans), tuple(faults), token_of(spans, positions))


def _goes_on(one: SeenPartition, next: int) -> Span | OffsetFault:
    position = f"{one.partition.topic}:{one.partition.number}"
    if next < one.low:
        return OffsetFault(
            one.partition,
            f"the offsets {next} to {one.low - 1} are deleted there, and were not read: their messages are lost, "
            "unless you load them from elsewhere. To go on behind them",
            f"{position}={one.low}",
        )
    if next > one.high:
        return OffsetFault(
            one.partition,
            f"it ends before offset {one.high}, but offsets up to {next - 1} were read: the brokers have lost "
            "messages, and give these offsets to others now. To go on at its end",
            f"{position}={one.high}",
        )
    return Span(one.partition, next, one.high)


def _new_partition(one: SeenPartition) -> Span | OffsetFault:
    """Returns the span of a partition that was added to a topic which is already read: all its messages are
    new."""
    return Span(one.partition, 0, one.high) if one.low == 0 else _goes_on(one, 0)


def _other_topic(one: SeenPartition, lives_of_topic: set[tuple[str, str, str]]) -> OffsetFault:
    is_same_cluster = any(cluster == one.partition.cluster for _, cluster, _ in lives_of_topic)
    what = (
        "it was deleted and created again since it was read"
        if is_same_cluster
        else "the pool has read a topic of this name from other brokers (another cluster id)"
    )
    return OffsetFault(
        one.partition,
        f"{what}, so the offsets in the journal say nothing of its messages. To load all that are there",
        f"{one.partition.topic}=earliest",
    )


def token_of(spans: Sequence[Span], positions: Mapping[str, Source]) -> str:
    """Returns the same token for all loads that begin at the offsets that the journal now has, so that only one of
    them commits."""
    begins = []
    for span in spans:
        source = positions.get(span.partition.stream)
        begins.append((span.partition.stream, *((source.size, source.etag) if source else (-1, ""))))
    digest = hashlib.sha256(msgspec.msgpack.encode(sorted(begins)))
    return f"kafka:{digest.hexdigest()[:32]}"


def digest_of(seen: Iterable[SeenPartition]) -> str:
    """Returns a digest of what the brokers have."""
    return hashlib.sha256(msgspec.msgpack.encode(list(seen))).hexdigest()[:32]
