"""The metrics of lakes: right, cheap, bounded, and honest about what cannot be read."""

from __future__ import annotations

import asyncio
import datetime as dt
import subprocess
from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa
import pytest

pytest.importorskip("prometheus_client")

from prometheus_client.parser import text_string_to_metric_families

from lake_core import naming
from lake_core.ids import IdSource
from lake_core.store.meter import Counts
from log_lake.agents.agent import here
from log_lake.agents.driver import carry_out, find
from log_lake.agents.jobs import DIED, DONE, FAILED, PUT_OFF, RUNNING, Job, new_jobs, recorded, write_jobs
from log_lake.doctor.dues import DUES
from log_lake.lake import Lake
from log_lake.metrics.families import POOL_GAUGES, SeenLake, families, lags
from log_lake.metrics.job_sums import OTHER, JobSums
from log_lake.metrics.pool_watch import (
    IDLE_SECONDS,
    LOOK_SECONDS,
    UNNOTED_SECONDS,
    WHOLE_SECONDS,
    PoolWatch,
    SeenPool,
)
from log_lake.metrics.watching import Watching
from log_lake.stores.memory import MemoryStore
from log_lake.view.lakes import Lakes
from tests.support.clocks import Clock
from tests.support.stores import ALWAYS, ScriptedStore, unavailable

HOUR = 3_600.0
Samples = dict[str, dict[tuple[tuple[str, str], ...], float]]


class Site:
    """A lake in memory whose clock a test moves, and whose requests are logged."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.store = ScriptedStore(MemoryStore("memory://site", clock=self.clock))
        self.lake = Lake.create_on(self.store, ids=IdSource(self.clock))

    def load(self, *pools: str, times: int = 1, **settings: str) -> None:
        for name in pools:
            if name not in {one.name for one in self.lake.pools()}:
                self.lake.create_pool(name, key="k", settings=settings)
            for _ in range(times):
                self.lake.pool(name).branch().append(pa.table({"k": [1, 9]}))
                self.clock.now += 1

    def watched(self, watch: PoolWatch) -> dict[str, SeenPool]:
        self.asked = len(self.store.requests)
        seen = watch.look(self.lake)
        self.asked = len(self.store.requests) - self.asked
        self.looked = seen.looked
        return {one.config.name: one for one in seen.pools}


@pytest.fixture
def site() -> Site:
    return Site()


def samples(text: bytes) -> Samples:
    """By name: the values by labels, as Prometheus' own parser reads them."""
    found: Samples = {}
    for family in text_string_to_metric_families(text.decode()):
        for one in family.samples:
            found.setdefault(one.name, {})[tuple(sorted(one.labels.items()))] = one.value
    return found


def scraped(opened: dict[str, Lake]) -> bytes:
    """The metrics of lakes by their names."""

    def opener(uri: str) -> Lake:
        lake = opened[uri]
        lake.pools()
        return lake

    return asyncio.run(Watching(Lakes({name: name for name in opened}, opener=opener)).text())


def of(name: str, value: Samples, **labels: str) -> float:
    return value[name][tuple(sorted(labels.items()))]


def test_the_figures_of_a_pool_are_those_of_its_state(site: Site) -> None:
    site.load("logs", times=12)
    site.lake.pool("logs").branch().delete(where="k = 1")
    values = samples(scraped({"main": site.lake}))
    view = site.lake.pool("logs").at()
    expected = {
        "readable": 1,
        "depth": 12,
        "objects": 12,
        "records": 24,
        "live_bytes": view.snapshot.size,
        "held_bytes": view.snapshot.size,
        "tombstones": 1,
        "branches": 1,
        "tail_entries": 13,
        "parked_files": 0,
        "unseen_parts": 0,
        "entries_total": 13,
    }
    for name, value in expected.items():
        assert of(f"lake_pool_{name}", values, lake="main", pool="logs") == value, name
    assert {name.removeprefix("lake_pool_") for name, *_ in POOL_GAUGES} <= expected.keys()
    assert (of("lake_up", values, lake="main"), of("lake_pools", values, lake="main")) == (1, 1)


def test_removed_objects_are_held_until_a_vacuum(site: Site) -> None:
    site.load("logs", times=12)
    work = find("compact", {"lake": "x"}, open_lake=lambda _: site.lake).work
    carry_out("compact", work, open_lake=lambda _: site.lake, open_workers=here)
    values = samples(scraped({"main": site.lake}))
    assert of("lake_pool_depth", values, lake="main", pool="logs") == 1
    live = of("lake_pool_live_bytes", values, lake="main", pool="logs")
    assert of("lake_pool_held_bytes", values, lake="main", pool="logs") > live > 0


def test_the_lag_of_an_agent_grows_with_time_and_ends_with_its_work(site: Site) -> None:
    site.load("logs", times=10)
    watch = PoolWatch()
    first = site.watched(watch)["logs"]
    made = site.clock.now
    for late in (0.0, HOUR, 48 * HOUR):
        seconds = dict(lags(first, now=made + late))
        assert seconds.keys() == DUES.keys()
        assert seconds["compact"] == pytest.approx(late + 2, abs=1.0)  # the ninth object is one too many
        assert {one for agent, one in seconds.items() if agent not in ("compact", "checkpoint")} == {0.0}
    site.lake.configure_pool("logs", {"upkeep": "paused"})
    assert dict(lags(site.watched(watch)["logs"], now=made + HOUR))["compact"] == 0.0
    site.lake.configure_pool("logs", {"upkeep": "active"})
    work = find("compact", {"lake": "x"}, open_lake=lambda _: site.lake).work
    carry_out("compact", work, open_lake=lambda _: site.lake, open_workers=here)
    site.clock.now += HOUR
    assert dict(lags(site.watched(watch)["logs"], now=site.clock.now))["compact"] == 0.0


def test_a_damaged_pool_hides_no_other_and_shows(site: Site) -> None:
    site.load("broken", "logs", times=3)
    site.store.put(naming.entry(naming.pool_journal(site.lake.pool("broken").config.id), 2), b"no entry")
    again = Lake.open_on(site.store, ids=IdSource(site.clock))
    values = samples(scraped({"main": again}))
    assert of("lake_pool_readable", values, lake="main", pool="broken") == 0
    assert of("lake_pool_unseen_parts", values, lake="main", pool="broken") == 1
    assert of("lake_pool_readable", values, lake="main", pool="logs") == 1
    shown = [labels for labels in values["lake_pool_depth"] if ("pool", "broken") in labels]
    assert shown == []


def test_a_lake_that_cannot_be_read_hides_no_other(site: Site) -> None:
    site.load("logs")
    store = ScriptedStore(MemoryStore("memory://other"))
    other = Lake.create_on(store)
    store.on("list", "", instead=unavailable, times=ALWAYS)
    store.on("get", "", instead=unavailable, times=ALWAYS)
    values = samples(scraped({"down": other, "main": site.lake}))
    assert (of("lake_up", values, lake="down"), of("lake_up", values, lake="main")) == (0, 1)
    assert of("lake_pool_depth", values, lake="main", pool="logs") == 1


def test_idle_pools_cost_a_few_requests_however_many_they_are(site: Site) -> None:
    site.load(*(f"p{number:02}" for number in range(40)))
    watch = PoolWatch()
    site.watched(watch)
    assert site.looked == 40
    first = site.asked
    site.clock.now += HOUR
    site.watched(watch)  # the notes are older than this look
    site.clock.now += HOUR
    seen = site.watched(watch)
    assert (site.looked, len(seen)) == (0, 40)
    assert site.asked <= 8
    assert first > 40
    site.load("p07")
    seen = site.watched(watch)
    assert (site.looked, seen["p07"].figures and seen["p07"].figures.version) == (1, 2)
    site.clock.now += IDLE_SECONDS
    site.watched(watch)
    assert site.looked == 40, "garbage becomes due by time alone"


def test_a_pool_that_is_written_to_is_looked_at_twice_a_minute(site: Site) -> None:
    site.load("busy")
    watch = PoolWatch()
    site.watched(watch)
    whole = site.asked
    site.load("busy")
    site.watched(watch)
    assert site.looked == 0, "too soon"
    site.clock.now += LOOK_SECONDS
    seen = site.watched(watch)
    assert (site.looked, seen["busy"].figures and seen["busy"].figures.version) == (1, 2)
    site.clock.now += LOOK_SECONDS
    site.watched(watch)
    assert (site.looked, site.asked < whole) == (1, True), "nothing was written: one request is enough"
    site.clock.now += WHOLE_SECONDS
    assert site.watched(watch)["busy"].whole == site.clock.now


def test_a_pool_without_a_note_is_looked_at_now_and_then(site: Site) -> None:
    site.load("logs")
    site.store.behind.delete(naming.activity(site.lake.pool("logs").config.id))
    watch = PoolWatch()
    for wait, looked in ((0.0, 1), (LOOK_SECONDS, 0), (UNNOTED_SECONDS, 1)):
        site.clock.now += wait
        site.watched(watch)
        assert site.looked == looked, wait


def test_pools_beyond_the_bound_are_counted(site: Site) -> None:
    site.load("a", "b", "c")
    seen = PoolWatch(most=2).look(site.lake)
    assert ([one.config.name for one in seen.pools], seen.total) == (["a", "b"], 3)
    left = next(one for one in families([SeenLake("x", seen)], Counts()) if one.name == "lake_pools_left_out")
    assert [sample.value for sample in left.samples] == [1]


def a_job(site: Site, pool: str = "logs", **fields: object) -> Job:
    """A job that begins now and ends after 5 s, with a cost."""
    (job,) = new_jobs(site.lake, agent="compact", pool_names=[pool])
    cost = Counts(reads=3, received=10, commits=1, seconds={"rewriting.write": 2.0})
    ended = {"state": DONE, "ended": job.began + dt.timedelta(seconds=5), "seconds": 5.0, "cost": cost}
    return replace(job, **(ended | fields))  # type: ignore[arg-type]


def test_jobs_are_counted_once_from_the_begin_of_the_server_on(site: Site) -> None:
    write_jobs(site.lake, [a_job(site)])
    site.clock.now += 60
    sums = JobSums(every=0.0)
    sums.update(site.lake)
    assert sums.by_agent["compact"].ended == {}, "it ended before"
    with recorded(site.lake, agent="compact", pool_name="logs"):
        write_jobs(site.lake, [a_job(site), a_job(site, state=FAILED, cost=None)])
        for _ in range(2):
            sums.update(site.lake)
            assert sums.by_agent["compact"].ended == {DONE: 1, FAILED: 1}
        site.clock.now += 60  # others begin and end meanwhile
        gone = a_job(site, state=RUNNING, ended=None, seconds=None, cost=None)
        write_jobs(site.lake, [a_job(site, state=PUT_OFF, ended=None, seconds=None, cost=None), gone])
        sums.update(site.lake)
    sums.update(site.lake)
    compact = sums.by_agent["compact"]
    assert compact.ended == {DONE: 2, FAILED: 1, PUT_OFF: 1, DIED: 1}
    assert compact.seconds == 10.0 + 60
    assert compact.cost.commits == 1 + 2, "its own, and those of its block"


def test_what_a_writer_of_jobs_makes_up_adds_no_label(site: Site) -> None:
    sums = JobSums(every=0.0)
    sums.update(site.lake)
    made_up = Counts(reads=1, seconds={f"x{number}.y": 1.0 for number in range(50)})
    forged = [a_job(site, agent=f"agent {number}", cost=made_up) for number in range(50)]
    write_jobs(site.lake, forged)
    sums.update(site.lake)
    assert sums.by_agent[OTHER].ended == {DONE: 50}
    assert sums.by_agent[OTHER].cost.seconds == {OTHER: 2_500.0}


@pytest.mark.parametrize("wrong", [-5.0, float("nan"), float("inf"), 1e300])
def test_what_no_job_can_cost_leaves_the_counters_as_they_are(site: Site, wrong: float) -> None:
    sums = JobSums(every=0.0)
    sums.update(site.lake)
    made_up = Counts(reads=-3, received=2**62, commits=1, seconds={"rewriting.write": wrong})
    write_jobs(site.lake, [a_job(site), a_job(site, seconds=wrong, cost=made_up)])
    sums.update(site.lake)
    compact = sums.by_agent["compact"]
    assert (compact.ended, compact.seconds) == ({DONE: 2}, 5.0)
    assert compact.cost == Counts(reads=3, received=10, commits=2, seconds={"rewriting.write": 2.0})


def test_the_cost_of_jobs_is_a_counter(site: Site) -> None:
    site.load("logs")
    sums = JobSums(every=0.0)
    sums.update(site.lake)
    write_jobs(site.lake, [a_job(site)])
    sums.update(site.lake)
    lake = SeenLake("main", PoolWatch().look(site.lake), sums.by_agent)
    by_name = {one.name: one.samples for one in families([lake], Counts(lists=7))}

    def value(name: str, **labels: str) -> Iterable[float]:
        return [one.value for one in by_name[name] if labels.items() <= one.labels.items()]

    assert value("lake_jobs", agent="compact", state="done") == [1]
    assert value("lake_job_seconds", agent="compact") == [5.0]
    assert value("lake_job_requests", agent="compact", kind="read") == [3]
    assert value("lake_job_bytes", agent="compact", direction="received") == [10]
    assert value("lake_job_commits", agent="compact") == [1]
    assert value("lake_job_phase_seconds", agent="compact", work="rewriting", phase="write") == [2.0]
    assert value("lake_server_requests", kind="list") == [7]
    assert len(value("lake_jobs")) == 4 * len(sums.by_agent)


def test_prometheus_own_check_finds_nothing_to_say(site: Site, promtool: str) -> None:
    site.load("logs", "a*..%2Fü.<b>", times=2)
    checked = subprocess.run(
        [promtool, "check", "metrics"],
        input=scraped({"main": site.lake}),
        capture_output=True,
        check=False,
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")
