"""The tasks of a group, called as Airflow calls them: what one pack hands over when a piece of its work fails."""

from __future__ import annotations

import contextlib
import json
import os
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_lake.assets import PoolEvent, lake_asset
from airflow_lake.effects import Effect
from airflow_lake.groups import tasks
from airflow_lake.groups.config import LakeConfig, request_of
from lake_core import naming
from lake_core.errors import Conflict, Incomplete, InvalidInput, LakeError, NotFound, Unavailable
from log_lake.agents.agent import Agent, OpenWorkers
from log_lake.agents.intervals.report import IntervalsResult
from log_lake.agents.jobs import list_jobs, recorded
from log_lake.agents.packs import write_packs
from log_lake.agents.retention.report import RetentionResult
from log_lake.agents.work import Work
from log_lake.lake import Lake
from spark_apps.session import is_gone
from tests.support.agents import plain

NOTHING = vars(RetentionResult("", "main", None, 0, 0, 0, 0, 0, 0, 0, 0, 0))


@dataclass
class Instance:
    """The task instance of Airflow, as far as a task uses it."""

    pushed: dict[str, Any] = field(default_factory=dict)
    task_id: str = "lake_upkeep.retention.report"
    map_index: int = -1

    def xcom_push(self, key: str, value: Any) -> None:
        self.pushed[key] = value

    def xcom_pull(self, *, task_ids: str, key: str, map_indexes: int) -> Any:
        is_own = (task_ids, map_indexes) == ("lake_upkeep.retention.find", self.map_index)
        return self.pushed.get(key) if is_own else None


@dataclass
class Task:
    """The task of Airflow, which keeps what it did."""

    effects: list[Effect] = field(default_factory=list)
    outlets: list[Any] = field(default_factory=list)


@dataclass
class Event:
    """What a task says of an event of its outlet."""

    extra: dict[str, Any] = field(default_factory=dict)
    partitions: list[str] = field(default_factory=list)

    def add_partitions(self, keys: list[str]) -> None:
        self.partitions += keys


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Three pools with work for the retention agent: old entries, and nothing to keep them for."""
    lake = Lake.create(str(tmp_path / "lake"))
    for name in ("a", "b", "c"):
        pool = lake.create_pool(name, key="k", settings={"history.keep": "0s"})
        for k in range(3):
            pool.branch().append(pa.table({"k": [k]}))
    return lake


def config(lake: Lake) -> dict[str, Any]:
    return LakeConfig(lake=lake.store.uri).plain(agent="retention", also=("branch",))


def test_what_is_found_is_done_and_reported(lake: Lake) -> None:
    packs = tasks.find("retention", config(lake), None)
    assert [part["title"] for part in packs] == ["a: retention", "b: retention", "c: retention"]
    task = Task()
    results = [
        tasks.run("retention", [part], config(lake), {"ti": Instance(), "task": task}) for part in packs
    ]
    (effect,) = task.effects
    assert (effect.pool, effect.branch, effect.writes, effect.version) == ("c", "main", True, None)
    totals = tasks.report("retention", packs, results, config(lake))
    assert (totals["pools"], totals["purged"]) == (3, 9)


def test_a_piece_that_fails_holds_back_neither_the_others_nor_their_results(lake: Lake) -> None:
    packs = tasks.find("retention", config(lake), None)
    (name,) = write_packs(
        lake, [[plain(work) for work in tasks.work_of("retention", packs, named=lake.store.uri)]]
    )
    together = {**packs[0], "pack": name}
    journal = Path(lake.store.uri.removeprefix("file://")) / lake.pool("b").config.id / "journal"
    os.truncate(next(journal.glob("*1.txn")), 3)
    instance, task = Instance(), Task()
    with pytest.raises(LakeError, match=str(journal.name)):
        tasks.run("retention", [together], config(lake), {"ti": instance, "task": task})
    results = instance.pushed[tasks.RESULT]
    assert [one["pool"] for one in results] == ["a", "c"]
    assert [effect.pool for effect in task.effects] == ["a", "c"], (
        "a task that fails tells what it did before"
    )
    with pytest.raises(Incomplete, match=r"1 failure: b: run\[1\] failed; its log says why"):
        tasks.report("retention", [together], [results], config(lake))


@dataclass
class Loads(Agent[Any, Any]):
    """An agent that loads: what becomes of each pool, an error or a version."""

    outcomes: dict[str, Exception | int | None]
    tried: list[str] = field(default_factory=list)

    def run(self, lake: Lake, work: Work, open_workers: OpenWorkers) -> IntervalsResult:
        self.tried.append(work.pool)
        outcome = self.outcomes[work.pool]
        if isinstance(outcome, Exception):
            raise outcome
        return IntervalsResult(pool=work.pool, begin="", version=outcome, records=1)


def run_loads(lake: Lake, loads: Loads, instance: Instance) -> list[dict[str, Any]]:
    """One pack of the intervals agent, a piece for each pool, on such an application."""
    pieces = [{"lake": lake.store.uri, "pool": pool} for pool in loads.outcomes]
    (name,) = write_packs(lake, [pieces])
    pack = {"title": "p", "lake": lake.store.uri, "pack": name}
    context = {"ti": instance, "task": Task()}
    return tasks.run("intervals", [pack], config(lake), context, to_announce=True, does=loads)


def test_an_error_of_spark_fails_its_piece_alone_and_is_logged_with_its_traceback(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    loads, instance = Loads({"a": 4, "b": ZeroDivisionError("of Spark"), "c": 7}), Instance()
    with pytest.raises(ZeroDivisionError, match="of Spark"):
        run_loads(lake, loads, instance)
    assert loads.tried == ["a", "b", "c"]
    assert [one["pool"] for one in instance.pushed[tasks.RESULT]] == ["a", "c"]
    (logged,) = [record for record in caplog.records if record.exc_info]
    assert logged.getMessage() == "b: ZeroDivisionError"


def test_after_spark_has_gone_away_no_other_piece_waits_for_it(lake: Lake) -> None:
    gone = RuntimeError("[INVALID_HANDLE.SESSION_NOT_FOUND] Session not found")
    assert is_gone(gone)
    loads, instance = Loads({"a": 4, "b": gone, "c": 7}), Instance()
    with pytest.raises(RuntimeError, match="SESSION_NOT_FOUND"):
        run_loads(lake, loads, instance)
    assert loads.tried == ["a", "b"]


@pytest.mark.parametrize(
    ("errors", "raised"),
    [
        ([NotFound("x"), ZeroDivisionError(), Conflict("y")], Conflict),
        ([NotFound("x"), ZeroDivisionError()], ZeroDivisionError),
        ([ZeroDivisionError(), Unavailable("x")], Unavailable),
        ([NotFound("x"), InvalidInput("y")], NotFound),
    ],
)
def test_the_failure_that_may_pass_is_raised_so_that_airflow_tries_again(
    lake: Lake, errors: list[Exception], raised: type[Exception]
) -> None:
    with pytest.raises(raised):
        run_loads(lake, Loads(dict(zip("abc", errors, strict=False))), Instance())


def test_what_a_pack_committed_before_it_failed_is_announced_later(lake: Lake) -> None:
    instance = Instance()
    with pytest.raises(NotFound):
        run_loads(lake, Loads({"a": 4, "b": NotFound("gone"), "c": None}), instance)
    instance.task_id, left = "i.run", instance.pushed[tasks.UNANNOUNCED]

    class Announcing:
        def xcom_pull(self, *, task_ids: list[str], key: str) -> list[Any]:
            return [None, [], left] if (task_ids, key) == (["i.run"], tasks.UNANNOUNCED) else []

    results = tasks.unannounced(Announcing(), "i.run")
    assert results == [PoolEvent(pool="a", version=4, records=1, objects=0, size=0)], (
        "only what an event says"
    )


def test_each_commit_is_handed_over_before_the_next_piece_which_may_end_the_process(lake: Lake) -> None:
    instance = Instance()

    class Killed(Loads):
        def run(self, lake: Lake, work: Work, open_workers: OpenWorkers) -> IntervalsResult:
            if work.pool == "b":
                raise KeyboardInterrupt
            return super().run(lake, work, open_workers)

    loads = Killed({"a": 4, "b": None})
    with pytest.raises(KeyboardInterrupt):
        run_loads(lake, loads, instance)
    assert [one["pool"] for one in instance.pushed[tasks.UNANNOUNCED]] == ["a"]


def test_a_run_takes_its_parameters_only_if_the_group_says_so(lake: Lake) -> None:
    params = {"pools": ["b"], "dry_run": False}
    assert len(tasks.find("retention", config(lake), None)) == 3
    assert [part["title"] for part in tasks.find("retention", config(lake), params)] == ["b: retention"]
    with pytest.raises(InvalidInput, match=r"unknown parameter 'pols': did you mean 'pools'\?"):
        tasks.find("retention", config(lake), {"pols": ["b"]})


def test_upkeep_of_named_pools_keeps_the_pool_of_jobs_in_order_too(lake: Lake) -> None:
    def found(pools: list[str], params: dict[str, Any] | None = None, **also: Any) -> list[str]:
        named = LakeConfig(lake=lake.store.uri, pools=pools).plain(agent="compact", also=("branch",))
        if "branch" in also:
            named["request"]["branch"] = also.pop("branch")
        return [part["title"].partition(":")[0] for part in tasks.find("compact", named, params, **also)]

    assert found(["a"], own_pools=True) == [], "there is no pool of jobs yet"
    for _ in range(4):
        with recorded(lake, agent="ingest", pool_name="b"):
            pass
    assert found(["a"], own_pools=True) == ["$jobs"]
    assert found(["a"]) == []
    assert found([], own_pools=True) == ["$jobs"]
    assert found(["a"], {"pools": ["b"]}, own_pools=True) == [], "a person names what the run looks at"
    lake.pool("a").create_branch("dev")
    assert found(["a"], own_pools=True, branch="dev") == []


def test_what_is_put_off_goes_to_the_report_beside_the_packs(
    lake: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    lake.configure_pool("b", {"agents": "paused"})
    instance, task = Instance(), Task()
    packs = tasks.find("retention", config(lake), None, task=instance)
    assert [part["title"] for part in packs] == ["a: retention", "c: retention"]
    results = [tasks.run("retention", [part], config(lake), {"ti": instance, "task": task}) for part in packs]
    caplog.clear()
    caplog.set_level("INFO")
    jobs = list_jobs(lake, state="put off")
    assert [(job.agent, job.pool, job.why) for job in jobs] == [("retention", "b", "agents=paused")]
    dry = {**config(lake), "request": {**config(lake)["request"], "dry_run": True}}
    lake.configure_pool("c", {"agents": "paused"})
    tasks.find("retention", dry, None, task=Instance())
    assert len(list_jobs(lake, state="put off")) == 1, "a dry run changes nothing"
    put_off = tasks.put_off_by_find(instance, "lake_upkeep.retention.find")
    assert tasks.report("retention", packs, results, config(lake), put_off=put_off)["pools"] == 2
    assert "b: put off: agents=paused" in caplog.messages


def test_what_a_person_refused_is_a_job_that_was_put_off(lake: Lake) -> None:
    packs = tasks.find("retention", config(lake), {"pools": ["a", "b"]})
    for chosen, refused in ((["Approve"], 0), (["Reject"], 2)):
        answer = {"chosen_options": chosen, "by": "ann"}
        work = tasks.work_of("retention", packs, named=lake.store.uri) if not refused else []
        results = [{**NOTHING, "pool": one.pool, "piece": one.piece} for one in work]
        tasks.report("retention", packs, results, config(lake), answer=answer)
        assert [job.why for job in list_jobs(lake, state="put off")] == ["ann refused"] * refused


def test_more_pools_than_a_report_names_are_cut(lake: Lake) -> None:
    for number in range(tasks.MAX_PUT_OFF):
        lake.create_pool(f"paused-{number}", key="k", settings={"agents": "paused"})
    lake.configure_pool("b", {"agents": "paused"})
    instance = Instance()
    assert len(tasks.find("retention", config(lake), None, task=instance)) == 2
    assert len(instance.pushed[tasks.PUT_OFF]) == tasks.MAX_PUT_OFF


def test_a_report_without_packs_says_that_find_failed(lake: Lake) -> None:
    with pytest.raises(Incomplete, match="the task `find` failed"):
        tasks.report("retention", None, [], config(lake))


def files_of(lake: Lake, pool: str, folder: Path, count: int) -> None:
    """A pool whose source has so many files."""
    folder.mkdir()
    for number in range(count):
        (folder / f"{number:05d}.ndjson").write_text('{"k": 1}\n')
    settings = {"ingest.source": str(folder), "ingest.batch_files": "10", "ingest.batch_age": "0s"}
    lake.create_pool(pool, key="k", settings=settings)


def test_a_plan_of_ten_thousand_files_goes_between_tasks_by_name(lake: Lake, tmp_path: Path) -> None:
    files_of(lake, "many", tmp_path / "many", 10_000)
    ingest = LakeConfig(lake=lake.store.uri).plain(agent="ingest", also=("wait", "limit"))
    packs = tasks.find("ingest", ingest, None)
    assert len(packs) == 64
    assert len(json.dumps(packs)) < 64 * 300
    assert {tuple(part) for part in packs} == {("title", "lake", "pack")}
    all_work = tasks.work_of("ingest", packs, named=lake.store.uri)
    assert (len(all_work), sum(len(one.files) for one in all_work)) == (1_000, 10_000)
    assert len(json.dumps([plain(one) for one in all_work])) > 1_000_000, (
        "what Airflow would have kept otherwise"
    )


def test_nothing_is_written_if_there_is_no_work(lake: Lake) -> None:
    assert tasks.find("compact", LakeConfig(lake=lake.store.uri).plain(agent="compact", also=()), None) == []
    assert list(lake.store.list(naming.PACKS)) == []


def test_a_task_that_is_cleared_finds_its_work_again_while_it_is_kept(lake: Lake) -> None:
    packs = tasks.find("retention", config(lake), None)
    for _ in range(2):
        done = tasks.run("retention", [packs[0]], config(lake), {"ti": Instance(), "task": Task()})
        assert [one["pool"] for one in done] == ["a"]
    again = tasks.find("retention", config(lake), None)
    assert {part["pack"] for part in again}.isdisjoint(part["pack"] for part in packs), (
        "a find that is repeated plans anew, beside what was planned"
    )
    lake.store.delete(packs[0]["pack"])
    with pytest.raises(NotFound, match="is not kept any more; clear the task `find` of this run"):
        tasks.run("retention", [packs[0]], config(lake), {"ti": Instance(), "task": Task()})


DAYS = ["2026-01-01T00:00:00", "2026-01-02T00:00:00"]
COMMITTED = [PoolEvent(pool="a", version=3, records=7)]


def announced(
    params: dict[str, Any] | None, *, keys: list[str] = DAYS, branch: str = "main", **also: Any
) -> dict[str, Event]:
    """The events, by pool, after what was committed is announced."""
    config = LakeConfig(pools=["a", "b", "c"], branch=branch, **also).plain(
        agent="intervals", also=("branch", "files")
    )
    events = defaultdict[Any, Event](Event)
    outlets = {
        pool: lake_asset(
            pool, lake=config["request"]["lake"], branch=config["request"].get("branch") or "main"
        )
        for pool in "abc"
    }
    kept = tasks.announce_partitions(
        COMMITTED, request_of(config, params), keys, list(outlets.values()), events
    )
    assert set(events) == set(kept), "Airflow makes an event of each outlet that is left"
    return {pool: events[outlet] for pool, outlet in outlets.items() if outlet in kept}


def test_only_a_pool_in_which_something_was_committed_has_events() -> None:
    assert announced(None) == {"a": Event({"version": 3, "records": 7}, DAYS)}
    assert announced({"branch": "", "lake": ""}) == announced({"branch": "main"}) == announced(None)


def test_files_that_are_appended_have_an_event_without_a_partition() -> None:
    assert announced(None, keys=[])["a"].partitions == []


@pytest.mark.parametrize("params", [{"branch": "dev"}, {"lake": "other"}])
def test_a_run_on_another_branch_or_lake_than_the_group_names_has_no_event(params: dict[str, str]) -> None:
    assert announced(params) == {}
    assert announced({"branch": "main"}, branch="dev") == {}
    assert list(announced(params, **params)) == ["a"]


@pytest.mark.parametrize(("number", "lines"), [(1, 0), (2, 1)])
def test_a_task_that_is_tried_again_says_what_became_of_the_try_before(
    lake: Lake, caplog: pytest.LogCaptureFixture, number: int, lines: int
) -> None:
    instance = Instance()
    instance.try_number = number  # type: ignore[attr-defined]
    with caplog.at_level("WARNING", logger="airflow_lake.tries"):
        run_loads(lake, Loads({"a": 4}), instance)
    said = [message for message in caplog.messages if "the log of try 1 says how that ended" in message]
    assert len(said) == lines
    assert all("if that log just ends, its worker was killed" in message for message in said)


class StateStore(dict[str, Any]):
    """What Airflow keeps of a task from try to try."""

    def set(self, key: str, value: Any) -> None:
        self[key] = value


def test_what_a_try_committed_is_announced_though_the_next_one_finds_nothing_to_commit(lake: Lake) -> None:
    store = StateStore()
    pieces = [{"lake": lake.store.uri, "pool": pool} for pool in ("a", "b")]
    (name,) = write_packs(lake, [pieces])
    pack = {"title": "p", "lake": lake.store.uri, "pack": name}

    def tried(loads: Loads) -> list[dict[str, Any]]:
        instance = Instance()  # Airflow forgets XComs before a retry
        context = {"ti": instance, "task": Task(), "task_state_store": store}
        how = {"to_announce": True, "does": loads}
        with contextlib.suppress(Unavailable):
            tasks.run("intervals", [pack], config(lake), context, **how)
        return instance.pushed[tasks.UNANNOUNCED]

    first = tried(Loads({"a": 4, "b": Unavailable("away")}))
    assert [one["pool"] for one in first] == ["a"]
    second = tried(Loads({"a": None, "b": 7}))
    assert [(one["pool"], one["version"]) for one in second] == [("a", 4), ("b", 7)]
