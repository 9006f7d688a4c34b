"""Asks Kafka's brokers which offsets topics have, and reads messages.  It never joins a consumer group, and
commits nothing there.

Only messages of committed transactions are read (`read_committed`).  Every request has a limit of time.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from lake_core.errors import Denied, InvalidInput, LakeError, NotFound, Unavailable
from lake_core.phrases import listed
from log_lake.extras import need
from log_lake.kafka.clients import client_settings
from log_lake.kafka.plan import Partition, SeenPartition, Span
from log_lake.kafka.source import KafkaSource

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError

log = logging.getLogger(__name__)

ANSWER_SECONDS = 60.0
"""How long brokers may take for an answer, and for the next message of a batch."""

LONGEST_SECONDS = 300.0
"""The longest timeout of one request that the Kafka client accepts."""

AT_ONCE, ROUND_SECONDS = 10_000, 0.1
"""The most messages that one call of the client returns, and how long the call waits for them."""


class Message(msgspec.Struct, frozen=True):
    """A message of Kafka.  `time` is in milliseconds since 1970, None if it has none; `value` is None for a
    tombstone."""

    partition: Partition
    offset: int
    value: bytes | None
    key: bytes | None
    time: int | None
    headers: tuple[tuple[str, bytes | None], ...] = ()

    @property
    def size(self) -> int:
        """Bytes of the value, the key and the headers."""
        headers = sum(len(name) + len(value or b"") for name, value in self.headers)
        return len(self.value or b"") + len(self.key or b"") + headers


@dataclass
class Broker:
    """The brokers of a source; the connection is made at the first question."""

    source: KafkaSource
    clients: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    answer_seconds: float = ANSWER_SECONDS
    _complaint: str = ""
    _is_denied: bool = False

    def __post_init__(self) -> None:
        need("kafka", f"kafka://{','.join(self.source.hosts)}")

    def look(self) -> list[SeenPartition]:
        """Asks which partitions all topics have, and returns them.  Raises NotFound for a topic that does not
        exist, and Unavailable, InvalidInput."""
        from confluent_kafka import IsolationLevel, TopicCollection, TopicPartition
        from confluent_kafka.admin import AdminClient, OffsetSpec

        admin = self._made(AdminClient, {})
        within = {"request_timeout": self.answer_seconds}
        cluster = self._answer(admin, admin.describe_cluster(**within))
        futures = admin.describe_topics(TopicCollection(list(self.source.topics)), **within)
        partitions = []
        for name in self.source.topics:
            described = self._answer(admin, futures[name], topic=name)
            partitions += [
                Partition(name, one.id, str(cluster.cluster_id), str(described.topic_id))
                for one in described.partitions
            ]
        bounds = []
        for spec in (OffsetSpec.earliest(), OffsetSpec.latest()):
            asked = {TopicPartition(one.topic, one.number): spec for one in partitions}
            answers = admin.list_offsets(asked, isolation_level=IsolationLevel.READ_COMMITTED, **within)
            bounds.append(
                {
                    (at.topic, at.partition): self._answer(admin, answer).offset
                    for at, answer in answers.items()
                }
            )
        low, high = bounds
        return [
            SeenPartition(one, low[one.topic, one.number], high[one.topic, one.number])
            for one in sorted(partitions)
        ]

    def check_same(self, spans: Sequence[Span]) -> None:
        """Raises Unavailable if a topic was deleted and created again since its spans were planned: its messages
        may be those of the new topic."""
        there = {one.partition for one in self.look()}
        if other := [span.partition for span in spans if span.partition not in there]:
            raise Unavailable(
                f"{self.name}: {other[0]}: the topic was created again meanwhile; the next run names it"
            )

    def read(self, spans: Sequence[Span]) -> Generator[Message | Span, None, None]:
        """Yields the messages of the spans: in order within a partition, partitions mixed.

        After the last message of a partition it yields a span from `begin` to `end`, which has no message:
        nothing else lies below `end`. Raises Unavailable if no message comes for a while, InvalidInput if
        offsets are deleted meanwhile.
        """
        from confluent_kafka import Consumer, TopicPartition

        partitions = {(span.partition.topic, span.partition.number): span for span in spans}
        consumer = self._made(
            Consumer,
            {
                "group.id": "log-lake",  # a name that the client wants; with assigned partitions no broker sees it
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "error",
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
                "check.crcs": True,
                "queued.max.messages.kbytes": 65_536,
            },
        )
        try:
            consumer.assign([TopicPartition(*at, span.begin) for at, span in partitions.items()])
            yield from self._messages(consumer, partitions)
        finally:
            consumer.close()

    def _messages(
        self, consumer: Consumer, partitions: dict[tuple[str, int], Span]
    ) -> Iterator[Message | Span]:
        from confluent_kafka import KafkaError, TopicPartition

        open_spans, heard = dict(partitions), time.monotonic()
        while open_spans:  # each round ends a span, gets messages, or gets nearer to the bound of time
            received = consumer.consume(AT_ONCE, timeout=ROUND_SECONDS)
            if not received and time.monotonic() - heard > self.answer_seconds:
                topics = listed(sorted({topic for topic, _ in open_spans}))
                raise Unavailable(
                    f"{self.name}: no message of {topics} for {self.answer_seconds:.0f} s{self._why}"
                )
            heard = time.monotonic() if received else heard
            for message in received:
                at = (message.topic(), message.partition())
                span, error = partitions[at], message.error()
                if error is not None and error.code() != KafkaError._PARTITION_EOF:
                    raise self._failure(error, at=f"{span.partition}")
                if at not in open_spans:
                    continue
                offset = message.offset()
                if error is None and offset < span.end:
                    yield _message(message, span.partition)
                if offset >= span.end - (error is None):
                    del open_spans[at]
                    consumer.pause([TopicPartition(*at)])
                    yield span
                elif error is not None:  # the partition was longer when it was looked at
                    raise Unavailable(f"{span.partition}: ends at offset {offset} now, not at {span.end}")

    def _made(self, kind: Any, settings: dict[str, Any]) -> Any:
        """Makes a client. If that fails, raises InvalidInput, which shows no values of its settings, because one
        is a password."""
        from confluent_kafka import KafkaException

        own = {
            "bootstrap.servers": ",".join(self.source.hosts),
            "client.id": "log-lake",
            "error_cb": self._complain,
            "logger": log,
            "socket.timeout.ms": int(min(self.answer_seconds, LONGEST_SECONDS) * 1000),
        }
        try:
            return kind({**client_settings(self.source.hosts, self.environ, self.clients), **own, **settings})
        except KafkaException as error:
            name = str(error.args[0].str()).partition(" = ")[0].partition('"')[0]
            raise InvalidInput(f"{self.name}: the client refuses its settings: {name}") from None

    def _complain(self, error: KafkaError) -> None:
        from confluent_kafka import KafkaError

        self._complaint = error.str()
        self._is_denied = error.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL)

    @property
    def name(self) -> str:
        """The brokers, as errors name them: `kafka://HOST,HOST`."""
        return f"kafka://{','.join(self.source.hosts)}"

    @property
    def _why(self) -> str:
        return f" ({self._complaint})" if self._complaint else ""

    def _answer(self, admin: Any, future: Any, *, topic: str = "") -> Any:
        from confluent_kafka import KafkaException

        try:
            return future.result(2 * self.answer_seconds)
        except KafkaException as error:
            admin.poll(ROUND_SECONDS)  # calls `_complain` with what the client met
            raise self._failure(error.args[0], topic=topic) from None
        except TimeoutError:
            raise self._no_answer("no answer") from None

    def _failure(self, error: KafkaError, *, at: str = "", topic: str = "") -> LakeError:
        """Returns an error of the lake for an error of a broker or of the client."""
        from confluent_kafka import KafkaError

        code, text = error.code(), error.str()
        where = f"{self.name}{f', {at}' if at else ''}"
        if code in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            return Unavailable(
                f"{where}: offsets were deleted while they were read; the next look names them"
            )
        if code in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):
            return NotFound(
                f"{self.name}: there is no topic {topic or at!r}; create it, or correct ingest.source"
            )
        if code in (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED):
            return Denied(
                f"{where}: {text}; the worker needs the rights Describe and Read on topic {topic or at}"
            )
        if code in (KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError._SSL):
            return Denied(
                f"{where}: {text}; correct their section in LAKE_KAFKA_CLIENTS, or their connection in Airflow"
            )
        return self._no_answer(text, where=where)

    def _no_answer(self, text: str, *, where: str = "") -> Unavailable:
        """Returns the error for brokers that do not answer; Denied if they, or the client, refused before."""
        kind = Denied if self._is_denied else Unavailable
        advice = (
            "; correct their section in LAKE_KAFKA_CLIENTS, or their connection in Airflow"
            if self._is_denied
            else ""
        )
        return kind(f"{where or self.name}: {text}{self._why}{advice}")


def _message(message: Any, partition: Partition) -> Message:
    from confluent_kafka import TIMESTAMP_NOT_AVAILABLE

    kind, time = message.timestamp()
    return Message(
        partition,
        message.offset(),
        message.value(),
        message.key(),
        None if kind == TIMESTAMP_NOT_AVAILABLE else time,
        tuple(message.headers() or ()),
    )
