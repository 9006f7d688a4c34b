"""What agents remember: idle pools cost one listing together, and no work is found later than without memory."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake_core import naming
from lake_core.agents.checkpoint.run import POOLS
from lake_core.agents.compact.run import compact_pool, plan_pool
from lake_core.agents.quiet import FORGET
from lake_core.errors import NotFound, Unavailable
from lake_core.history.activity import RENEW, SKEW
from lake_core.lake import Lake
from lake_core.naming import IdSource
from lake_core.store.memory import MemoryStore
from tests.support.clocks import DAY, Clock
from tests.support.stores import ScriptedStore

AGENTS = ("compact", "checkpoint", "tombstones")
OVER = RENEW + SKEW
"""Seconds after which a note says that a pool is quiet."""


class Site:
    """A lake of three pools with one record each, on a clock of its own."""

    def __init__(self) -> None:
        self.clock = Clock(1_800_000_000.0)
        self.store = ScriptedStore(MemoryStore(clock=self.clock))
        self.lake = Lake.create_on(self.store, ids=IdSource(clock=self.clock))
        self.names = ["a", "b", "c"]
        for name in self.names:
            self.lake.create_pool(name, key="k", settings={"compact.depth": "1", "checkpoint.entries": "2"})
            self.append(name)

    def append(self, name: str) -> None:
        self.lake.pool(name).branch().append(pa.table({"k": [1, 2]}))

    def find(self, agent: str, **asked: Any) -> list[str]:
        """The pools in which a new process of the agent finds work."""
        lake = Lake.open_on(self.store, ids=IdSource(clock=self.clock))
        self.store.requests.clear()
        find = importlib.import_module(f"lake_core.agents.{agent}.run").find
        return [work["pool"] for work in find({"lake": "x", **asked}, open_lake=lambda name: lake)]

    def looked_at(self) -> list[str]:
        """The pools whose folders the last `find` asked for something."""
        asked_for = {name.partition("/")[0] for _, name in self.store.requests}
        return [name for name in self.names if self.lake.pool(name).config.id in asked_for]

    def settle(self, agent: str) -> None:
        """Two runs, the second so late that it sees that the pools are quiet."""
        self.clock.now += OVER
        self.find(agent)


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.mark.parametrize("agent", AGENTS)
def test_idle_pools_cost_one_read_and_one_listing_together(site: Site, agent: str) -> None:
    site.settle(agent)
    assert site.looked_at() == site.names
    site.clock.now += 600
    assert site.find(agent) == []
    assert site.looked_at() == []
    others = [(r, n) for r, n in site.store.requests if not n.startswith(("pools", "lake.json"))]
    assert others == [("get", others[0][1]), ("list", naming.ACTIVITY)][: len(others)]
    assert len(others) == 2
    assert others[0][1].startswith(f"{naming.QUIET}/{agent}.")


@pytest.mark.parametrize("agent", AGENTS)
def test_a_pool_is_looked_at_again_when_it_was_written_to(site: Site, agent: str) -> None:
    site.settle(agent)
    site.append("b")
    site.find(agent)
    assert site.looked_at() == ["b"]
    site.find(agent)
    assert site.looked_at() == ["b"], "the writer may have gone on"


def test_a_pool_that_became_quiet_is_left_alone_with_the_others(site: Site) -> None:
    site.settle("tombstones")
    site.append("b")
    site.clock.now += OVER
    site.find("tombstones")
    assert site.looked_at() == ["b"]
    site.find("tombstones")
    assert site.looked_at() == []


@pytest.mark.parametrize("agent", AGENTS)
def test_a_look_soon_after_a_commit_is_not_remembered_as_quiet(site: Site, agent: str) -> None:
    site.clock.now += OVER - 1
    site.find(agent)
    site.find(agent)
    assert site.looked_at() == site.names


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize(
    "change",
    [
        lambda site: site.lake.configure_pool("b", {"compact.depth": "3"}),
        lambda site: site.store.behind.delete(naming.activity(site.lake.pool("b").config.id)),
    ],
    ids=["its settings", "no note"],
)
def test_a_pool_is_looked_at_if_what_is_known_of_it_changed(
    site: Site, agent: str, change: Callable[[Site], object]
) -> None:
    site.settle(agent)
    change(site)
    site.find(agent)
    assert site.looked_at() == ["b"]


@pytest.mark.parametrize("agent", AGENTS)
def test_a_pool_without_a_note_gets_one_and_becomes_quiet(site: Site, agent: str) -> None:
    site.lake.create_pool("empty", key="k")
    site.names.append("empty")
    site.settle(agent)
    site.settle(agent)
    site.find(agent)
    assert site.looked_at() == []


@pytest.mark.parametrize("agent", AGENTS)
def test_a_store_that_refuses_the_memory_is_asked_for_nothing_more_and_work_is_found(
    site: Site, agent: str, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse() -> None:
        raise Unavailable("not allowed to write")

    site.lake.create_pool("empty", key="k")
    site.lake.pool("b").branch().append(pa.table({"k": [1]}))
    site.lake.pool("b").branch().delete(where="k = 2")
    site.clock.now += DAY
    caplog.set_level("INFO")
    site.store.on("put", "", instead=refuse, times=99)
    assert "b" in site.find(agent)
    asked_to_write = [name for request, name in site.store.requests if request == "put"]
    assert [name.partition(".")[0] for name in asked_to_write] == [f"{naming.QUIET}/{agent}"]
    assert "not allowed to write; the next run looks at every pool" in caplog.messages


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("asked", [{"pools": ["b"]}, {"dry_run": True}], ids=["named", "dry run"])
def test_a_person_who_asks_has_the_pools_looked_at(site: Site, agent: str, asked: dict[str, Any]) -> None:
    site.settle(agent)
    site.find(agent, **asked)
    assert site.looked_at() == asked.get("pools", site.names)
    site.find(agent)
    assert site.looked_at() == [], "what the runs remember is as it was"


@pytest.mark.parametrize("asked", [{"branch": "dev"}, {"strategy": "full"}], ids=["branch", "strategy"])
def test_runs_that_ask_for_other_things_have_a_memory_of_their_own(site: Site, asked: dict[str, Any]) -> None:
    for name in site.names:
        site.lake.pool(name).create_branch("dev")
    site.settle("compact")
    site.find("compact", **asked)
    assert site.looked_at() == site.names
    site.find("compact", **asked)
    assert site.looked_at() == []


@pytest.mark.parametrize("agent", ["compact", "tombstones", "retention"])
def test_a_branch_that_no_pool_has_fails_the_run_and_one_that_a_quiet_pool_has_does_not(
    site: Site, agent: str
) -> None:
    with pytest.raises(NotFound, match="'dve'"):
        site.find(agent, branch="dve")
    site.lake.configure_pool("a", {"agents": "paused"})
    assert site.find(agent, branch="dve") == ["a"], "put off: it may have the branch, and the others have not"
    site.lake.configure_pool("a", {"agents": "active"})
    site.lake.pool("a").create_branch("dve")
    site.clock.now += OVER
    for _ in range(2):
        assert site.find(agent, branch="dve") == []


@pytest.mark.parametrize("garbage", [b"", b"{", b"[1]", b'{"x": 1}', b'{"x": {"at": "now"}}', b"\xff"])
@pytest.mark.parametrize("agent", AGENTS)
def test_a_memory_that_cannot_be_read_is_none(site: Site, agent: str, garbage: bytes) -> None:
    site.settle(agent)
    for info in list(site.store.behind.list(naming.QUIET)):
        site.store.behind.put(info.name, garbage)
    site.find(agent)
    assert site.looked_at() == site.names


@pytest.mark.parametrize("agent", AGENTS)
def test_a_look_is_forgotten_after_a_day_and_before_its_own_time(site: Site, agent: str) -> None:
    for name in site.names:
        site.lake.configure_pool(name, {"checkpoint.age": "9d", "compact.window": "9d"})
    site.settle(agent)
    site.clock.now += FORGET - 1
    site.find(agent)
    assert site.looked_at() == []
    site.clock.now += 1
    site.find(agent)
    assert site.looked_at() == site.names
    site.clock.now -= 3 * FORGET  # a clock that was set back
    site.find(agent)
    assert site.looked_at() == site.names


def test_a_checkpoint_is_due_by_age_when_it_would_be_without_memory(site: Site) -> None:
    site.lake.configure_pool("b", {"checkpoint.age": "2h"})
    begun = site.clock.now
    site.settle("checkpoint")
    site.clock.now = begun + 7200 - 1
    assert site.find("checkpoint") == []
    site.clock.now += 1
    assert site.find("checkpoint") == ["b"]


def test_a_window_that_closes_is_compacted_when_it_would_be_without_memory(site: Site) -> None:
    policy = {"compact.strategy": "time_window", "compact.window": "1d", "compact.ratio": "999"}
    branch = site.lake.create_pool("t", key="t", settings=policy).branch()
    begin = site.clock.now // DAY * DAY
    for minutes in (1, 2):
        branch.append(pa.table({"t": pa.array([(begin + 60 * minutes) * 1e6], pa.timestamp("us", "UTC"))}))
    site.settle("compact")
    site.clock.now = begin + 2 * DAY - 1
    assert site.find("compact") == []
    site.clock.now += 1
    assert site.find("compact") == ["t"]


def test_a_pool_with_deletes_is_looked_at_in_every_run(site: Site) -> None:
    site.lake.pool("b").branch().delete(where="k = 1")
    site.settle("tombstones")
    site.find("tombstones")
    assert site.looked_at() == ["b"]
    site.clock.now += DAY
    assert site.find("tombstones") == ["b"]


def test_a_pool_with_work_is_handed_out_until_it_is_done(site: Site) -> None:
    site.append("b")
    site.settle("compact")
    assert site.find("compact") == ["b"]
    assert site.find("compact") == ["b"]
    compact_pool(site.lake, "b", plan_pool(site.lake, "b", now=site.clock.now))
    assert site.find("compact") == []


STEPS = ("append", "delete", "compact", "configure", "find")


@settings(max_examples=60, deadline=None)
@given(
    agent=st.sampled_from(AGENTS),
    steps=st.lists(
        st.tuples(
            st.sampled_from(STEPS),
            st.sampled_from(["a", "b", "c"]),
            st.sampled_from([0, 60, RENEW, OVER, 3600, DAY / 2, 3 * DAY]),
        ),
        max_size=12,
    ),
)
def test_every_run_finds_the_work_that_a_run_without_memory_finds(
    agent: str, steps: list[tuple[str, str, float]]
) -> None:
    site = Site()
    for what, name, seconds in [*steps, ("find", "a", 0.0)]:
        site.clock.now += seconds
        if what == "append":
            site.append(name)
        elif what == "delete":
            site.lake.pool(name).branch().delete(where="k = 1")
        elif what == "compact":
            compact_pool(site.lake, name, plan_pool(site.lake, name, now=site.clock.now))
        elif what == "configure":
            now = site.lake.pool(name).settings["compact.depth"]
            site.lake.configure_pool(name, {"compact.depth": "3" if now == 1 else "1"})
        else:
            also = [POOLS] if agent == "checkpoint" else []
            assert site.find(agent) == site.find(agent, pools=[*also, *site.names])
