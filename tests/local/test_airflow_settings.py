"""SQLite below Airflow: a process that writes in a savepoint is not refused because another wrote meanwhile."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from local.airflow_service import OWN_SETTINGS

# What Airflow does to make a run of a backfill, with another process that writes in between.
PROGRAM = """
import sys
import sqlalchemy
{hook}

def connect(seconds):
    engine = sqlalchemy.create_engine(f"sqlite:///{{sys.argv[1]}}", connect_args={{"timeout": seconds}})
    return engine.connect()

text = sqlalchemy.text
with connect(0) as one:
    one.exec_driver_sql("PRAGMA journal_mode=WAL")
    one.execute(text("CREATE TABLE run (id)"))
    one.commit()
with connect(0) as one, connect(0) as other:
    nested = one.begin_nested()
    one.execute(text("SELECT count(*) FROM run")).scalar()
    try:
        other.execute(text("INSERT INTO run VALUES (1)"))
        other.commit()
        print("the other wrote first")
    except sqlalchemy.exc.OperationalError as problem:
        other.rollback()
        print("the other has to wait")
    one.execute(text("INSERT INTO run VALUES (2)"))
    nested.commit()
    one.commit()
    other.execute(text("INSERT INTO run VALUES (3)"))
    other.commit()
    print(one.execute(text("SELECT count(*) FROM run")).scalar())
"""


def run(folder: Path, *, hook: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(hook=hook), str(folder / "airflow.db")],
        env={"PYTHONPATH": str(OWN_SETTINGS)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_with_our_settings_the_other_waits(tmp_path: Path) -> None:
    done = run(tmp_path, hook="import airflow_local_settings")
    assert (done.returncode, done.stdout.splitlines()) == (0, ["the other has to wait", "2"]), done.stderr


def test_without_the_settings_sqlite_says_that_it_is_locked(tmp_path: Path) -> None:
    """What the settings are for; if this fails one day, they are not needed any more."""
    done = run(tmp_path, hook="")
    assert done.returncode == 1
    assert "database is locked" in done.stderr
