"""DAGs of a user (`dags/own.py`) on a real Airflow: operators, assets, the sensor, the watcher, a task group.

Their lake is another than that of the agents: two lakes in one Airflow, one of them a connection.
"""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from local.api import ApiError
from log_lake.erasure.receipt import read_all
from log_lake.lake import Lake
from tests.airflow.conftest import RUN_SECONDS, Agent
from tests.support.spark.processes import await_true

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(900)]

SECONDS = RUN_SECONDS


@pytest.fixture(scope="module")
def own(agent: Agent) -> Lake:
    return Lake.open(agent.services.run_dir.parent.joinpath("own").as_uri())


def write(folder: Path, name: str, *records: dict[str, Any]) -> None:
    (folder / name).write_text("".join(json.dumps(record) + "\n" for record in records))


def let_loose(agent: Agent, *dags: str) -> None:
    for dag in dags:
        agent.services.api.wait_for_dag(dag)
        agent.services.api.set_paused(dag, False)


def parse_again(agent: Agent, dag: str) -> None:
    """Airflow adds and ends watchers of assets when it reads the file of a DAG that is not paused."""
    api = agent.services.api
    token = api.get(f"dags/{dag}")["file_token"]
    api.request("PUT", f"parseDagFile/{token}")


def results(agent: Agent, dag: str, task: str) -> list[Any]:
    """What the task returned in each successful run of the DAG, oldest run first."""
    api = agent.services.api
    runs = [run for run in api.runs(dag) if run["state"] == "success"]
    ordered = sorted(runs, key=lambda run: run["run_after"])
    return [api.xcom(dag, run["dag_run_id"], task) for run in ordered]


def await_results(agent: Agent, dag: str, task: str, count: int) -> list[Any]:
    await_true(
        lambda: len(results(agent, dag, task)) >= count, seconds=SECONDS, what=f"{dag} has run {count} times"
    )
    return results(agent, dag, task)


def load(lake: Lake, pool: str, *keys: int) -> None:
    lake.pool(pool).branch().append(pa.table({"k": list(keys)}))


def test_operators_work_on_the_lake_of_a_connection_and_sign_what_they_commit(
    agent: Agent, own: Lake, tmp_path: Path
) -> None:
    own.create_pool("orders", key="k")
    write(tmp_path, "a.ndjson", {"k": 1, "v": "a"}, {"k": 2, "v": "bad"})
    write(tmp_path, "b.ndjson", {"k": 3, "v": "b"}, {"k": 25, "v": "old"})
    write(tmp_path, "c.ndjson", {"k": 21, "v": "new"})
    let_loose(agent, "own_orders_loaded")
    run = agent.run_dag("own_orders", folder=str(tmp_path))
    api = agent.services.api
    rows = api.xcom("own_orders", run, "query")
    assert rows == [{"k": 1, "v": "a"}, {"k": 3, "v": "b"}, {"k": 21, "v": "new"}]
    links = api.get(f"dags/own_orders/dagRuns/{run}/taskInstances/load/links")["extra_links"]
    assert {name: str(link).partition("#")[2] for name, link in links.items()} == {
        "Pool": "geometry/lake_own/orders/1/main",
        "Transaction": "log/lake_own/orders/1/main",
    }
    by_task: dict[str, list[dict[str, str]]] = {}
    for _, transaction in own.pool("orders").log():
        metadata = dict(transaction.metadata)
        assert (metadata["dag"], metadata["run"], metadata["try"]) == ("own_orders", run, "1")
        by_task.setdefault(metadata["task"], []).append(metadata)
    assert list(by_task)[::-1] == ["load", "load_on_spark", "delete", "replace", "compact"]

    def announced() -> set[tuple[str, int]]:
        """The assets and versions of the events that started the DAG that waits for the pool."""
        return {
            (uri, extra["version"])
            for events in results(agent, "own_orders_loaded", "events")
            for uri, extra in events
        }

    uri = "lake://lake_own/orders"
    expected = {
        (uri, 1),
        (uri, 2),
        (uri, 4),
    }  # the loads and the replace; a delete and a compaction have no event
    await_true(lambda: announced() >= expected, seconds=SECONDS, what="the events have started a DAG")
    assert announced() == expected


def test_a_task_that_runs_again_commits_nothing_twice(agent: Agent, own: Lake, tmp_path: Path) -> None:
    (run,) = [run for run in agent.services.api.runs("own_orders") if run["state"] == "success"]
    before = len(list(own.pool("orders").log()))
    api = agent.services.api
    (tmp_path / "a.ndjson").write_text("")
    api.request(
        "POST",
        "dags/own_orders/clearTaskInstances",
        body={
            "dag_run_id": run["dag_run_id"],
            "task_ids": ["load"],
            "dry_run": False,
            "only_failed": False,
            "include_downstream": False,
        },
    )
    assert api.wait("own_orders", run["dag_run_id"], seconds=RUN_SECONDS) == "success"
    again = api.xcom("own_orders", run["dag_run_id"], "load")
    assert (again["version"], again["repeated"]) == (1, True)
    assert len(list(own.pool("orders").log())) == before


def test_a_replace_of_three_days_starts_three_runs(agent: Agent, own: Lake, tmp_path: Path) -> None:
    own.create_pool("days", key="time", settings={"type.time": "timestamp"})
    for day in (1, 2, 3):
        write(tmp_path, f"{day}.ndjson", {"time": f"2026-01-0{day}T12:00:00Z", "n": day})
    let_loose(agent, "own_day")
    agent.run_dag("own_days", folder=str(tmp_path), begin="2026-01-01T00:00:00Z", end="2026-01-04T00:00:00Z")
    await_results(agent, "own_day", "day", 3)
    assert own.pool("days").at().to_table()["n"].to_pylist() == [1, 2, 3]
    later = tmp_path / "later"
    later.mkdir()
    write(later, "4.ndjson", {"time": "2026-01-04T12:00:00Z", "n": 4})
    agent.run_dag("own_days", folder=str(later), begin="2026-01-04T00:00:00Z", end="2026-01-05T00:00:00Z")
    assert sorted(await_results(agent, "own_day", "day", 4)) == FOUR_DAYS
    write(later, "5.ndjson", {"time": "2026-01-05T12:00:00Z", "n": 5})
    day = "2026-01-05T00:00:00"
    for _ in range(2):  # the second commits nothing new, and announces nothing
        agent.run_dag("own_days_loaded", file=str(later / "5.ndjson"), day=day)
    assert sorted(await_results(agent, "own_day", "day", 5)) == [*FOUR_DAYS, day]


FOUR_DAYS = [f"2026-01-0{day}T00:00:00" for day in (1, 2, 3, 4)]
"""Partitions of three days, and of one that was replaced later: if its run is there, no other is to come."""


def assets_with_events(agent: Agent, pool: str) -> list[str]:
    """The assets whose names begin so, and that have events; each once."""
    events = agent.services.api.get("assets/events", limit=1_000)["asset_events"]
    return sorted({event["uri"] for event in events if event["uri"].startswith(f"lake://lake_own/{pool}")})


def test_the_intervals_group_announces_each_partition_though_other_pools_fail_or_are_paused(
    agent: Agent, own: Lake, tmp_path: Path
) -> None:
    settings = {"type.time": "timestamp", "intervals.source": f"{tmp_path}/%Y-%m-%d.ndjson"}
    own.create_pool("visits", key="time", settings=settings)
    own.create_pool("visits_paused", key="time", settings={**settings, "agents": "paused"})
    bad = settings | {"intervals.source": f"{tmp_path}/%Y-%m-%d.bad"}
    own.create_pool("visits_bad", key="time", settings={**bad, "ingest.format": "ndjson"})
    for first, days in ((1, (1, 2, 3)), (4, (4,))):
        times = [{"time": f"2026-01-0{day}T12:00:00Z", "n": day} for day in days]
        write(tmp_path, f"2026-01-0{first}.ndjson", *times)
        (tmp_path / f"2026-01-0{first}.bad").write_text("oops\n")
    let_loose(agent, "own_interval", "own_intervals")
    assert sorted(await_results(agent, "own_interval", "day", 4)) == FOUR_DAYS
    assert own.pool("visits").at().to_table()["n"].to_pylist() == [1, 2, 3, 4]
    api = agent.services.api
    for run in api.runs("own_intervals"):
        assert api.wait("own_intervals", run["dag_run_id"], seconds=SECONDS) == "failed"
        states = {task["task_id"]: task["state"] for task in api.tasks("own_intervals", run["dag_run_id"])}
        assert (states["intervals.report"], states["intervals.announce"]) == ("failed", "success")
    assert assets_with_events(agent, "visits") == ["lake://lake_own/visits"], "the others committed nothing"


def test_what_a_task_committed_before_it_failed_is_announced_once(
    agent: Agent, own: Lake, tmp_path: Path
) -> None:
    own.create_pool("half", key="k", settings={"ingest.source": str(tmp_path), "ingest.batch_age": "0s"})
    write(tmp_path, "a.ndjson", {"k": 1})
    let_loose(agent, "own_half_loaded", "own_half")
    api = agent.services.api
    run = api.trigger("own_half")
    assert api.wait("own_half", run, seconds=RUN_SECONDS) == "failed"
    states = {task["task_id"]: task["state"] for task in api.tasks("own_half", run)}
    assert (states["ingest.run"], states["ingest.announce"]) == ("failed", "success")
    write(tmp_path, "b.ndjson", {"k": 2})
    again = api.trigger("own_half")
    assert api.wait("own_half", again, seconds=RUN_SECONDS) == "failed"

    def announced() -> list[tuple[str, int]]:
        runs = results(agent, "own_half_loaded", "events")
        # Airflow lists the event of an alias twice: under the asset, and under the alias
        return [one for events in runs for one in dict.fromkeys((uri, it["version"]) for uri, it in events)]

    await_true(lambda: len(announced()) >= 2, seconds=SECONDS, what="the events have started a DAG")
    assert announced() == [("lake://lake_own/half", 1), ("lake://lake_own/half", 2)]


def test_a_load_starts_a_compaction_when_the_depth_calls_for_it_and_nothing_otherwise(
    agent: Agent, own: Lake, tmp_path: Path
) -> None:
    own.create_pool("deep", key="k", settings={"compact.depth": "2", "compact.ratio": "100"})
    let_loose(agent, "own_deep_loaded")
    reports = []
    for version in (1, 2, 3):
        write(tmp_path, f"{version}.ndjson", {"k": 1}, {"k": version})
        agent.run_dag("own_deep", file=str(tmp_path / f"{version}.ndjson"))
        reports = await_results(agent, "own_deep_loaded", "compact.report", version)
    assert [one["pools"] for one in reports] == [0, 0, 1]
    assert Lake.open(own.store.uri).pool("deep").at().depth == 2, "three before"
    api = agent.services.api
    runs = sorted(api.runs("own_deep_loaded"), key=lambda run: run["run_after"])
    states = [
        [
            task["state"]
            for task in api.tasks("own_deep_loaded", run["dag_run_id"])
            if "run" in task["task_id"]
        ]
        for run in runs
    ]
    assert states == [["skipped"], ["skipped"], ["success"]]


def test_a_sensor_waits_without_a_worker_until_a_pool_has_a_new_transaction(agent: Agent, own: Lake) -> None:
    own.create_pool("waited", key="k")
    load(own, "waited", 1)
    let_loose(agent, "own_wait")
    api = agent.services.api
    run = api.trigger("own_wait", conf={})

    def state() -> str:
        return {task["task_id"]: task["state"] for task in api.tasks("own_wait", run)}["wait"]

    await_true(lambda: state() == "deferred", seconds=SECONDS, what="the sensor is deferred")
    load(own, "waited", 2)
    assert api.wait("own_wait", run, seconds=SECONDS) == "success"
    event = api.xcom("own_wait", run, "wait")
    assert (event["pool"], event["version"], event["lake"]) == ("waited", 2, "lake_own")
    late = agent.run_dag("own_wait_after", after="1")
    assert api.xcom("own_wait_after", late, "wait")["version"] == 2, (
        "what came after version 1 is there already"
    )


def test_a_commit_from_outside_of_airflow_starts_a_dag_that_watches_the_pool(agent: Agent, own: Lake) -> None:
    own.create_pool("watched", key="k")
    let_loose(agent, "own_watch")
    parse_again(agent, "own_watch")
    api = agent.services.api

    def is_watched() -> bool:
        """The watcher has noted where it begins: it keeps that with the asset."""
        (asset,) = [a for a in api.get("assets")["assets"] if a["uri"] == "lake://lake_own/watched"]
        return bool(api.get(f"assets/{asset['id']}/state-store").get("total_entries"))

    await_true(is_watched, seconds=SECONDS, what="the watcher has begun")
    load(own, "watched", 1)
    (first,) = await_results(agent, "own_watch", "watched", 1)
    assert [extra["payload"]["version"] for extra in first] == [1]
    load(own, "watched", 2)
    load(own, "watched", 3)
    await_true(
        lambda: any(
            extra["payload"]["version"] == 3
            for extras in results(agent, "own_watch", "watched")
            for extra in extras
        ),
        seconds=SECONDS,
        what="the third transaction has started a run",
    )


def test_a_group_in_a_dag_of_ones_own_keeps_the_pools_that_it_is_given(agent: Agent, own: Lake) -> None:
    for name in ("kept_a", "kept_b", "not_kept"):
        own.create_pool(name, key="k", settings={"checkpoint.entries": "3"})
        for n in range(12):
            load(own, name, 1, n)
    run = agent.run_dag("own_upkeep")
    api = agent.services.api
    states = {task["task_id"]: task["state"] for task in api.tasks("own_upkeep", run)}
    assert set(states) == {
        "before",
        *(f"lake_upkeep.compact.{name}" for name in ("find", "run", "report")),
        *(f"lake_upkeep.checkpoint.{name}" for name in ("find", "run", "report")),
    }
    assert set(states.values()) == {"success"}
    lake = Lake.open(own.store.uri)
    assert {name: lake.pool(name).at().depth for name in ("kept_a", "kept_b", "not_kept")} == {
        "kept_a": 1,
        "kept_b": 1,
        "not_kept": 12,
    }
    again = agent.run_dag("own_mapped")  # a mapped group, without work
    mapped = sorted(
        (task["task_id"], task["map_index"], task["state"]) for task in api.tasks("own_mapped", again)
    )
    assert mapped == [
        (f"each.checkpoint.{name}", index, state)
        for name, state in (("find", "success"), ("report", "success"), ("run", "skipped"))
        for index in (0, 1)
    ]
    titles = [
        task["rendered_map_index"]
        for task in api.tasks("own_upkeep", run)
        if task["task_id"] == "lake_upkeep.compact.run"
    ]
    kept = [title for title in titles if not title.startswith("$jobs: ")]  # to which each run adds
    assert sorted(kept) == ["kept_a: 1 job", "kept_b: 1 job"]
    report = api.xcom("own_upkeep", run, "lake_upkeep.compact.report")
    assert report["pools"] == len(titles)


def test_ingest_goes_first_when_upkeep_waits_for_the_same_slot(
    agent: Agent, own: Lake, tmp_path: Path
) -> None:
    own.create_pool("ordered", key="k", settings={"ingest.source": str(tmp_path)})
    api = agent.services.api
    pool = {"name": "own_order", "slots": 0, "include_deferred": False}
    api.request("POST", "pools", body=pool)
    let_loose(agent, "own_order")
    run = api.trigger("own_order")

    def states(task: str) -> set[str]:
        return {t["state"] for t in api.tasks("own_order", run) if t["task_id"].endswith(task)}

    await_true(lambda: states("find") == {"scheduled"}, seconds=SECONDS, what="both wait for a slot")
    api.request("PATCH", "pools/own_order", body={**pool, "slots": 1})
    assert api.wait("own_order", run, seconds=RUN_SECONDS) == "success"
    tasks = {task["task_id"]: task for task in api.tasks("own_order", run)}
    ingest, upkeep = tasks["ingest.find"], tasks["lake_upkeep.compact.find"]
    assert (ingest["pool"], upkeep["pool"]) == ("own_order", "own_order")
    assert ingest["end_date"] <= upkeep["start_date"]


ASKING = ("retention.approve", "erasure.approve")
SETTLED = 10.0
"""Seconds after which Airflow has seen, also on a busy machine, that the process that asked has ended."""


def answer(agent: Agent, run: str, option: str) -> dict[str, dict[str, Any]]:
    """Answer the questions of a run of `own_approval`, and wait for its end; the questions by the task that asked.

    If an answer comes within seconds, Airflow 3.3.2 may take the end of the process that asked for a failure of the
    task, and asks again.  So this waits before it answers, and answers as often as it is asked.
    """
    api = agent.services.api
    questions: dict[str, dict[str, Any]] = {}
    since: dict[tuple[str, int], float] = {}

    def asked() -> set[tuple[str, int]]:
        tasks = api.tasks("own_approval", run)
        return {(task["task_id"], task["try_number"]) for task in tasks if task["state"] == "awaiting_input"}

    def answer_all() -> None:
        for task, attempt in asked():
            if time.monotonic() - since.setdefault((task, attempt), time.monotonic()) < SETTLED:
                continue
            path = f"dags/own_approval/dagRuns/{run}/taskInstances/{task}/-1/hitlDetails"
            questions[task] = api.get(path)
            with contextlib.suppress(ApiError):  # it was answered meanwhile
                api.request("PATCH", path, body={"chosen_options": [option], "params_input": {}})

    assert api.wait("own_approval", run, seconds=RUN_SECONDS, meanwhile=answer_all) == "success"
    assert set(questions) == set(ASKING), "both groups have asked"
    return questions


def test_nothing_is_deleted_before_a_person_has_approved(agent: Agent, own: Lake) -> None:
    old = own.create_pool("asked_old", key="k", settings={"expire.records": "1"})
    who = own.create_pool("asked_who", key="k")
    for k, name in enumerate(("ann", "bob")):
        old.branch().append(pa.table({"k": [k]}))
        who.branch().append(pa.table({"k": [k], "who": [name]}))
    api = agent.services.api
    let_loose(agent, "own_approval")

    run = api.trigger("own_approval")
    questions = answer(agent, run, "Reject")
    assert questions["retention.approve"]["subject"] == "May the retention agent delete this?"
    assert "In the lake `lake_own`." in questions["retention.approve"]["body"]
    assert "asked_old: remove 1 whole object (1 by expire.records)" in questions["retention.approve"]["body"]
    assert (
        "asked_who: begin an erasure of the records that this run names: up to 1 object of 1 record, "
        in questions["erasure.approve"]["body"]
    )
    assert "ann" not in str(questions), "Airflow keeps a question"
    states = {(task["task_id"], task["state"]) for task in api.tasks("own_approval", run)}
    for group, pool in (("retention", "asked_old"), ("erasure", "asked_who")):
        assert {(f"{group}.run", "skipped"), (f"{group}.report", "success")} <= states
        assert f"{pool}: put off: admin refused" in api.log("own_approval", run, f"{group}.report")
    lake = Lake.open(own.store.uri)
    assert [lake.pool(name).at().records for name in ("asked_old", "asked_who")] == [2, 2]
    assert list(read_all(lake.pool("asked_who"))) == [], "what was refused is not pending"

    answer(agent, api.trigger("own_approval"), "Approve")
    lake = Lake.open(own.store.uri)
    assert lake.pool("asked_old").at().to_table()["k"].to_pylist() == [1]
    assert lake.pool("asked_who").at().to_table()["who"].to_pylist() == ["bob"]
    assert [one.status for one in read_all(lake.pool("asked_who"))] == ["done"]
