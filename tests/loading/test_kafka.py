"""Topics of a real Kafka, read into pools: each record once, whoever reads, dies, stops, or goes on too late.

With LAKE_TEST_KAFKA=1, as in CI, Kafka's broker is fetched from Maven (`tests.support.kafka.server`).  The
account of what was sent is that of the producer: the topic, partition and offset that the broker confirmed for
each message.
"""

from __future__ import annotations

import collections
import itertools
import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from lake_core.errors import Denied, Incomplete, InvalidInput, NotFound, Unavailable
from log_lake.cli.main import main as command
from log_lake.kafka.broker import Broker
from log_lake.kafka.clients import VARIABLE
from log_lake.kafka.load import KafkaLoad, load_topics
from log_lake.kafka.plan import Span
from log_lake.kafka.source import kafka_source
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from spark_apps.command import run_agent
from tests.support.kafka.server import PASSWORD, USER, Kafka, Place, kafka
from tests.support.kills.killing import kill_at_random

pytestmark = pytest.mark.slow

PLACE = "topic,partition,offset"
NAMES = (f"t{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    with kafka(tmp_path_factory.mktemp("kafka")) as running:
        yield running


@pytest.fixture
def topic(server: Kafka) -> str:
    return server.create(next(NAMES), partitions=3)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.create(str(tmp_path / "lake"), author="test")


def pool_of(
    lake: Lake, server: Kafka, *topics: str, name: str = "p", key: str = "id", **settings: str
) -> Pool:
    """A pool that reads the topics; settings of `kafka.` without that beginning."""
    kind = settings.pop("kind", "append")
    return lake.create_pool(
        name,
        key=key,
        kind=kind,
        settings={
            "ingest.source": f"kafka://{server.address}/{','.join(topics)}",
            "kafka.fields": PLACE,
            **{n if n.startswith("bad_") else f"kafka.{n}": value for n, value in settings.items()},
        },
    )


def broker(pool: Pool, kind: type[Broker] = Broker) -> Broker:
    return kind(kafka_source(pool.settings["ingest.source"]), answer_seconds=600.0)


def load(pool: Pool) -> KafkaLoad:
    return load_topics(pool, broker(pool))


def rows(pool: Pool) -> list[dict[str, Any]]:
    return pool.at().to_table().to_pylist()


def places(pool: Pool) -> list[Place]:
    """Where the records of the pool come from, in order: a record that came twice is there twice."""
    return sorted((row["kafka_topic"], row["kafka_partition"], row["kafka_offset"]) for row in rows(pool))


def records(numbers: Sequence[int] | range) -> list[str]:
    return [json.dumps({"id": number}) for number in numbers]


def agent(lake: Lake) -> dict[str, int]:
    return run_agent("ingest", {}, lake=lake)


# --- what is read


def test_all_records_of_all_partitions_come_once_and_runs_go_on(
    lake: Lake, server: Kafka, topic: str
) -> None:
    sent, pool = server.send(topic, records(range(100))), pool_of(lake, server, topic, batch_records="7")
    assert len(load(pool).results) >= 100 / 7
    assert places(pool) == sorted(sent)
    assert load(pool) == KafkaLoad()
    sent += server.send(topic, records(range(100, 120)))
    load(pool)
    assert places(pool) == sorted(sent)


def test_parts_of_a_message_are_fields_and_values_may_be_text(lake: Lake, server: Kafka, topic: str) -> None:
    pool = pool_of(
        lake, server, topic, key="kafka_offset", value="text", fields="key,headers,timestamp,offset"
    )
    server.send(topic, ["é\n1"], keys=["k"], headers=[("a", "1"), ("a", None)], timestamp=1_700_000_000_123)
    load(pool)
    (row,) = rows(pool)
    assert (row["value"], row["kafka_key"], row["kafka_timestamp"].timestamp()) == (
        "é\n1",
        "k",
        1_700_000_000.123,
    )
    assert row["kafka_headers"] == [{"name": "a", "value": "1"}, {"name": "a", "value": None}]


def test_bad_records_are_named_by_their_place_and_may_be_quarantined(
    lake: Lake, server: Kafka, topic: str
) -> None:
    values = [
        '{"id": 1}',
        '{"id": ',
        "[1]",
        '{"id": 2}{"id": 3}',
        b"\0\0\0\0\7\1\2",
        "",
        None,
        '{\n"id": 4\n}',
    ]
    server.send(topic, values, partition=0)
    with pytest.raises(InvalidInput, match=rf"kafka:{topic}/0, offset [1-6]: "):
        load(pool_of(lake, server, topic, name="strict"))
    pool = pool_of(lake, server, topic, bad_records="quarantine")
    load(pool)
    assert [row["id"] for row in rows(pool)] == [1, 4]
    bad = lake.pool("p.$rejected").at().to_table().to_pylist()
    assert sorted((row["file"], row["line"]) for row in bad) == [(f"kafka:{topic}/0", n) for n in range(1, 7)]
    reasons = {row["line"]: row["reason"] for row in bad}
    assert "schema registry (schema 7)" in reasons[4]
    assert "no value" in reasons[6]
    assert {row["line"]: row["raw"] for row in bad}[2] == "[1]"


def test_a_tombstone_deletes_by_the_key_of_its_message(lake: Lake, server: Kafka, topic: str) -> None:
    pool = pool_of(lake, server, topic, kind="upsert", nulls="delete")
    server.send(topic, records(range(3)), keys=[json.dumps({"id": n}) for n in range(3)], partition=0)
    load(pool)
    server.send(topic, [None, None], keys=['{"id": 1}', '{"id": 7}'], partition=0)
    load(pool)
    assert [row["id"] for row in rows(pool)] == [0, 2]


def test_only_committed_transactions_are_read_and_markers_leave_no_gap(
    lake: Lake, server: Kafka, topic: str
) -> None:
    pool = pool_of(lake, server, topic)
    producer = server.producer(**{"transactional.id": topic})
    producer.init_transactions(60)

    def transaction(numbers: Sequence[int], end: Callable[[], object] | None) -> None:
        producer.begin_transaction()
        for value in records(numbers):
            producer.produce(topic, value=value, partition=0)
        producer.flush(60)
        if end is not None:
            end()

    transaction([1, 2], producer.commit_transaction)
    transaction([3, 4], producer.abort_transaction)
    load(pool)
    assert [row["id"] for row in rows(pool)] == [1, 2]
    server.drop_before(topic, 0, 6)  # all of it, markers too
    assert load(pool) == KafkaLoad()  # the aborted ones count as read
    transaction([5], None)
    assert load(pool) == KafkaLoad()
    producer.commit_transaction(60)
    load(pool)
    assert [row["id"] for row in rows(pool)] == [1, 2, 5]


def test_new_partitions_and_topics_are_read_from_their_beginning(
    lake: Lake, server: Kafka, topic: str
) -> None:
    sent, pool = server.send(topic, records(range(10))), pool_of(lake, server, topic)
    load(pool)
    server.widen(topic, 5)
    sent += server.send(topic, records(range(10, 20)), partition=4)
    other = server.create(next(NAMES))
    sent += server.send(other, records(range(20, 30)))
    lake.configure_pool("p", {"ingest.source": f"kafka://{server.address}/{topic},{other}"})
    load(lake.pool("p"))
    assert places(lake.pool("p")) == sorted(sent)


# --- what is in doubt


def test_a_gap_is_an_error_that_names_it_and_the_rest_is_read(
    lake: Lake, server: Kafka, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = pool_of(lake, server, topic)
    server.send(topic, records(range(10)), partition=0)
    load(pool)
    server.send(topic, records(range(10, 20)), partition=0)
    server.send(topic, records(range(20, 25)), partition=1)
    server.drop_before(topic, 0, 15)
    with pytest.raises(
        Incomplete, match=rf"partition 0: the offsets 10 to 14 .*lake offsets p --set {topic}:0=15"
    ):
        agent(lake)
    assert len(rows(pool)) == 15
    assert command(["offsets", "p", "--set", f"{topic}:0=15", "--lake", lake.store.uri]) == 0
    agent(lake)
    assert sorted(row["id"] for row in rows(pool)) == [*range(10), *range(15, 25)]
    assert command(["offsets", "p", "--lake", lake.store.uri]) == 0
    assert "20" in capsys.readouterr().out


def test_a_topic_that_was_created_again_is_not_taken_for_the_old_one(
    lake: Lake, server: Kafka, topic: str
) -> None:
    pool = pool_of(lake, server, topic)
    server.send(topic, records(range(10)), partition=0)
    load(pool)
    server.delete(topic)
    with pytest.raises(NotFound, match="there is no topic"):
        load(pool)
    server.create(topic)
    server.send(topic, records(range(10, 30)), partition=0)
    found = load(pool)
    assert ["deleted and created again" in fault.why for fault in found.faults] == [True]
    assert command(["offsets", "p", "--set", f"{topic}=earliest", "--lake", lake.store.uri]) == 0
    load(pool)
    assert [row["id"] for row in rows(pool)] == [*range(30)]


def test_a_topic_created_again_while_it_is_read_is_refused(lake: Lake, server: Kafka, topic: str) -> None:
    class Recreated(Broker):
        def check_same(self, spans: Sequence[Span]) -> None:
            server.delete(topic)
            server.create(topic)
            server.send(topic, records([0]))  # it has a leader
            super().check_same(spans)

    pool = pool_of(lake, server, topic)
    server.send(topic, records(range(10)), partition=0)
    with pytest.raises(Unavailable, match="created again meanwhile"):
        load_topics(pool, broker(pool, Recreated))
    assert rows(pool) == []


def test_a_rebuilt_pool_asks_where_to_go_on(lake: Lake, server: Kafka, topic: str) -> None:
    pool = pool_of(lake, server, topic)
    server.send(topic, records(range(10)), partition=0)
    load(pool)
    uri = lake.store.uri
    assert command(["rebuild", "p", "--name", "again", "--yes", "--lake", uri]) == 0
    again = lake.pool("again")
    assert {"no offsets" in fault.why for fault in load(again).faults} == {True}
    assert command(["offsets", "again", "--set", f"{topic}=latest", "--lake", uri]) == 0
    server.send(topic, records([10]), partition=0)
    load(again)
    assert [row["id"] for row in rows(again)] == [*range(11)]


def test_a_revert_leaves_the_offsets_and_setting_them_reads_again(
    lake: Lake, server: Kafka, topic: str
) -> None:
    pool = pool_of(lake, server, topic)
    server.send(topic, records(range(10)), partition=0)
    version = load(pool).results[-1].version
    pool.branch().revert(str(version))
    assert (load(pool), rows(pool)) == (KafkaLoad(), [])
    for _ in range(2):  # the offsets may be set to the same place again
        assert command(["offsets", "p", "--set", f"{topic}:0=0", "--lake", lake.store.uri]) == 0
        load(pool)
    assert len(rows(pool)) == 20


def test_a_dropped_pool_that_is_made_again_begins_again(lake: Lake, server: Kafka, topic: str) -> None:
    server.send(topic, records(range(10)))
    load(pool_of(lake, server, topic))
    lake.drop_pool("p")
    again = pool_of(lake, server, topic)
    load(again)
    assert [row["id"] for row in rows(again)] == [*range(10)]


def test_brokers_that_are_gone_are_unavailable(lake: Lake) -> None:
    gone = Broker(kafka_source("kafka://127.0.0.1:9/t"), answer_seconds=1.0)
    with pytest.raises(Unavailable, match=r"kafka://127\.0\.0\.1:9"):
        gone.look()


def test_a_password_is_sent_by_tls_and_shown_nowhere(
    lake: Lake, server: Kafka, topic: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pool, clients = pool_of(lake, server, topic), tmp_path / "clients.ini"
    server.send(topic, records(range(5)))
    source = kafka_source(f"kafka://{server.secure}/{topic}")

    def loaded(password: str, *, section: str = server.secure, seconds: float = 600.0) -> KafkaLoad:
        clients.write_text(
            f"[{section}]\nsecurity.protocol = SASL_SSL\nsasl.mechanism = PLAIN\nsasl.username = {USER}\n"
            f"sasl.password = {password}\nssl.ca.location = {server.authority}\n"
        )
        return load_topics(pool, Broker(source, {}, {VARIABLE: str(clients)}, answer_seconds=seconds))

    def refusal(password: str, seconds: float) -> Denied | None:
        """How the brokers refuse it; None if they did not say so in time."""
        try:
            loaded(password, seconds=seconds)
        except Denied as denied:
            return denied
        except Unavailable:
            return None
        raise AssertionError("a wrong password was taken")

    with caplog.at_level(logging.DEBUG):
        wrong = next(filter(None, (refusal("wrong-secret", 3.0 * 2**turn) for turn in itertools.count())))
        with pytest.raises(Unavailable):
            loaded(PASSWORD, section="127.0.0.1:9", seconds=3.0)
        assert loaded(PASSWORD).results[0].records == 5
    assert VARIABLE in str(wrong)
    assert "secret" not in f"{wrong}{caplog.text}"


def test_a_compacted_topic_has_no_gaps(lake: Lake, server: Kafka) -> None:
    topic = server.create(
        next(NAMES),
        cleanup_policy="compact",
        segment_ms="50",
        min_cleanable_dirty_ratio="0.001",
        max_compaction_lag_ms="50",
    )
    sent = server.send(topic, records(range(20)), keys=["k"] * 20)
    for turn in itertools.count():  # until the broker has compacted, or the test's bound of time comes
        sent += server.send(topic, records([20 + turn]), keys=["k"])
        pool = pool_of(lake, server, topic, name=f"p{turn}")
        load(pool)
        if len(rows(pool)) < len(sent):
            break
    assert set(places(pool)) < set(sent)
    sent = server.send(topic, records([1_000]), keys=["k"])
    load(pool)
    assert places(pool)[-1:] == sent


# --- two readers, dead ones, and one that goes on too late


def test_of_two_readers_of_the_same_offsets_one_commits_and_the_other_reads_on(
    lake: Lake, server: Kafka, topic: str
) -> None:
    class Overtaken(Broker):
        turns = 0

        def check_same(self, spans: Sequence[Span]) -> None:
            if self.turns < 3:
                self.turns += 1
                load_topics(pool, Half(self.source))
            super().check_same(spans)

    class Half(Broker):
        """Another reader, which commits a part of the same offsets, and other ones."""

        def read(self, spans: Sequence[Span]) -> Any:
            return super().read([Span(s.partition, s.begin, s.begin + 1) for s in spans[:1]])

        def look(self) -> list[Any]:
            return super().look()[:1]

    pool = pool_of(lake, server, topic, batch_records="5")
    sent = server.send(topic, records(range(40)))
    done = load_topics(pool, broker(pool, Overtaken))
    assert done.lost > 0
    assert places(pool) == sorted(sent)


def test_a_zombie_that_goes_on_after_a_pause_adds_nothing(lake: Lake, server: Kafka, topic: str) -> None:
    pool = pool_of(lake, server, topic)
    sent = server.send(topic, records(range(50)))
    words = [sys.executable, "-m", "tests.support.kafka.reader", "--role", "zombie", lake.store.uri, "p"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as zombie:
        process = psutil.Process(zombie.pid)
        while process.status() != psutil.STATUS_STOPPED:  # ends, or the test's bound of time does
            assert zombie.poll() is None
        load(pool)
        sent += server.send(topic, records(range(50, 60)))
        zombie.send_signal(signal.SIGCONT)
        said, _ = zombie.communicate()
    assert (zombie.returncode, said.strip()) == (0, "1")
    load(pool)
    assert places(pool) == sorted(sent)


def test_readers_killed_at_random_bring_every_record_once(lake: Lake, server: Kafka, topic: str) -> None:
    pool = pool_of(lake, server, topic, batch_records="50")
    sent: list[Place] = []
    ending = threading.Event()

    def produce() -> None:
        for first in range(0, MESSAGES, 25):
            if not ending.is_set():
                sent.extend(server.send(topic, records(range(first, first + 25))))
                ending.wait(0.1)

    producing = threading.Thread(target=produce)
    producing.start()
    try:
        killed = kill_at_random(
            "tests.support.kafka.reader",
            ["reader"] * 3,
            lambda role, number: [lake.store.uri, "p"],
            seconds=SECONDS,
            moment=1.0,
            is_enough=lambda: len(rows(pool)) > MESSAGES // 10,
        )
    finally:
        ending.set()
        producing.join()
    load(pool)
    counts = collections.Counter(places(pool))
    assert killed > 0
    assert counts == collections.Counter(sent)


SECONDS, MESSAGES = float(os.environ.get("LAKE_TEST_KAFKA_SECONDS", "8")), 5_000
"""How long readers are killed, and how many messages there are at most."""
