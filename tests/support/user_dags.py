"""Runs DAGs that are written as users write them, by `dag.test()`, in an Airflow with a process, a home and a
database of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SECONDS = 1_500
"""The most seconds of a command; on a machine with a load of 80 some runs took more than ten minutes."""
RUN = """
import datetime as dt, json, sys
import dags
for name, date, conf, same_run in json.loads(sys.argv[1]):
    date = dt.datetime.fromisoformat(date)
    run = getattr(dags, name).test(run_after=date if same_run else None, logical_date=date, run_conf=conf)
    tasks = {f"{ti.task_id}[{ti.map_index}]": str(ti.state) for ti in run.get_task_instances()}
    print("RUN " + json.dumps([str(run.state), tasks]))
"""


@dataclass(frozen=True)
class Run:
    """The state of a run, and those of its tasks, by id and map index."""

    state: str
    tasks: dict[str, str]


def run_dags(
    folder: Path,
    text: str,
    runs: Sequence[tuple[str, Mapping[str, object]]],
    *,
    date: str = "2026-01-05T00:00:00+00:00",
    environ: Mapping[str, str] | None = None,
    same_run: bool = False,
) -> tuple[list[Run], str]:
    """Runs DAGs of a file for a logical date; each of `runs` is the name of a DAG and its conf. Returns the runs,
    and all that was printed.

    With `same_run`, the runs of one DAG have one id, like a run that is cleared and runs again.

    The connection `lake_default` is the lake in `folder`; small work needs no Spark there.
    """
    (folder / "dags.py").write_text(text.replace("FOLDER", str(folder)))
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "LAKE"))}
    connection = {"conn_type": "lake", "host": str(folder / "lake"), "extra": {"in_task_mib": 64}}
    env = {
        **clean,
        "AIRFLOW_HOME": str(folder / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(folder),
        "AIRFLOW_CONN_LAKE_DEFAULT": json.dumps(connection),
        **(environ or {}),
    }
    asked = json.dumps([(name, date, conf, same_run) for name, conf in runs])
    for words in (["-m", "airflow", "db", "migrate"], ["-c", RUN, asked]):
        done = subprocess.run(
            [sys.executable, *words],
            cwd=folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-5000:]
    read = json.JSONDecoder().raw_decode  # what another thread logs may come between a line and its end
    lines = [read(line[4:])[0] for line in done.stdout.splitlines() if line.startswith("RUN ")]
    return [Run(state, tasks) for state, tasks in lines], done.stdout + done.stderr
