"""The provider in an Airflow: its connection type, what the form shows, and lakes that connections name.

Airflow finds the provider by its entry point, so the wheel is built, and stands before the project on the path.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local import java
from log_lake.lake import Lake
from log_lake.stores import open_store
from tests.support.repository import ROOT
from tests.support.servers.s3 import BUCKET, make_bucket, moto, s3_client
from tests.support.wheel import build

pytestmark = pytest.mark.airflow

Ask = Callable[..., Any]

FORM = """
import sys
from airflow.api_fastapi.core_api.services.ui.connections import HookMetaService
(lake,) = [meta for meta in HookMetaService.hook_meta_data() if meta.connection_type == "lake"]
answer = lake.model_dump(mode="json", by_alias=False)
answer["imported"] = sorted(name for name in sys.modules if name.startswith(("airflow_lake.hooks", "pyarrow")))
"""
"""What the form of a connection is made of."""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the wheel puts into site-packages."""
    folder = tmp_path_factory.mktemp("wheel")
    with zipfile.ZipFile(build(ROOT, folder).wheel) as files:
        files.extractall(folder / "packages")
    return folder / "packages"


@pytest.fixture
def ask(packages: Path, tmp_path: Path) -> Ask:
    """What a program says that runs where Airflow has the wheel: the value of `answer` at its end."""

    def ask(program: str, **environ: str) -> Any:
        clean = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("AIRFLOW", "LAKE", "AWS"))
        }
        done = subprocess.run(
            [sys.executable, "-c", f"{program}\nimport json\nprint('ANSWER ' + json.dumps(answer))"],
            env={
                **clean,
                "PYTHONPATH": str(packages),
                "HOME": str(tmp_path),
                "AIRFLOW_HOME": str(tmp_path / "airflow"),
                "AWS_EC2_METADATA_DISABLED": "true",
                **environ,
            },
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        lines = [line for line in done.stdout.splitlines() if line.startswith("ANSWER ")]
        assert lines, done.stderr
        return json.loads(lines[-1].removeprefix("ANSWER "))

    return ask


def connection(**values: Any) -> str:
    """The value of a variable AIRFLOW_CONN_..."""
    return json.dumps(values)


def test_airflow_knows_the_provider_and_shows_its_form_without_importing_a_hook(ask: Ask) -> None:
    form = ask(FORM)
    standard, extra = form["standard_fields"], form["extra_fields"]
    assert form["hook_name"] == "Log lake"
    assert standard["host"]["title"] == "Lake"
    assert standard["host"]["placeholder"].startswith("s3://bucket/prefix")
    assert [name for name, field in standard.items() if field and field["hidden"]] == [
        "url_schema",
        "port",
        "login",
        "password",
    ]
    assert {name: field["schema"]["title"] for name, field in extra.items()} == {
        "credentials_conn_id": "Credentials",
        "spark_conn_id": "Spark",
        "kafka_conn_id": "Kafka",
        "in_task_mib": "Without Spark up to (MiB)",
        "options": "Options of the store",
    }
    assert form["imported"] == []


PLUGINS = """
import sys
from airflow import plugins_manager
shown = [(p["name"], str(p["source"])) for p in plugins_manager.get_plugin_info(["source", "fastapi_apps"])]
engine = ("lake_core", "log_lake", "pyarrow", "duckdb")
heavy = sorted(name for name in sys.modules if name.partition(".")[0] in engine)
answer = [shown, plugins_manager.get_import_errors(), heavy]
"""


@pytest.mark.parametrize("folder", ["", str(ROOT / "plugins")])
def test_an_airflow_with_the_package_has_the_web_view_once_also_beside_the_plugins_folder(
    ask: Ask, folder: str, tmp_path: Path
) -> None:
    """Without the wheel on the path: the environment has the project's entry points already."""
    settings = {"AIRFLOW__CORE__LOAD_EXAMPLES": "False", "PYTHONPATH": ""}
    shown, errors, heavy = ask(
        PLUGINS, AIRFLOW__CORE__PLUGINS_FOLDER=folder or str(tmp_path / "none"), **settings
    )
    assert [name for name, _ in shown] == ["lake_view"]
    assert "airflow_lake.view.plugin:LakeView" in shown[0][1], "by the entry point"
    assert errors == {}
    assert heavy == [], "every process of Airflow loads plugins"


HOOK = """
from airflow_lake.hooks.lake import LakeHook
from airflow.sdk import BaseHook
"""


def test_several_lakes_are_connections_and_a_test_of_one_says_what_it_finds(ask: Ask, tmp_path: Path) -> None:
    one, two = Lake.create(str(tmp_path / "one")), Lake.create(str(tmp_path / "two"))
    two.create_pool("p", key="k")
    answer = ask(
        HOOK + "answer = [LakeHook(n).get_lake().id for n in ('one', 'two')]\n"
        "answer += [BaseHook.get_hook(n).test_connection() for n in ('one', 'two', 'none', 'sparkless')]",
        AIRFLOW_CONN_ONE=connection(conn_type="lake", host=one.store.uri),
        AIRFLOW_CONN_TWO=connection(conn_type="lake", extra={"uri": str(tmp_path / "two")}),
        AIRFLOW_CONN_NONE=connection(conn_type="lake", host=str(tmp_path / "none")),
        AIRFLOW_CONN_SPARKLESS=connection(
            conn_type="lake", host=one.store.uri, extra={"spark_conn_id": "nope"}
        ),
    )
    assert answer[:2] == [one.id, two.id]
    assert answer[2][0] is True
    assert answer[3] == [True, f"{two.store.uri}: the lake {two.id} has 1 pool"]
    assert answer[4][0] is False
    assert "there is no lake; make one with: lake init" in answer[4][1]
    assert answer[5][0] is False
    assert answer[5][1].startswith("no connection 'nope' in Airflow; make one of type spark_connect")


def test_a_connection_that_is_missing_is_one_line_that_says_how_to_make_it(ask: Ask) -> None:
    answer = ask(
        HOOK + "from lake_core.errors import InvalidInput\n"
        "try:\n    LakeHook('absent').get_lake()\nexcept InvalidInput as error:\n    answer = str(error)",
        AIRFLOW__DATABASE__SQL_ALCHEMY_CONN="sqlite:////dev/null/none",
    )
    assert answer.startswith("no connection 'absent' in Airflow; make one of type lake")
    assert answer.endswith("or name the lake by its URI (in LAKE, or as the parameter `lake`)")


@pytest.mark.parametrize("value", ["lake://[hush", '{"conn_type": "lake", "password": "hush"'])
def test_a_variable_that_airflow_cannot_read_is_not_called_a_missing_connection(ask: Ask, value: str) -> None:
    answer = ask(
        HOOK + "from lake_core.errors import InvalidInput\n"
        "try:\n    LakeHook('mine').get_lake()\nexcept InvalidInput as error:\n    answer = str(error)",
        AIRFLOW__DATABASE__SQL_ALCHEMY_CONN="sqlite:////dev/null/none",
        AIRFLOW_CONN_MINE=value,
    )
    assert answer == (
        "connection 'mine': Airflow cannot read the variable AIRFLOW_CONN_MINE; write a URI, or JSON such as "
        '{"conn_type": "lake", "host": "..."}'
    )


def test_credentials_come_from_the_usual_connection_and_go_with_the_store(ask: Ask) -> None:
    with moto() as server:
        options = s3_client(server)
        make_bucket(options)
        lake = Lake.create_on(open_store(f"s3://{BUCKET}/lake", options))
        lake.create_pool("p", key="k")
        answer = ask(
            HOOK + "from lake_core.store import address_of\n"
            "lake = LakeHook().get_lake()\n"
            "answer = [lake.id, [p.name for p in lake.pools()], sorted(address_of(lake.store).options),"
            " LakeHook('bare').test_connection()]",
            AIRFLOW_CONN_LAKE_DEFAULT=connection(
                conn_type="lake", host=f"s3://{BUCKET}/lake", extra={"credentials_conn_id": "aws_default"}
            ),
            AIRFLOW_CONN_AWS_DEFAULT=connection(
                conn_type="aws",
                login="test",
                password="test",
                extra={"endpoint_url": server, "region_name": "us-east-1"},
            ),
            AIRFLOW_CONN_BARE=connection(conn_type="lake", host=f"s3://{BUCKET}/lake"),
        )
    assert answer[:3] == [lake.id, ["p"], ["client_kwargs", "key", "secret"]]
    refused, why = answer[3]
    assert refused is False
    assert "no credentials for S3" in why


SPARK = """
from airflow_lake.reach import open_spark
from lake_core.errors import Unavailable
with open_spark("here")("a test") as session:
    answer = [session.range(3).count(), session.sparkContext.master]
try:
    with open_spark("here", "remote")("a test"):
        pass
except Unavailable as error:
    answer.append(str(error))
"""


def test_spark_is_that_of_the_lakes_connection_or_of_the_one_that_a_task_names(
    ask: Ask, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    known, master, refused = ask(
        SPARK,
        AIRFLOW_CONN_HERE=connection(
            conn_type="lake", host=str(tmp_path / "lake"), extra={"spark_conn_id": "local"}
        ),
        AIRFLOW_CONN_LOCAL=connection(conn_type="spark", host="local[1]"),
        AIRFLOW_CONN_REMOTE=connection(
            conn_type="spark_connect", host="sc://127.0.0.1", port=port, password="hush"
        ),
        JAVA_HOME=str(java.provide(os.environ).home),
        SPARK_LOCAL_IP="127.0.0.1",
        LAKE_SPARK_REMOTE="sc://nobody-asks.invalid:1",
    )
    assert (known, master) == (3, "local[1]"), "the variable does not count where a connection is named"
    assert refused.startswith(f"no Spark at sc://127.0.0.1:{port} (connection 'remote'): ")
    assert "hush" not in refused
