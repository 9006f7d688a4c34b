"""What the agents did, in the lake's own pool `$jobs`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.errors import AlreadyExists, InvalidInput, Unavailable
from log_lake.agents.jobs import (
    DIED,
    DONE,
    FAILED,
    KEY,
    KIND,
    RUNNING,
    SETTINGS,
    list_jobs,
    recorded,
    recorded_each,
    recorded_if_kept,
)
from log_lake.lake import Lake
from log_lake.stores.memory import MemoryStore
from spark_apps.command import main


@pytest.fixture
def lake() -> Lake:
    lake = Lake.create_on(MemoryStore())
    for name in ("a", "b"):
        lake.create_pool(name, key="k")
    return lake


def begin(lake: Lake, agent: str = "compact", pool: str = "a") -> Callable[[], object]:
    """A job that is not ended until the result is called."""
    job = recorded(lake, agent=agent, pool_name=pool)
    job.__enter__()
    return lambda: job.__exit__(None, None, None)


def test_a_job_says_what_it_did_on_what_and_for_how_long(lake: Lake) -> None:
    with recorded(lake, agent="compact", pool_name="a", branch="dev") as result:
        result.update({"inputs": 12, "pool": "a", "dropped": False, "ratio": 0.5})
    (job,) = list_jobs(lake)
    assert (job.agent, job.pool, job.branch, job.state) == ("compact", "a", "dev", DONE)
    assert job.figures == {"inputs": 12}
    assert job.ended is not None
    assert job.seconds == pytest.approx((job.ended - job.began).total_seconds(), abs=0.002)
    assert dt.datetime.now(dt.UTC) - job.began < dt.timedelta(minutes=5)
    assert job.error is None


def test_a_job_that_fails_says_why_and_its_error_goes_on(lake: Lake) -> None:
    with pytest.raises(ValueError, match="no room"), recorded(lake, agent="compact", pool_name="a"):
        raise ValueError("no room")
    assert [(job.state, job.error) for job in list_jobs(lake)] == [(FAILED, "ValueError: no room")]


def test_an_error_that_is_no_text_is_kept_escaped(lake: Lake) -> None:
    with pytest.raises(ValueError, match="no room"), recorded(lake, agent="ingest", pool_name="p"):
        raise ValueError("no room for x\udcff.csv")
    assert [(job.state, job.error) for job in list_jobs(lake)] == [
        (FAILED, "ValueError: no room for x\\udcff.csv")
    ]


def test_a_job_runs_until_it_ends(lake: Lake) -> None:
    end = begin(lake)
    assert [(job.state, job.ended) for job in list_jobs(lake)] == [(RUNNING, None)]
    end()
    assert [job.state for job in list_jobs(lake)] == [DONE]
    assert not lake.pool(naming.JOBS).leases().all


def test_a_job_without_a_lease_has_died(lake: Lake) -> None:
    end = begin(lake)
    store = lake.store
    pool_id = lake.pool(naming.JOBS).config.id
    for info in list(store.list(naming.leases(pool_id))):
        store.delete(info.name)
    assert [job.state for job in list_jobs(lake)] == [DIED]
    end()
    assert [job.state for job in list_jobs(lake)] == [DONE], "it was only slow"


def test_work_on_many_pools_is_a_job_of_each_with_its_own_figures_and_outcome(lake: Lake) -> None:
    with recorded_each(lake, agent="checkpoint", pool_names=["a", "b", naming.JOBS]) as results:
        assert [(job.pool, job.state) for job in list_jobs(lake)] == [("a", RUNNING), ("b", RUNNING)]
        results["a"] = {"pool": "a", "entries": 3}
        results["b"] = {"pool": "b", "failed": "its journal is damaged"}
    of_a, of_b = list_jobs(lake)
    assert (of_a.pool, of_a.state, of_a.figures, of_a.error) == ("a", DONE, {"entries": 3}, None)
    assert (of_b.pool, of_b.state, of_b.figures) == ("b", FAILED, {})
    assert of_b.error == "its journal is damaged"
    assert [job.pool for job in list_jobs(lake, pool_name="b")] == ["b"]
    assert of_a.id != of_b.id
    versions = lake.pool(naming.JOBS).history.load().version
    assert versions == 2, "all pools are written together, at the beginning and at the end"
    assert not lake.pool(naming.JOBS).leases().all


def test_jobs_that_began_together_die_together(lake: Lake) -> None:
    job = recorded_each(lake, agent="checkpoint", pool_names=["a", "b"])
    job.__enter__()
    pool_id = lake.pool(naming.JOBS).config.id
    (lease,) = lake.store.list(naming.leases(pool_id))
    lake.store.delete(lease.name)
    assert [one.state for one in list_jobs(lake)] == [DIED, DIED]
    job.__exit__(None, None, None)


def test_if_work_on_many_pools_raises_what_has_a_result_is_done_all_the_same(lake: Lake) -> None:
    def work() -> None:
        with recorded_each(lake, agent="checkpoint", pool_names=["a", "b"]) as results:
            results["a"] = {"entries": 3}
            raise Unavailable("no answer")

    with pytest.raises(Unavailable):
        work()
    assert [(job.pool, job.state, job.error) for job in list_jobs(lake)] == [
        ("a", DONE, None),
        ("b", FAILED, "Unavailable: no answer"),
    ]


def test_jobs_are_listed_newest_first_by_pool_agent_and_state(lake: Lake) -> None:
    for agent, pool in (("compact", "a"), ("compact", "b"), ("retention", "a")):
        with recorded(lake, agent=agent, pool_name=pool):
            pass
    end = begin(lake, "checkpoint", "")
    shown = [(job.agent, job.pool) for job in list_jobs(lake)]
    assert shown == [("checkpoint", ""), ("retention", "a"), ("compact", "b"), ("compact", "a")]
    assert [job.agent for job in list_jobs(lake, pool_name="a")] == ["retention", "compact"]
    assert [job.pool for job in list_jobs(lake, agent="compact")] == ["b", "a"]
    assert [job.agent for job in list_jobs(lake, state=RUNNING)] == ["checkpoint"]
    assert [job.agent for job in list_jobs(lake, state=DONE, limit=1)] == ["retention"]
    assert list_jobs(lake, pool_name="it's none") == []
    end()


def test_a_lake_in_which_no_agent_ran_has_no_jobs(lake: Lake) -> None:
    assert list_jobs(lake) == []
    assert naming.JOBS not in [pool.name for pool in lake.pools()]


def test_a_pool_of_jobs_without_an_object_has_no_jobs(lake: Lake) -> None:
    lake.own_pool(naming.JOBS, key=KEY, kind=KIND, settings=SETTINGS)
    assert list_jobs(lake) == list_jobs(lake, pool_name="p") == list_jobs(lake, agent="ingest") == []


def test_a_limit_is_the_most_jobs_that_are_listed(lake: Lake) -> None:
    for _ in range(3):
        with recorded(lake, agent="ingest", pool_name="p"):
            pass
    assert [len(list_jobs(lake, limit=limit)) for limit in (0, 1, 3, 4, None)] == [0, 1, 3, 3, 3]


def test_work_on_the_pool_of_jobs_is_no_job_of_its_own(lake: Lake) -> None:
    with recorded(lake, agent="compact", pool_name="a"):
        pass
    with recorded(lake, agent="compact", pool_name=naming.JOBS):
        pass
    assert [job.pool for job in list_jobs(lake)] == ["a"]


class Refusing(MemoryStore):
    """A store that takes nothing new while `refuses`."""

    refuses = False

    def create(self, *args: object, **kwargs: object) -> object:
        if self.refuses:
            raise Unavailable("the store is full")
        return super().create(*args, **kwargs)  # type: ignore[arg-type]


@pytest.mark.parametrize("when", ["begin", "end"])
def test_a_job_that_cannot_be_recorded_is_done_all_the_same(
    when: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = Refusing()
    lake = Lake.create_on(store)
    with recorded(lake, agent="compact", pool_name="a"):
        pass
    done = False
    store.refuses = when == "begin"
    with recorded(lake, agent="compact", pool_name="a"):
        store.refuses = True
        done = True
    assert done
    assert "the store is full" in caplog.text
    store.refuses = False
    states = [job.state for job in list_jobs(lake)]
    assert states == ([DONE] if when == "begin" else [DIED, DONE])


def test_nobody_else_makes_or_names_the_pool_of_jobs(lake: Lake) -> None:
    with pytest.raises(InvalidInput, match="the lake makes this pool itself"):
        lake.create_pool(naming.JOBS, key="k")
    with pytest.raises(InvalidInput, match="the lake makes this pool itself"):
        lake.rename_pool("a", naming.JOBS)
    with pytest.raises((InvalidInput, AlreadyExists)):
        lake.create_pool("$other", key="k")


def test_the_pool_of_jobs_is_a_pool_like_any_other(lake: Lake) -> None:
    with recorded(lake, agent="compact", pool_name="a"):
        pass
    pool = lake.pool(naming.JOBS)
    assert pool.at().to_table().num_rows == 1
    assert pool.settings["expire.age"] is not None
    pool.branch().delete(where="agent = 'compact'")
    assert list_jobs(lake) == []
    pool.branch().append(pa.table({"began": [dt.datetime(2026, 1, 1, tzinfo=dt.UTC)], "id": ["x"]}))
    lake.drop_pool(naming.JOBS)
    with recorded(lake, agent="compact", pool_name="b"):
        pass
    assert [job.pool for job in list_jobs(lake)] == ["b"]


def test_a_command_is_recorded_only_in_a_lake_that_keeps_jobs(lake: Lake) -> None:
    with recorded_if_kept(lake, agent="compact", pool_name="a") as result:
        result["inputs"] = 12
    assert [pool.name for pool in lake.pools()] == ["a", "b"]
    begin(lake, pool="b")()
    with recorded_if_kept(lake, agent="compact", pool_name="a") as result:
        result["inputs"] = 12
    newest, *others = list_jobs(lake)
    assert (newest.pool, newest.figures, newest.state) == ("a", {"inputs": 12}, DONE)
    assert [job.pool for job in others] == ["b"]


def test_a_run_of_the_command_is_recorded(tmp_path: Path) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    settings = {"expire.records": "1", "history.keep": "0s"}
    pool = lake.create_pool("a", key="k", settings=settings)
    for k in range(3):
        pool.branch().append(pa.table({"k": [k]}))
    begin(lake)()
    assert main(["retention", "--spark", "--lake", lake.store.uri, "a"]) == 0  # few names: no Spark starts
    job = list_jobs(lake)[0]
    assert (job.agent, job.pool, job.state, job.figures["expired"]) == ("retention", "a", DONE, 2)
    assert (job.figures["objects_before"], job.figures["objects_after"]) == (3, 1)
    assert job.figures["size_before"] > job.figures["size_after"] > 0
    assert not job.run, "it bears no DAG"
