"""docs/airflow-quickstart.md, on an Airflow that was there before in an environment of its own, from the wheel.

With LAKE_TEST_QUICKSTART=1, as in CI.  The environment has Airflow and its Spark provider, which brings only the
client of Spark, before the wheel comes: as a company has it.  Packages come from the registry that uv asks, or
from its cache.  The steps and the DAG are those of the page; a run of the DAG loads, compacts and expires.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import subprocess
import sys
import textwrap
from importlib.metadata import version
from pathlib import Path

import pytest

from local import java
from tests.support.repository import ROOT
from tests.support.wheel import Built, Environment

pytestmark = [pytest.mark.slow, pytest.mark.airflow, pytest.mark.spark, pytest.mark.timeout(900)]

PAGE = (ROOT / "docs/airflow-quickstart.md").read_text()
PROVIDER = "apache-airflow-providers-apache-spark"
INSTALL_SECONDS = 600
FILES, RECORDS = 2, 100


def block(language: str) -> str:
    """The page's block of code in a language; there is one."""
    (code,) = re.findall(rf"^ *```{language}\n(.*?)^ *```", PAGE, re.MULTILINE | re.DOTALL)
    return textwrap.dedent(code)


@pytest.fixture(scope="module")
def company(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with Airflow and its Spark provider, into which the wheel was installed afterwards."""
    if os.environ.get("LAKE_TEST_QUICKSTART") != "1":
        pytest.skip("installs Airflow anew: LAKE_TEST_QUICKSTART=1")
    folder = tmp_path_factory.mktemp("company")
    python = folder / "env" / "bin" / "python"
    uv = str(Path(sys.executable).with_name("uv"))
    into = ["pip", "install", "--python", str(python)]
    for words in (
        ["venv", "--python", sys.executable, str(folder / "env")],
        [*into, f"apache-airflow=={version('apache-airflow')}", PROVIDER],
        [*into, f"{built.wheel}[airflow]"],
    ):
        done = subprocess.run(
            [uv, *words], capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
        )
        assert done.returncode == 0, done.stderr
    return Environment(python, folder)


def land(folder: Path) -> None:
    """Files as they arrive: half of their records are two months old."""
    now = dt.datetime.now(dt.UTC)
    old = now - dt.timedelta(days=60)
    folder.mkdir()
    for number in range(FILES):
        moments = [old if row % 2 else now for row in range(RECORDS)]
        lines = [json.dumps({"ts": moment.isoformat(), "n": row}) for row, moment in enumerate(moments)]
        Path(folder, f"{number}.ndjson").write_text("\n".join(lines) + "\n")


def test_the_steps_of_the_page_lead_to_a_pool_that_is_loaded_compacted_and_expired(
    company: Environment,
) -> None:
    folder = company.folder
    found = java.find(os.environ)
    assert found is not None, "Spark needs a Java"
    environ = {
        "AIRFLOW_HOME": str(folder / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "JAVA_HOME": str(found.home),
        "LAKE_SPARK_MASTER": "local[2]",
    }
    lake = {"LAKE": str(folder / "lake")}

    def do(*words: str, **more: str) -> str:
        done = company.run("-m", *words, **environ, **more)
        assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
        return done.stdout

    policies = block("yaml").replace("s3://incoming/logs/", f"{folder}/incoming/")
    Path(folder, "pools.yaml").write_text(f"{policies}      ingest.batch_files: 1\n      compact.depth: 1\n")
    land(folder / "incoming")
    do("log_lake.cli.main", "init", **lake)
    do("log_lake.cli.main", "apply", "pools.yaml", **lake)
    do("airflow", "db", "migrate")
    do("airflow", "connections", "add", "lake_default", "--conn-type", "lake", "--conn-host", lake["LAKE"])
    dags = folder / "airflow" / "dags"
    dags.mkdir()
    Path(dags, "logs.py").write_text(block("python"))
    do("airflow", "dags", "test", "logs")
    do("airflow", "dags", "test", "logs_upkeep")

    jobs = [json.loads(line) for line in do("log_lake.cli.main", "jobs", "--json", **lake).splitlines()]
    done = {(job["agent"], job["state"]) for job in jobs}
    assert done >= {("ingest", "done"), ("compact", "done"), ("retention", "done")}, jobs
    assert {state for _, state in done} == {"done"}
    kept = do("log_lake.cli.main", "scan", "logs", **lake).splitlines()
    assert len(kept) == FILES * RECORDS // 2, "what was older than expire.age is gone, the rest is there once"
    shown = json.loads(do("log_lake.cli.main", "show", "logs", "--json", **lake))
    assert shown["depth"] == 1, "the loads were merged"
