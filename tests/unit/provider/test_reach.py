"""Which lake a task works on, by its name, and how long a session of Spark lives."""

from __future__ import annotations

import pytest

from airflow_lake.reach import lake_name, open_lake
from log_lake.lake import Lake
from log_lake.view.addresses import is_uri


@pytest.mark.parametrize(
    ("name", "uri"),
    [
        ("s3://bucket/lake", True),
        ("/data/lake", True),
        ("./lake", True),
        ("memory://lake", True),
        ("lake_default", False),
        ("team-a.lake", False),
    ],
)
def test_an_id_of_a_connection_has_no_slash_and_no_colon(name: str, uri: bool) -> None:
    assert is_uri(name) is uri


def test_the_first_name_counts_then_the_variable_then_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE", "/variable")
    assert lake_name("/run", "group") == "/run"
    assert lake_name("", None, "group") == "group"
    assert lake_name("", None) == "/variable"
    monkeypatch.delenv("LAKE")
    assert lake_name("") == "lake_default"


def test_a_task_says_once_that_the_variable_names_its_lake(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("LAKE", "/said/once")
    with caplog.at_level("INFO", logger="airflow_lake"):
        assert {lake_name(""), lake_name(None), lake_name("mine")} == {"/said/once", "mine"}
    assert caplog.messages == [
        "no lake is named: the variable LAKE says /said/once; the connection lake_default is not read"
    ]


def test_a_uri_opens_without_airflow(tmp_path: object) -> None:
    lake = Lake.create(f"{tmp_path}/lake")
    assert open_lake(f"{tmp_path}/lake").id == lake.id
