"""The address of topics, its settings, and the credentials of brokers: refused in words, without a secret."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from lake_core.errors import InvalidInput
from lake_core.keys import PoolKey
from log_lake.kafka.broker import Broker
from log_lake.kafka.clients import VARIABLE, client_settings
from log_lake.kafka.settings import kafka_policy
from log_lake.kafka.source import is_kafka, kafka_source
from log_lake.settings import Settings
from log_lake.settings.settings import check_settings

SECRET = "hunter2-%-secret"


def test_an_address_names_brokers_and_topics() -> None:
    source = kafka_source("kafka://a.example.com:9092,[::1]:9093/orders,users.v1")
    assert (source.hosts, source.topics) == (("a.example.com:9092", "[::1]:9093"), ("orders", "users.v1"))
    assert [is_kafka(text) for text in ("kafka://a:1/t", "KAFKA://a:1/t", "s3://kafka/", "/kafka")] == [
        *(True, True, False, False)
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("kafka://a/t", "not HOST:PORT"),
        ("kafka://a:0/t", "not HOST:PORT"),
        ("kafka://a:99999/t", "not HOST:PORT"),
        ("kafka:///t", "not HOST:PORT"),
        ("kafka://a:1", "is no topic"),
        ("kafka://a:1/t*", "patterns are not read"),
        ("kafka://a:1/t,t", "named twice"),
        ("kafka://a:1/..", "is no topic"),
        ("kafka://a:1/t?start=0", "without options"),
        (f"kafka://user:{SECRET}@a:1/t", "without a user or password"),
        ("kafka://a:1/" + ",".join(f"t{n}" for n in range(101)), "at most 100 topics"),
    ],
)
def test_a_bad_address_is_refused_when_it_is_set(text: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=r"ingest\.source") as refused:
        check_settings({"ingest.source": text}, kind="append", key=PoolKey.parse("k"))
    assert why in str(refused.value)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("settings", "kind", "key", "why"),
    [
        ({"kafka.value": "avro"}, "append", "k", "schema registry (avro)"),
        ({"kafka.value": "xml"}, "append", "k", "use json or text"),
        ({"kafka.fields": "key,value"}, "append", "k", "'value' is unknown"),
        ({"kafka.nulls": "delete"}, "append", "k", "no deletes by key"),
        ({"kafka.nulls": "delete"}, "upsert", "kafka_key", "kafka.fields=key"),
        ({"kafka.nulls": "delete", "kafka.value": "text"}, "upsert", "k", "--key kafka_key"),
    ],
)
def test_settings_that_no_message_fits_are_refused(
    settings: dict[str, str], kind: str, key: str, why: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_settings(settings, kind=kind, key=PoolKey.parse(key))
    assert why in str(refused.value)


def test_the_settings_of_a_pool_are_a_policy() -> None:
    policy = kafka_policy(Settings({"kafka.fields": "offset, key"}))
    assert (policy.value, policy.fields, policy.nulls) == ("json", ("key", "offset"), "reject")


# --- credentials


@pytest.fixture
def clients(tmp_path: Path) -> Path:
    path = tmp_path / "clients.ini"
    path.write_text(f"[a:1, b:2]\nsecurity.protocol = SASL_SSL\nsasl.password = {SECRET}\n[c:3]\n")
    return path


def test_a_password_goes_only_to_brokers_that_its_section_names(clients: Path) -> None:
    environ = {VARIABLE: str(clients)}
    for hosts in (("a:1",), ("b:2", "a:1")):
        assert client_settings(hosts, environ, {}) == {
            "security.protocol": "SASL_SSL",
            "sasl.password": SECRET,
        }
    for hosts in (("a:1", "evil:1"), ("a:2",), ("c:3",)):
        assert client_settings(hosts, environ, {}) == {}
    assert client_settings(("a:1",), {}, {}) == {}


def test_a_connection_comes_before_the_file_and_its_other_settings_are_left_out(clients: Path) -> None:
    of_airflow = {"a:1": {"sasl.password": "other", "group.id": "g", "plugin.library.paths": "/x"}}
    environ = {VARIABLE: str(clients)}
    assert client_settings(("a:1",), environ, of_airflow) == {"sasl.password": "other"}
    assert client_settings(("b:2",), environ, of_airflow)["sasl.password"] == SECRET


@pytest.mark.parametrize(
    "text",
    [
        f"[a:1]\nplugin.library.paths = {SECRET}\n",
        f"[a:1]\nbootstrap.servers = {SECRET}\n",
        f"[a:1]\nssl.engine.location = {SECRET}\n",
        f"[a:1]\nssl.providers = {SECRET}\n",
        f"[a:1]\nsasl.kerberos.kinit.cmd = {SECRET}\n",
        f"[a:1\nsasl.password = {SECRET}\n",
        f"sasl.password = {SECRET}\n",
        f"[a:1]\nsasl.password {SECRET}\n",
        f"[a:1]\nsasl.password = {SECRET}\nsasl.password = {SECRET}\n",
    ],
)
def test_a_bad_file_is_refused_without_its_values(tmp_path: Path, text: str) -> None:
    path = tmp_path / "clients.ini"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=VARIABLE) as refused:
        client_settings(("a:1",), {VARIABLE: str(path)}, {})
    assert SECRET not in f"{refused.value}{refused.value.__cause__}"
    with pytest.raises(InvalidInput, match="cannot be read"):
        client_settings(("a:1",), {VARIABLE: str(tmp_path / "none")}, {})


def test_a_client_that_refuses_its_settings_repeats_no_value(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "clients.ini"
    path.write_text(f"[127.0.0.1:9]\nsecurity.protocol = {SECRET}\nsasl.password = {SECRET}\n")
    broker = Broker(kafka_source("kafka://127.0.0.1:9/t"), {}, {VARIABLE: str(path)}, answer_seconds=1.0)
    with caplog.at_level(logging.DEBUG), pytest.raises(InvalidInput, match="refuses its settings") as refused:
        broker.look()
    assert SECRET not in f"{refused.value}{refused.value.__cause__}{caplog.text}"
    assert SECRET not in repr(broker)
