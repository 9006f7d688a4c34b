"""What connections of Airflow say: where a lake is, with which credentials, and where its Spark is."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import pytest

from airflow_lake.connection import (
    LakeAddress,
    SparkAddress,
    kafka_clients,
    lake_address,
    spark_address,
    store_options,
)
from lake_core.errors import InvalidInput


@dataclass(frozen=True)
class Row:
    """A connection, as Airflow keeps it."""

    conn_id: str = "c"
    conn_type: str | None = "lake"
    host: str | None = None
    schema: str | None = None
    login: str | None = None
    password: str | None = None
    port: int | None = None
    extra: str | None = None


LAKE = Row(host="s3://bucket/lake")
AWS = Row(conn_type="aws", login="AKIA", password="hush")
GOOGLE = Row(conn_type="google_cloud_platform")
CONNECT = Row(conn_type="spark_connect", host="sc://spark", port=15002)


def with_extra(row: Row, **extra: Any) -> Row:
    return replace(row, extra=json.dumps(extra))


@pytest.mark.parametrize(
    "row",
    [
        LAKE,
        Row(host="s3://bucket", schema="lake"),
        with_extra(Row(), uri="s3://bucket/lake"),
        with_extra(LAKE, options="", credentials_conn_id=None, spark_conn_id=""),
    ],
    ids=["host", "AIRFLOW_CONN_ as a URI", "extra", "an empty form"],
)
def test_a_lake_is_named_by_the_host_or_the_extra(row: Row) -> None:
    assert lake_address(row) == LakeAddress("s3://bucket/lake")


def test_a_path_may_be_a_lake() -> None:
    assert lake_address(Row(host="/data/lake")).uri == "/data/lake"
    assert lake_address(Row(host="", schema="data/lake")).uri == "/data/lake", "lake:///data/lake"


@pytest.mark.parametrize("options", [{"lock": "file:///locks"}, '{"lock": "file:///locks"}'])
def test_options_are_an_object_or_the_text_of_the_form(options: Any) -> None:
    row = with_extra(LAKE, options=options, credentials_conn_id="aws_default", spark_conn_id="s")
    assert lake_address(row) == LakeAddress(
        "s3://bucket/lake", {"lock": "file:///locks"}, credentials="aws_default", spark="s"
    )


@pytest.mark.parametrize("given", [64, "64", " 64 "])
def test_work_up_to_so_many_mebibytes_needs_no_spark(given: Any) -> None:
    assert lake_address(with_extra(LAKE, in_task_mib=given)).in_task == 64 << 20
    for nothing in (None, "", "0"):
        assert lake_address(with_extra(LAKE, in_task_mib=nothing)).in_task == 0
    for wrong in ("64 MiB", "-1", "1.5", True):
        with pytest.raises(InvalidInput, match="field 'in_task_mib': must be a whole number of MiB"):
            lake_address(with_extra(LAKE, in_task_mib=wrong))


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (Row(), "names no lake; write a path, s3://BUCKET/PREFIX"),
        (
            Row(host="bucket/lake"),
            "'bucket/lake' is neither a URI nor a path from the root; write s3://bucket/lake",
        ),
        (
            replace(LAKE, login="me", password="hush"),
            "its login and password would not be read; write the cred",
        ),
        (replace(LAKE, port=9000), "its port would not be read"),
        (with_extra(LAKE, uri="/elsewhere"), "names two lakes: its host and uri in its extra say different"),
        (Row(conn_type="aws"), "is of type 'aws'; name one of type lake"),
        (with_extra(LAKE, option="{}"), r"unknown field 'option' in the extra: did you mean 'options'\?"),
        (with_extra(LAKE, options="{hush"), "field 'options': must be a JSON object"),
        (with_extra(LAKE, options=[1]), "field 'options': must be a JSON object"),
        (replace(LAKE, extra="{hush"), "its extra: must be a JSON object"),
        (replace(LAKE, extra='["hush"]'), "its extra: must be a JSON object"),
    ],
)
def test_a_connection_that_cannot_be_is_refused_without_its_secrets(row: Row, says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as caught:
        lake_address(row)
    assert "connection 'c'" in str(caught.value)
    assert "hush" not in str(caught.value)


def test_an_address_does_not_show_its_options() -> None:
    assert "hush" not in repr(LakeAddress("s3://b", {"secret": "hush"}))
    assert "hush" not in repr(spark_address(replace(CONNECT, password="hush")))


def test_an_aws_connection_gives_key_token_and_endpoint() -> None:
    row = with_extra(
        AWS, aws_session_token="t", endpoint_url="http://127.0.0.1:9", region_name="eu-north-1", verify=True
    )
    assert store_options(row, uri="s3://bucket/lake") == {
        "key": "AKIA",
        "secret": "hush",
        "token": "t",
        "client_kwargs": {"endpoint_url": "http://127.0.0.1:9", "region_name": "eu-north-1"},
    }
    assert store_options(Row(conn_type="aws"), uri="s3://b") == {}, "the workers find credentials themselves"


def test_an_aws_connection_gives_what_its_session_and_its_service_say() -> None:
    session = {"profile_name": "lake", "region_name": "eu-north-1"}
    service = {"s3": {"endpoint_url": "http://127.0.0.1:9"}, "sts": {"endpoint_url": "http://127.0.0.1:1"}}
    aws = Row(conn_type="aws")
    for written in (service, json.dumps(service)):
        row = with_extra(
            aws, session_kwargs=session, service_config=written, endpoint_url="http://other", verify="False"
        )
        assert store_options(row, uri="s3://b") == {
            "profile": "lake",
            "client_kwargs": {
                "endpoint_url": "http://127.0.0.1:9",
                "region_name": "eu-north-1",
                "verify": False,
            },
        }
    keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "aws_session_token": "c"}
    assert store_options(with_extra(aws, session_kwargs=keys), uri="s3://b") == {
        "key": "a",
        "secret": "b",
        "token": "c",
    }
    assert store_options(with_extra(aws, verify="/ca.pem"), uri="s3://b") == {
        "client_kwargs": {"verify": "/ca.pem"}
    }


def test_empty_values_of_credentials_are_no_values() -> None:
    names = ("role_arn", "assume_role_method", "session_kwargs", "service_config", "verify", "profile_name")
    assert store_options(with_extra(Row(conn_type="aws"), **dict.fromkeys(names, "")), uri="s3://b") == {}
    names = (
        "impersonation_chain",
        "credential_config_file",
        "key_secret_name",
        "keyfile_dict",
        "is_anonymous",
    )
    assert store_options(with_extra(GOOGLE, **dict.fromkeys(names, "")), uri="gs://b") == {}


def test_a_google_connection_may_have_the_names_of_older_forms_and_may_be_anonymous() -> None:
    prefix = "extra__google_cloud_platform__"
    row = with_extra(GOOGLE, **{f"{prefix}key_path": "/k.json", f"{prefix}project": "p", "project": "q"})
    assert store_options(row, uri="gs://b") == {"token": "/k.json", "project": "q"}
    assert store_options(with_extra(GOOGLE, is_anonymous=True), uri="gs://b") == {"token": "anon"}
    assert store_options(with_extra(GOOGLE, is_anonymous="false"), uri="gs://b") == {}


def test_a_google_connection_gives_a_key_or_the_path_of_one() -> None:
    key = {"type": "service_account", "private_key": "hush"}
    for written in (key, json.dumps(key)):
        row = with_extra(GOOGLE, keyfile_dict=written, project="p")
        assert store_options(row, uri="gs://bucket") == {"token": key, "project": "p"}
    assert store_options(with_extra(GOOGLE, key_path="/k.json"), uri="gs://b") == {"token": "/k.json"}


@pytest.mark.parametrize(
    ("row", "uri", "says"),
    [
        (AWS, "gs://bucket/lake", "holds credentials for s3://, and the lake is at gs://bucket/lake"),
        (AWS, "/data/lake", "the lake is at /data/lake"),
        (GOOGLE, "s3://bucket/lake", "holds credentials for gs://"),
        (LAKE, "s3://bucket/lake", "is of type 'lake'; name one of type aws or google_cloud_platform"),
        (replace(AWS, password=None), "s3://b", "only one of access key id and secret access key"),
        (
            with_extra(AWS, role_arn="arn:aws:iam::1:role/r"),
            "s3://b",
            "no role is assumed here; give the role",
        ),
        (
            with_extra(AWS, assume_role_method="assume_role_with_saml"),
            "s3://b",
            "assume_role_method: no role is assumed here",
        ),
        (with_extra(AWS, session_kwargs={"botocore_session": 1}), "s3://b", "got 'botocore_session'"),
        (with_extra(AWS, session_kwargs="{hush"), "s3://b", "'session_kwargs': must be a JSON object"),
        (with_extra(AWS, service_config=["hush"]), "s3://b", "'service_config': must be a JSON object"),
        (
            with_extra(GOOGLE, impersonation_chain=["a@b"]),
            "gs://b",
            "impersonation_chain is not read here",
        ),
        (with_extra(GOOGLE, credential_config_file="hush"), "gs://b", "credential_config_file is not"),
        (
            with_extra(GOOGLE, extra__google_cloud_platform__key_secret_name="k"),
            "gs://b",
            "key_secret_name is not",
        ),
    ],
)
def test_credentials_that_do_not_fit_are_refused(row: Row, uri: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as caught:
        store_options(row, uri=uri)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("row", "remote"),
    [
        (CONNECT, "sc://spark:15002/"),
        (replace(CONNECT, host="spark"), "sc://spark:15002/"),
        (
            with_extra(replace(CONNECT, login="me", password="a;b"), use_ssl=True, session_id="x"),
            "sc://spark:15002/;user_id=me;token=a%3Bb;session_id=x;use_ssl=true",
        ),
        (with_extra(CONNECT, use_ssl=False), "sc://spark:15002/"),
    ],
)
def test_a_connection_of_spark_connect_is_an_address_of_it(row: Row, remote: str) -> None:
    assert spark_address(row) == SparkAddress(remote=remote)


@pytest.mark.parametrize(
    ("host", "port", "master"),
    [("local[2]", None, "local[2]"), ("spark://head", 7077, "spark://head:7077"), ("yarn", None, "yarn")],
)
def test_a_connection_of_spark_is_a_master(host: str, port: int | None, master: str) -> None:
    assert spark_address(Row(conn_type="spark", host=host, port=port)) == SparkAddress(master=master)


def test_what_the_form_of_a_spark_connection_says_goes_to_spark() -> None:
    row = with_extra(
        Row(conn_type="spark", host="yarn"), queue="night", namespace="", **{"deploy-mode": "client"}
    )
    assert spark_address(row) == SparkAddress(master="yarn", conf={"spark.yarn.queue": "night"})


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (
            with_extra(Row(conn_type="spark", host="yarn"), **{"deploy-mode": "cluster"}),
            r"its deploy-mode is cluster, .* submit the work of a group \(LakeConfig\(submit=",
        ),
        (replace(CONNECT, host=""), "has no host; write the address of Spark"),
        (LAKE, "name one of type spark_connect or spark"),
    ],
)
def test_a_connection_that_names_no_spark_is_refused(row: Row, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        spark_address(row)


def test_a_size_that_no_store_holds_and_an_extra_nested_too_deep_are_refused_in_one_line() -> None:
    with pytest.raises(InvalidInput, match="field 'in_task_mib': must be a whole number of MiB"):
        lake_address(with_extra(LAKE, in_task_mib="9" * 5_000))
    with pytest.raises(InvalidInput, match="must be a JSON object"):
        lake_address(replace(LAKE, extra='{"a":' * 100_000))


@pytest.mark.parametrize(("said", "is_on"), [("TRUE", True), ("true", True), ("false", False), ("", False)])
def test_tls_is_on_however_true_is_written(said: str, is_on: bool) -> None:
    assert ("use_ssl=true" in spark_address(with_extra(CONNECT, use_ssl=said)).remote) is is_on


@pytest.mark.parametrize("said", ["yes", 1, "1", 0])
def test_what_is_neither_true_nor_false_does_not_turn_tls_off(said: object) -> None:
    with pytest.raises(InvalidInput, match="field 'use_ssl': must be true or false"):
        spark_address(with_extra(CONNECT, use_ssl=said))


def test_a_lake_may_be_named_twice_in_one_way() -> None:
    assert lake_address(with_extra(LAKE, uri=f"{LAKE.host}/")).uri == lake_address(LAKE).uri


@pytest.mark.parametrize(
    ("row", "remote"),
    [
        (
            Row(conn_type="spark_connect", host="sc://spark:15002/;use_ssl=true"),
            "sc://spark:15002/;use_ssl=true",
        ),
        (Row(conn_type="spark_connect", host="sc://spark:15002;a=b/"), "sc://spark:15002/;a=b"),
        (replace(CONNECT, host=" sc://spark/;a=b ", password="t"), "sc://spark:15002/;a=b;token=t"),
        (replace(CONNECT, host="spark/"), "sc://spark:15002/"),
        (replace(CONNECT, schema=";use_ssl=true;a=b"), "sc://spark:15002/;use_ssl=true;a=b"),
    ],
)
def test_a_host_of_spark_connect_may_have_parameters(row: Row, remote: str) -> None:
    assert spark_address(row).remote == remote


@pytest.mark.parametrize(
    "host", ["spark/x", "spark/;a", "spark/;=b", "spark/;a=b;a=c", "/;a=b", "spark/x;a=b"]
)
def test_a_host_of_spark_connect_that_is_no_host_is_refused_without_its_parameters(host: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        spark_address(Row(conn_type="spark_connect", host=host.replace("b", "hush")))
    assert "hush" not in str(refused.value)


def test_a_token_in_the_host_and_in_a_field_is_refused() -> None:
    with pytest.raises(InvalidInput, match="says token twice"):
        spark_address(replace(CONNECT, host="spark/;token=a", password="b"))


@pytest.mark.parametrize("blank", [" ", "\t", "\n"])
def test_blanks_around_the_host_of_a_lake_do_not_count(blank: str) -> None:
    assert lake_address(replace(LAKE, host=f"{blank}s3://bucket/lake{blank}")).uri == "s3://bucket/lake"
    assert lake_address(with_extra(Row(host=blank), uri=f"{blank}/my lake{blank}")).uri == "/my lake"


KAFKA = Row(conn_type="kafka")


def test_a_connection_of_kafka_has_settings_for_the_brokers_that_it_names() -> None:
    assert lake_address(with_extra(LAKE, kafka_conn_id="k")).kafka == "k"
    extra = {
        "bootstrap.servers": "a:1,b:2",
        "sasl.password": "hush",
        "enable.x": True,
        "socket.timeout.ms": 9,
    }
    assert kafka_clients(with_extra(KAFKA, **extra)) == {
        "a:1,b:2": {"sasl.password": "hush", "enable.x": "true", "socket.timeout.ms": "9"}
    }


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (KAFKA, "names no brokers"),
        (with_extra(KAFKA, **{"bootstrap.servers": 5, "sasl.password": "hush"}), "names no brokers"),
        (with_extra(AWS, **{"bootstrap.servers": "a:1"}), "is of type 'aws'; name one of type kafka"),
        (replace(KAFKA, extra="{hush"), "must be a JSON object"),
    ],
)
def test_a_connection_of_kafka_that_names_no_brokers_is_refused(row: Row, why: str) -> None:
    with pytest.raises(InvalidInput, match=why) as refused:
        kafka_clients(row)
    assert "hush" not in str(refused.value)
