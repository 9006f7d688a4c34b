"""A batch of the ingest agent on Spark: bad files are parked, and the good ones are ingested all the same."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from log_lake.agents.ingest import parking
from log_lake.agents.ingest.sources import look
from spark_apps.session import spark_session
from tests.spark.conftest import Landing
from tests.support.agents import finder
from tests.support.agents import run as run_batch

find = finder("ingest")

pytestmark = pytest.mark.spark

Run = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def run(spark: Any, landing: Landing) -> Run:
    """A run of the agent's first two tasks, in the session of the tests; what each batch came to."""

    def tasks() -> list[dict[str, Any]]:
        found = find({"lake": landing.uri, "wait": False})
        batches = [work for work in found if not work.get("put_off")]  # parked files are for the report
        return [run_batch("ingest", batch, open_spark=spark_session) for batch in batches]

    return tasks


def make(landing: Landing, **settings: str) -> None:
    landing.lake.create_pool("p", key="k", settings={"ingest.source": str(landing.folder)} | settings)


def parked(landing: Landing) -> list[str]:
    return [os.path.basename(one.file) for one in parking.parked_files(landing.lake.pool("p"))]


def test_bad_files_are_parked_and_the_good_ones_are_one_transaction(landing: Landing, run: Run) -> None:
    make(landing)
    for i in range(6):
        landing.file(f"good{i}.ndjson", [{"k": i}])
    bad = landing.file("bad.ndjson", '{"k": 10}\noops\n')
    worse = landing.file("worse.parquet", b"PAR1 but not really")
    (done,) = run()
    assert (done["records"], landing.transactions("p"), landing.keys("p")) == (6, 1, [0, 1, 2, 3, 4, 5])
    assert [file for file, _ in done["parked"]] == [bad, worse]
    assert done["parked"][0][1].startswith("line 2")
    assert parked(landing) == ["bad.ndjson", "worse.parquet"]
    assert run() == [], "what is parked is not tried again"

    landing.file("bad.ndjson", [{"k": 10}])
    (again,) = run()
    assert (again["records"], again["parked"]) == (1, [])
    assert landing.keys("p") == [0, 1, 2, 3, 4, 5, 10]
    assert parked(landing) == ["worse.parquet"]


def test_a_batch_of_bad_files_commits_nothing(landing: Landing, run: Run) -> None:
    make(landing)
    landing.file("a.ndjson", "oops\n")
    landing.file("b.ndjson", "oops\n")
    (done,) = run()
    assert (done["version"], len(done["parked"]), landing.transactions("p")) == (None, 2, 0)
    assert run() == []


def test_files_that_only_together_cannot_be_loaded_are_committed_one_after_another(
    landing: Landing, run: Run
) -> None:
    make(landing)
    landing.file("a.ndjson", [{"k": 1}])
    landing.file("b.ndjson", [{"k": "one"}])
    landing.file("c.ndjson", [{"k": 2}])
    (done,) = run()
    assert (done["records"], landing.keys("p"), parked(landing)) == (2, [1, 2], ["b.ndjson"])


def test_a_file_that_changes_while_it_is_read_waits_and_the_others_are_ingested(
    landing: Landing, run: Run
) -> None:
    make(landing)
    landing.file("a.ndjson", [{"k": 1}])
    grows = landing.file("b.ndjson", [{"k": 2}])
    gone = landing.file("c.ndjson", [{"k": 3}])
    (batch,) = find({"lake": landing.uri, "wait": False})
    landing.file("b.ndjson", [{"k": 2}, {"k": 22}])
    os.unlink(gone)
    done = run_batch("ingest", batch, open_spark=spark_session)
    assert (done["records"], done["parked"], landing.keys("p")) == (1, [], [1])
    assert [file.uri for file in look(landing.lake.pool("p")).waiting] == [grows]
    assert [one["records"] for one in run()] == [2]


def test_killed_between_the_commit_and_the_note_a_batch_ends_the_same(
    landing: Landing, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(landing)
    landing.file("a.ndjson", [{"k": 1}])
    landing.file("b.ndjson", "oops\n")
    landing.file("c.ndjson", [{"k": 3}])
    (batch,) = find({"lake": landing.uri, "wait": False})

    class Killed(BaseException):
        pass

    def killed(*_: Any, **__: Any) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(parking, "park", killed)
        with pytest.raises(Killed):
            run_batch("ingest", batch, open_spark=spark_session)
    assert (landing.keys("p"), parked(landing)) == ([1, 3], [])
    done = run_batch("ingest", batch, open_spark=spark_session)
    assert (done["repeated"], done["records"], landing.transactions("p")) == (True, 2, 1)
    assert parked(landing) == ["b.ndjson"]
