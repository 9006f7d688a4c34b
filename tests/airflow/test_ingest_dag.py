"""The ingest agent on a real Airflow and a real Spark: what has landed is taken in, each file once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from local.processes import left_of
from log_lake.loading.sources import find_files
from tests.airflow.conftest import DAG, SCHEDULED, Agent, Place
from tests.support.spark.processes import await_true

pytestmark = pytest.mark.airflow

SECRET = "only-in-the-records"
NOTHING = dict.fromkeys(
    ("batches", "records", "objects", "nokey", "rejected", "retyped", "repeated", "parked", "late"), 0
)
"""What a run reports that found nothing to do."""


def records(*keys: int) -> list[dict[str, Any]]:
    return [{"k": k, "text": SECRET} for k in keys]


def test_airflow_has_read_the_dags(agent: Agent) -> None:
    assert agent.services.api.import_errors() == {}
    agent.services.api.wait_for_dag(DAG)  # raises if Airflow does not have it


def test_a_scheduled_run_takes_in_what_has_landed_for_every_pool(agent: Agent) -> None:
    assert agent.wait(agent.scheduled_run()) == "success"
    assert Place(agent.lake, SCHEDULED, agent.folder / SCHEDULED).keys == [1, 2]


def test_each_file_is_taken_in_once_and_recorded_as_it_was(agent: Agent) -> None:
    place = agent.place("batches", {"ingest.batch_files": "2"})
    other = agent.place("not_asked_for")
    other.land("a.ndjson", records(1))
    for i in range(5):
        place.land(f"{i}.ndjson", records(9 - i, i))
    landed = [file.source for file in find_files([str(place.folder)])]

    first = agent.run(place)
    assert [task["state"] for task in agent.tasks(first, "run")] == ["success"] * 3
    assert place.keys == list(range(10))
    assert sorted(len(taken) for taken in place.taken) == [1, 2, 2], "a transaction for each batch"
    assert sorted((source for taken in place.taken for source in taken), key=lambda s: s.uri) == landed
    assert all(source.uri and source.size and source.etag for source in landed)
    assert other.keys == []

    again = agent.run(place)
    assert agent.result(again) == NOTHING
    assert len(place.log) == 3

    late = place.land("0-late.ndjson", records(-1))
    third = agent.run(place)
    assert agent.result(third)["records"] == 1
    assert [source.uri for source in place.taken[-1]] == [late]
    assert place.keys == list(range(-1, 10))

    for run in (first, third):
        assert SECRET not in everything_passed(agent, run), "records do not go through XCom"


def everything_passed(agent: Agent, run: str) -> str:
    """All XComs of the run, as text."""
    api = agent.services.api
    passed = []
    for task in ("find", "run", "report"):
        path = f"dags/{DAG}/dagRuns/{run}/taskInstances/{task}/xcomEntries"
        for instance in agent.tasks(run, task):
            for entry in api.get(path, map_index=instance["map_index"])["xcom_entries"]:
                found = api.xcom(DAG, run, task, key=entry["key"], map_index=instance["map_index"])
                passed.append(json.dumps(found))
    assert len(passed) >= 3
    return "\n".join(passed)


def test_a_dry_run_from_the_command_line_says_what_it_would_do_and_does_nothing(agent: Agent) -> None:
    place = agent.place("dry")
    place.land("a.ndjson", records(1))
    conf = json.dumps({"pools": [place.pool], "dry_run": True})
    agent.services.airflow(["dags", "trigger", DAG, "--run-id", "by-hand", "--conf", conf])
    assert agent.wait("by-hand") == "success"
    said = agent.services.api.log(DAG, "by-hand", "find")
    assert "dry: 1 new file, " in said
    assert "dry run: nothing is ingested" in said
    assert [task["state"] for task in agent.tasks("by-hand", "run")] == ["skipped"]
    assert (place.log, place.data) == ([], [])


def test_a_batch_waits_for_its_age_unless_it_is_asked_not_to(agent: Agent) -> None:
    place = agent.place("patient", {"ingest.batch_age": "1d"})
    place.land("a.ndjson", records(1))
    assert agent.result(agent.run(place))["batches"] == 0
    assert agent.result(agent.run(place, wait=False))["records"] == 1
    assert place.keys == [1]


def test_a_bad_file_is_parked_and_said_once_and_holds_nothing_back(agent: Agent) -> None:
    place = agent.place("bad")
    place.land("a.ndjson", records(1))
    bad = place.land("b.ndjson", b'{"k": 2}\noops\n')
    run = agent.trigger(place)
    assert agent.wait(run) == "failed"
    assert [task["state"] for task in agent.tasks(run, "run")] == ["success"]
    (report,) = agent.tasks(run, "report")
    assert (report["state"], report["try_number"]) == ("failed", 1), "trying again cannot help"
    said = agent.services.api.log(DAG, run, "report")
    assert f"bad: parked {bad}: line 2" in said
    assert "bad: version 1, 1 record in 1 object" in said
    assert place.keys == [1]

    later = agent.run(place)
    assert agent.result(later) == NOTHING | {"parked": 1}
    assert f"(lake parked bad): {bad}" in agent.services.api.log(DAG, later, "report")

    place.land("b.ndjson", records(2))
    assert agent.result(agent.run(place)) == NOTHING | {"batches": 1, "records": 1, "objects": 1}
    assert place.keys == [1, 2]


@pytest.mark.parametrize("conf", [{"pols": ["mistyped"]}, {"pools": ["mistyped"], "dryrun": True}])
def test_a_mistyped_parameter_is_refused_and_nothing_is_done(agent: Agent, conf: dict[str, Any]) -> None:
    name = "mistyped_" + next(iter(set(conf) - {"pools"}))
    place = agent.place(name)
    place.land("a.ndjson", records(1))
    conf = {key: [name] if isinstance(value, list) else value for key, value in conf.items()}
    run = agent.services.api.trigger(DAG, conf=conf)
    assert agent.wait(run) == "failed"
    (find,) = agent.tasks(run, "find")
    assert (find["state"], find["try_number"]) == ("failed", 1)
    assert "did you mean" in everything_logged(agent, run, "find")
    assert "the task `find` failed, so nothing was done" in everything_logged(agent, run, "report")
    assert place.log == []


def everything_logged(agent: Agent, run: str, task: str) -> str:
    """The log of a task's first try as JSON: of an exception it holds more than the event."""
    path = f"dags/{DAG}/dagRuns/{run}/taskInstances/{task}/logs/1"
    return json.dumps(agent.services.api.get(path, map_index=-1, full_content=True))


def test_runs_share_a_spark_session_so_that_a_server_left_running_does_not_grow(agent: Agent) -> None:
    """Each session of its own would leave its Python processes until the server stops."""
    place = agent.place("again")
    daemons = []
    for i in range(2):
        place.land(f"{i}.ndjson", records(i))
        agent.run(place)
        daemons.append(len(agent.spark_daemons()))
    assert place.keys == [0, 1]
    assert daemons[0] == daemons[1] > 0


def test_a_task_killed_while_spark_works_is_tried_again_and_ends_with_every_record_once(agent: Agent) -> None:
    place = agent.place("killed", {"load.memory": "200kB", "load.sort": "parts"})
    files, each = 20, 5_000  # of a megabyte, and an object, each
    for i in range(files):
        lines = (b'{"k": %d, "text": "%0200d"}' % (n * files + i, n) for n in range(each))
        place.land(f"{i:02}.ndjson", b"\n".join(lines) + b"\n")
    run = agent.trigger(place)
    process = await_true(
        lambda: next(filter(None, map(agent.task_process, agent.tasks(run, "run"))), None),
        seconds=600,
        what="the task has a process",
    )
    await_true(lambda: place.data, seconds=600, what="Spark has written an object")
    process.kill()
    left_of([process], seconds=600)
    assert place.log == [], "it was killed before it could commit"
    assert agent.wait(run) == "success"
    (task,) = agent.tasks(run, "run")
    assert (task["state"], task["try_number"]) == ("success", 2)
    assert place.keys == list(range(files * each))
    assert len(place.log) == 1
    assert agent.result(agent.run(place))["batches"] == 0
