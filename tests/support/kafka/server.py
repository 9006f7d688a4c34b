"""Runs Kafka's own broker and controller in one JVM on loopback, and changes its topics.

Maven (`mvn`) fetches the jars that `pom.xml` pins, once. The variable LAKE_TEST_KAFKA may name a folder with
them instead.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from local.java import find
from tests.support.repository import ROOT
from tests.support.servers.daemons import accepts, daemon, free_port, programs, run

POM = ROOT / "tests" / "support" / "kafka" / "pom.xml"
ASKED = os.environ.get("LAKE_TEST_KAFKA", "")
WAIT = 600.0
"""Seconds, for a busy machine; a test waits only until what it needs is true."""
USER, PASSWORD = "lake", "hunter2-secret"

Place = tuple[str, int, int]
"""Topic, partition and offset of a message."""


def installed(folder: Path = ROOT / ".venv" / "kafka") -> Path:
    """Returns the folder of the jars, after filling it if necessary. Raises FileNotFoundError without `mvn`,
    CalledProcessError."""
    stamp, pinned = folder / "stamp", POM.read_text()
    if not stamp.exists() or stamp.read_text() != pinned:
        shutil.rmtree(folder, ignore_errors=True)  # jars of another version
        command = ["mvn", "--batch-mode", "--quiet", "--no-transfer-progress", "--file", str(POM)]
        command += [
            "dependency:copy-dependencies",
            "-DincludeScope=runtime",
            f"-DoutputDirectory={folder}/lib",
        ]
        subprocess.run(command, check=True)
        stamp.write_text(pinned)
    return folder / "lib"


@dataclass
class Kafka:
    """A running broker. `secure` is its address with SASL_SSL; `authority` is the file with its certificate."""

    address: str
    secure: str
    authority: Path

    @functools.cached_property
    def admin(self) -> Any:
        """A client for changes of topics; the caller must hold it until its answers have come."""
        from confluent_kafka.admin import AdminClient

        return AdminClient({"bootstrap.servers": self.address})

    def create(self, topic: str, *, partitions: int = 1, **config: str) -> str:
        """Makes a topic and returns its name; in names of `config` an underscore stands for a dot."""
        from confluent_kafka.admin import NewTopic

        dotted = {name.replace("_", "."): value for name, value in config.items()}
        self.done(self.admin.create_topics([NewTopic(topic, partitions, 1, config=dotted)]))
        return topic

    def delete(self, topic: str) -> None:
        """Deletes a topic, and waits until it is gone."""
        self.done(self.admin.delete_topics([topic]))
        while topic in self.admin.list_topics(timeout=WAIT).topics:  # ends, or the test's bound of time does
            pass

    def widen(self, topic: str, partitions: int) -> None:
        """Adds partitions up to this number."""
        from confluent_kafka.admin import NewPartitions

        self.done(self.admin.create_partitions([NewPartitions(topic, partitions)]))

    def drop_before(self, topic: str, partition: int, offset: int) -> None:
        """Deletes the messages below an offset, as retention does."""
        from confluent_kafka import TopicPartition

        self.done(self.admin.delete_records([TopicPartition(topic, partition, offset)]))

    @staticmethod
    def done(futures: Mapping[Any, Any]) -> None:
        for future in futures.values():
            future.result(WAIT)

    def producer(self, **config: Any) -> Any:
        from confluent_kafka import Producer

        return Producer({"bootstrap.servers": self.address, **config})

    def send(
        self, topic: str, values: Iterable[str | bytes | None], *, keys: Sequence[Any] = (), **how: Any
    ) -> list[Place]:
        """Sends messages, and returns the place of each; `how` is passed to `produce`."""
        places: list[Place] = []

        def sent(error: Any, message: Any) -> None:
            assert error is None, error
            places.append((message.topic(), message.partition(), message.offset()))

        producer = self.producer()
        for number, value in enumerate(values):
            key = keys[number] if keys else None
            producer.produce(topic, value=value, key=key, on_delivery=sent, **how)
            producer.poll(0)
        producer.flush(WAIT)
        return places


@contextlib.contextmanager
def kafka(folder: Path) -> Iterator[Kafka]:
    """Runs a broker with its data in the folder while the block runs; skips if LAKE_TEST_KAFKA is not set."""
    java = find(os.environ)
    if not ASKED:
        pytest.skip("LAKE_TEST_KAFKA is not set")
    if java is None:
        pytest.skip("Kafka needs a Java, which is not here")
    jars = installed() if ASKED == "1" else Path(ASKED)
    port, secure, controller = free_port(), free_port(), free_port()
    address = f"127.0.0.1:{port}"
    certificate, store = folder / "certificate.pem", folder / "store.pem"
    _certify(certificate, store)
    properties = folder / "server.properties"
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": (
            f"PLAINTEXT://{address},SECURE://127.0.0.1:{secure},CONTROLLER://127.0.0.1:{controller}"
        ),
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.secure.plain.sasl.jaas.config": (
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
            f'username="{USER}" password="{PASSWORD}" user_{USER}="{PASSWORD}";'
        ),
        "listener.name.secure.ssl.keystore.type": "PEM",
        "listener.name.secure.ssl.keystore.location": f"{store}",
        "log.dirs": f"{folder}/data",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.num.partitions": "1",
        "transaction.state.log.min.isr": "1",
        "log.cleaner.backoff.ms": "100",
        "log.retention.check.interval.ms": "1000",
    }
    properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    program = [java.home / "bin" / "java", "-Xmx512m", "-cp", f"{jars}/*"]
    run(*program, "kafka.tools.StorageTool", "format", "-t", "bGFrZS10ZXN0LWthZmthIQ", "-c", properties)
    with daemon(
        *program, "kafka.Kafka", properties, log=folder / "log", ready=lambda: accepts(port), within=WAIT
    ):
        yield Kafka(address, f"127.0.0.1:{secure}", certificate)


def _certify(certificate: Path, store: Path) -> None:
    """Makes a self-signed certificate for loopback, and a file with the certificate and its key."""
    (openssl,) = programs(["openssl"], packages=["openssl"]).values()
    key = store.with_name("key.pem")
    run(
        *(openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate),
        *("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "30"),
    )
    store.write_text(key.read_text() + certificate.read_text())
