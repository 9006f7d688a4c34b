"""The demo begins anew: nothing of an earlier one has a part in it, and nothing of anybody else's is removed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from local import demo
from local.errors import LocalError
from tests.support.repository import ROOT


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """What a demo that failed left: Airflow's database with its runs, the lake, the logs."""
    folder = tmp_path / "demo"
    for name in ("airflow/airflow.db", "kept/lake/lake.json", "airflow.log"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_airflows_database_and_the_lake_of_an_earlier_demo_are_forgotten(run_dir: Path) -> None:
    demo.forget(run_dir)
    assert files(run_dir) == {"airflow.log"}


def test_beside_another_demo_of_the_same_folder_it_says_so_and_touches_nothing(run_dir: Path) -> None:
    with demo.alone(run_dir):
        before = files(run_dir)
        done = subprocess.run(
            [sys.executable, "-m", "local.demo", "--run-dir", str(run_dir)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"demo: another demo is running in {run_dir}: wait for its end, or stop it\n"
    assert files(run_dir) == before


def test_a_folder_that_is_not_a_demos_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "airflow").mkdir()
    (tmp_path / "airflow" / "airflow.db").touch()
    with (
        pytest.raises(LocalError, match="holds files of others, and the demo would remove them"),
        demo.alone(tmp_path),
    ):
        pass
    assert files(tmp_path) == {"airflow/airflow.db"}


def test_an_empty_folder_and_one_of_an_earlier_demo_are_used(tmp_path: Path, run_dir: Path) -> None:
    for folder in (tmp_path / "new", run_dir):
        for _ in range(2):
            with demo.alone(folder):
                assert (folder / "demo.lock").exists()


@pytest.mark.parametrize("key", ["ts", "time,ts"])
def test_a_wrong_key_is_refused_at_once_with_the_fields_of_the_file(tmp_path: Path, key: str) -> None:
    (tmp_path / "a.ndjson").write_text('{"time": 1, "level": "info"}\n')
    earlier = tmp_path / "demo" / demo.KEPT / "lake"
    earlier.mkdir(parents=True)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "local.demo", "--run-dir", str(tmp_path / "demo")),
            *("--data", str(tmp_path / "*.ndjson"), "--key", key),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"demo: KEY={key}: the first records of {tmp_path}/a.ndjson have no field 'ts'; their fields are time, "
        "level; name one of these\n"
    )
    assert not (tmp_path / "demo" / "airflow").exists(), "nothing was started"
    assert earlier.exists(), "what an earlier demo left stays"
