"""Requests, commits, races and phases are counted where they happen; no other store's are among them."""

from __future__ import annotations

from collections import Counter
from threading import Thread
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake_core import naming
from lake_core.store.meter import PROCESS, READS, RECEIVED, Counts, Meter, meter_of
from log_lake.agents.agent import here
from log_lake.agents.costs import cost_text, shares
from log_lake.agents.driver import carry_out, find, report
from log_lake.agents.jobs import list_jobs
from log_lake.lake import Lake
from log_lake.stores.guard import GuardedStore
from log_lake.stores.memory import MemoryStore
from log_lake.stores.sends import kind_of
from tests.support.stores import ScriptedStore

NUMBERS = st.lists(st.integers(0, 1 << 40), min_size=8, max_size=8)
SECONDS = st.dictionaries(st.sampled_from(["load.read", "load.sort", "scan.read"]), st.integers(1, 99))
KINDS = {"reads": ("get", "open_input"), "lists": ("list",), "writes": ("create", "put", "open_output")}


def records(*keys: int) -> pa.Table:
    return pa.table({"k": list(keys), "s": ["a"] * len(keys)})


def test_a_meter_counts_each_call_of_the_store() -> None:
    scripted = ScriptedStore(MemoryStore("memory://counted"))
    lake = Lake.create_on(scripted)
    branch = lake.create_pool("logs", key="k").branch()
    for number in range(5):
        branch.append(records(number))
    branch.delete(where="k = 2")
    assert lake.pool("logs").at().to_table().num_rows == 4
    counts, asked = lake.store.meter.counts(), Counter(request for request, _ in scripted.requests)
    for kind, requests in KINDS.items():
        assert getattr(counts, kind) == sum(asked[one] for one in requests), (kind, asked)
    assert counts.deletes == asked["delete"]
    assert (counts.commits, counts.races_lost) == (6, 0)
    assert {"load.sort", "load.write", "load.commit", "scan.plan", "scan.read"} == set(counts.seconds)
    assert all(seconds > 0 for seconds in counts.seconds.values())


def test_bytes_are_those_of_the_objects(tmp_path: Any) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    branch = lake.create_pool("logs", key="k").branch()
    before = lake.store.meter.counts()
    branch.append(records(*range(1_000)))
    sent = (lake.store.meter.counts() - before).sent
    (reference,) = lake.pool("logs").at().references
    written = sum(one.size for one in lake.store.list(lake.pool("logs").config.id) if one.size > 1)
    assert reference.size < sent <= written + 100  # also the activity note
    again = Lake.open(lake.store.uri)
    view = again.pool("logs").at()
    before = again.store.meter.counts()
    view.to_table()
    read = again.store.meter.counts() - before
    assert (read.reads, read.received) == (1, reference.size)


def test_a_lost_race_is_counted_by_the_writer_that_lost_it() -> None:
    scripted = ScriptedStore(MemoryStore("memory://races"))
    lake = Lake.create_on(scripted)
    branch = lake.create_pool("logs", key="k").branch()
    branch.append(records(1))
    other = Lake.open_on(scripted.behind).pool("logs").branch()
    entry = naming.entry(naming.pool_journal(branch.config.id), 2)
    scripted.on("create", entry, before=lambda: other.append(records(2)))
    branch.append(records(3))
    assert (lake.store.meter.counts().commits, lake.store.meter.counts().races_lost) == (2, 1)
    assert (meter_of(other.store).counts().commits, meter_of(other.store).counts().races_lost) == (1, 0)


def test_threads_lose_no_count() -> None:
    meter, before = Meter(), PROCESS.counts()

    def work() -> None:
        for _ in range(2_000):
            meter.request(READS, 3, RECEIVED)

    threads = [Thread(target=work) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert (meter.counts().reads, meter.counts().received) == (8_000, 24_000)
    assert (PROCESS.counts() - before).reads >= 8_000


def test_a_store_that_counts_its_own_requests_is_believed() -> None:
    class OnServer(MemoryStore):
        def __init__(self) -> None:
            super().__init__("memory://server")
            self.meter = Meter()

    behind = OnServer()
    guard = GuardedStore(behind)
    guard.put("a", b"1")
    assert guard.meter is behind.meter
    assert guard.meter.counts() == Counts()


@pytest.mark.parametrize(
    ("method", "path", "query", "kind"),
    [
        ("GET", "/bucket/a", {}, "reads"),
        ("HEAD", "/bucket/a", {}, "reads"),
        ("GET", "/bucket", {"list-type": "2", "prefix": "a"}, "lists"),
        ("GET", "/storage/v1/b/bucket/o", {"prefix": "a"}, "lists"),
        ("GET", "/storage/v1/b/bucket/o/a", {"alt": "media"}, "reads"),
        ("PUT", "/bucket/a", {}, "writes"),
        ("POST", "/bucket/a", {"uploads": ""}, "writes"),
        ("POST", "/bucket", {"delete": ""}, "deletes"),
        ("DELETE", "/bucket/a", {}, "deletes"),
    ],
)
def test_the_kind_of_a_request_is_that_of_the_price_list(
    method: str, path: str, query: dict[str, str], kind: str
) -> None:
    meter = Meter()
    meter.count(kind_of(method, path, query))
    assert meter.counts() == Counts(**{kind: 1})


@given(numbers=NUMBERS, seconds=SECONDS, parts=st.integers(1, 7))
def test_shares_of_a_cost_are_the_cost(numbers: list[int], seconds: dict[str, int], parts: int) -> None:
    cost = Counts.of(numbers, seconds)
    parted = shares(cost, parts)
    assert len(parted) == parts
    total = sum(parted, Counts())
    assert total.numbers == cost.numbers
    assert total.seconds == pytest.approx(cost.seconds)
    assert all(
        abs(a - b) < parts for one in parted for a, b in zip(one.numbers, parted[-1].numbers, strict=True)
    )


def test_a_cost_in_words_leaves_out_what_is_nothing() -> None:
    assert cost_text(Counts()) == ""
    assert cost_text(Counts(reads=1)) == "1 request"
    assert (
        cost_text(Counts(reads=2, lists=1, received=1_500, sent=20))
        == "3 requests, 1.5 kB read, 20 B written"
    )


@pytest.mark.parametrize("agent", ["compact", "checkpoint"])
def test_a_job_of_an_agent_says_what_it_cost(agent: str, caplog: pytest.LogCaptureFixture) -> None:
    lake = Lake.create_on(MemoryStore(f"memory://cost-{agent}"))
    for pool in ("logs", "users"):
        branch = lake.create_pool(pool, key="k", settings={"checkpoint.entries": "8"}).branch()
        for number in range(12):
            branch.append(records(number, 100))
    handed = find(agent, {"lake": "x"}, open_lake=lambda _: lake)
    before = lake.store.meter.counts()
    outcome = carry_out(agent, handed.work, open_lake=lambda _: lake, open_workers=here)
    spent = lake.store.meter.counts() - before
    jobs = list_jobs(lake, agent=agent)
    assert {job.pool for job in jobs} == {"logs", "users"} or agent == "checkpoint"
    costs = [job.cost for job in jobs if job.cost is not None]
    assert len(costs) == len(jobs) >= 2
    total = sum(costs, Counts())
    assert 0 < total.requests < spent.requests  # the records of the jobs are not among them
    assert total.sent > 0
    if agent == "compact":
        assert (total.commits, set(total.seconds)) == (
            2,
            {"rewriting.plan", "rewriting.write", "rewriting.commit"},
        )
    assert sum((one.cost or Counts() for one in outcome.results), Counts()).requests == total.requests
    with caplog.at_level("INFO"):
        report(agent, handed, outcome.results)
    assert any(line.startswith(f"the work cost {total.requests:,} requests") for line in caplog.messages)
