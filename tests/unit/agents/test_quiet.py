"""What agents remember: idle pools cost one listing together, and no work is found later than without memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from hashlib import sha256
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake_core import naming
from lake_core.errors import NotFound, Unavailable
from lake_core.history.activity import RENEW, SKEW
from lake_core.ids import IdSource
from log_lake.agents import driver
from log_lake.agents.checkpoint.run import POOLS
from log_lake.agents.compact.run import compact_pool, plan_pool
from log_lake.agents.quiet import forgotten_after
from log_lake.agents.retention.run import retain
from log_lake.agents.roster import AGENTS as ROSTER
from log_lake.agents.tombstones.run import apply as apply_tombstones
from log_lake.compaction.planner import Planner
from log_lake.erasure.begin import begin
from log_lake.erasure.receipt import read_all
from log_lake.lake import Lake
from log_lake.repair.rebuild import Wanted, plan_rebuild, rebuild
from log_lake.rewriting.compaction import compact
from log_lake.stores.memory import MemoryStore
from tests.support.agents import finder
from tests.support.clocks import DAY, Clock
from tests.support.stores import ALWAYS, ScriptedStore, unavailable

AGENTS = ("compact", "checkpoint", "tombstones", "retention", "erasure")
OVER = RENEW + SKEW
"""Seconds after which a note says that a pool is quiet."""
UTF = b'{"\xff": {}}'
DEEP = b'{"x": {"y": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}"


class Site:
    """A lake of three pools with one record each, on a clock of its own.

    The ids are the same in every run: they decide when a look is forgotten, and random ones may be close together.
    """

    def __init__(self) -> None:
        self.clock = Clock(1_800_000_000.0)
        self.store = ScriptedStore(MemoryStore(clock=self.clock))
        ids = IdSource(clock=self.clock, entropy=Random(1).randbytes)
        self.lake = Lake.create_on(self.store, ids=ids)
        self.names = ["a", "b", "c"]
        for name in self.names:
            self.lake.create_pool(name, key="k", settings={"compact.depth": "1", "checkpoint.entries": "2"})
            self.append(name)

    def append(self, name: str) -> None:
        self.lake.pool(name).branch().append(pa.table({"k": [1, 2]}))

    def give_work(self, agent: str, name: str) -> None:
        """Do what brings the agent work in a pool, at once or a day later."""
        pool = self.lake.pool(name)
        if agent == "erasure":
            begin(pool, where="k = 1")
        elif agent == "tombstones":
            pool.branch().delete(where="k = 1")
        elif agent == "retention":
            self.lake.configure_pool(name, {"expire.age": "1h"})
        for _ in range(2):
            self.append(name)

    def find(self, agent: str, *, recurring: bool = False, **asked: Any) -> list[str]:
        """The pools in which a new process of the agent finds work, by name: the time decides their order."""
        lake = Lake.open_on(self.store, ids=IdSource(clock=self.clock))
        self.store.requests.clear()
        find = finder(agent)
        how: dict[str, Any] = {"open_lake": lambda name: lake, **({"recurring": True} if recurring else {})}
        return sorted(work["pool"] for work in find({"lake": "x", **asked}, **how))

    def looked_at(self) -> list[str]:
        """The pools whose folders the last `find` asked for something."""
        asked_for = {name.partition("/")[0] for _, name in self.store.requests}
        return [name for name in self.names if self.lake.pool(name).config.id in asked_for]

    @staticmethod
    def memory(agent: str) -> str:
        """The name of what the agent remembers of runs on `main`."""
        return naming.quiet(agent, sha256(b'["main",null]').hexdigest()[:16])

    def rest(self, agent: str) -> None:
        """Let so much time pass that a look at the pools sees that they are quiet."""
        for _ in range(2 if agent == "retention" else 0):  # it has scanned all names, and purged all entries
            self.clock.now += 40 * DAY
            for name in self.names:
                retain(self.lake, name)
        self.clock.now += OVER

    def settle(self, agent: str) -> None:
        """Rest, and a run that sees it."""
        self.rest(agent)
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
    of_lake = (
        [("list", naming.TRANSACTIONS)] if agent == "retention" else []
    )  # it ends those that are open too long
    assert others == [("get", others[0][1]), ("list", naming.ACTIVITY), *of_lake]
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
def test_idle_pools_that_a_group_names_cost_no_more(site: Site, agent: str) -> None:
    site.rest(agent)
    for pools in (["a", "b"], ["b", "a"], ["c"]):
        site.find(agent, pools=pools, recurring=True)
    assert site.looked_at() == ["c"], "each group remembers for itself"
    site.clock.now += 600
    for pools in (["a", "b"], ["c"]):
        assert site.find(agent, pools=pools, recurring=True) == []
        assert site.looked_at() == []
    site.append("b")
    site.find(agent, pools=["a", "b"], recurring=True)
    assert site.looked_at() == ["b"]
    site.find(agent, pools=["a", "b"])
    assert site.looked_at() == ["a", "b"], "a person asks"
    site.find(agent)
    assert site.looked_at() == site.names


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
def test_a_store_that_refuses_the_memory_is_asked_for_nothing_more_and_work_is_found(
    site: Site, agent: str, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse() -> None:
        raise Unavailable("not allowed to write")

    site.lake.create_pool("empty", key="k")
    site.give_work(agent, "b")
    site.clock.now += DAY
    caplog.set_level("INFO")
    site.store.on("put", "", instead=refuse, times=99)
    assert "b" in site.find(agent)
    asked_to_write = [name for request, name in site.store.requests if request == "put"]
    assert [name.partition(".")[0] for name in asked_to_write] == [f"{naming.QUIET}/{agent}"]
    assert caplog.messages[-1].endswith(": not written: not allowed to write; the next run looks again")


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


@pytest.mark.parametrize(
    "garbage", [b"", b"{", b"[1]", b'{"x": 1}', b'{"x": {"at": "now"}}', b"\xff", UTF, DEEP]
)
@pytest.mark.parametrize("agent", AGENTS)
def test_a_memory_that_cannot_be_read_is_none(site: Site, agent: str, garbage: bytes) -> None:
    site.settle(agent)
    for info in list(site.store.behind.list(naming.QUIET)):
        site.store.behind.put(info.name, garbage)
    site.find(agent)
    assert site.looked_at() == site.names


@pytest.mark.parametrize("agent", AGENTS)
def test_a_look_at_a_pool_is_forgotten_in_time_and_not_at_one_time_for_all(site: Site, agent: str) -> None:
    for name in site.names:
        site.lake.configure_pool(name, {"checkpoint.age": "9d", "compact.window": "9d"})
    site.settle(agent)
    remembers = ROSTER[agent].remembers
    begun, times = (
        site.clock.now,
        {n: forgotten_after(site.lake.pool(n).config.id, remembers) for n in site.names},
    )
    assert len({*times.values()}) == 3
    for name in sorted(times, key=times.__getitem__):
        site.clock.now = begun + times[name] - 1
        site.find(agent)
        assert name not in site.looked_at()
        site.clock.now = begun + times[name]
        site.find(agent)
        assert site.looked_at() == [name]
    site.clock.now -= 3 * remembers  # a clock that was set back
    site.find(agent)
    assert site.looked_at() == site.names


def test_looks_at_many_pools_are_forgotten_evenly_over_half_a_day() -> None:
    times = [forgotten_after(f"pool {number}", DAY) for number in range(10_000)]
    by_hour = Counter(int(time // 3600) for time in times)
    assert sorted(by_hour) == list(range(12, 24))
    assert all(700 < pools < 1_000 for pools in by_hour.values())


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


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("refused", ["put", "get", "list"])
def test_an_agent_that_may_not_use_the_hints_looks_at_all_pools(site: Site, agent: str, refused: str) -> None:
    if refused != "put":
        site.settle(agent)
    name = naming.ACTIVITY if refused == "list" else site.memory(agent)
    site.store.on(refused, name, instead=unavailable, times=ALWAYS)
    for _ in range(2):
        assert site.find(agent) == []
        assert site.looked_at() == site.names


@pytest.mark.parametrize("agent", AGENTS)
def test_what_was_seen_under_a_name_is_remembered_of_the_pool_that_had_it(site: Site, agent: str) -> None:
    for name in ("a", "b"):
        site.lake.configure_pool(name, {"compact.depth": "9", "checkpoint.age": "900d"})
    site.lake.configure_pool("b", {"compact.depth": "1"})
    site.give_work(agent, "b")
    site.clock.now += 2 * DAY
    assert site.find(agent, pools=["b"]) == ["b"]

    def swap() -> None:  # the run has its list of pools, and looks at none of them yet
        site.lake.rename_pool("b", "c2")
        site.lake.rename_pool("a", "b")

    site.store.on("get", site.memory(agent), before=swap)
    site.find(agent)
    assert site.find(agent, pools=["c2"]) == ["c2"]
    assert "c2" in site.find(agent)


@pytest.mark.parametrize("agent", AGENTS)
def test_a_pool_that_was_rebuilt_is_looked_at(site: Site, agent: str) -> None:
    site.settle(agent)
    id = site.lake.pool("b").config.id
    for info in list(site.store.behind.list(naming.pool_journal(id))):
        site.store.behind.delete(info.name)
    lake = Lake.open_on(site.store, ids=IdSource(clock=site.clock))
    rebuild(lake, plan_rebuild(lake, "b", Wanted()))
    site.find(agent)
    assert site.looked_at() == ["b"]


def test_a_strategy_that_waits_for_a_time_of_its_own_finds_its_work_in_time(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    due = site.clock.now + OVER + 2 * 3600

    def at_last(planner: Planner) -> None:
        if planner.now >= due:
            planner.settle(list(planner.references), "it is time")

    monkeypatch.setattr("log_lake.agents.compact.plan.find_strategy", lambda name: at_last)
    for name in site.names:
        site.append(name)
    site.settle("compact")
    site.clock.now = due - 1
    assert site.find("compact") == []
    site.clock.now = due
    assert site.find("compact") == site.names


@pytest.mark.parametrize("agent", AGENTS)
def test_pools_of_before_there_were_notes_become_quiet_too(site: Site, agent: str) -> None:
    site.lake.create_pool("never", key="k")
    for info in list(site.store.behind.list(naming.ACTIVITY)):
        site.store.behind.delete(info.name)
    site.names.append("never")
    site.settle(agent)
    assert site.looked_at() == site.names
    site.settle(agent)
    site.find(agent)
    assert site.looked_at() == []


def test_retention_finds_on_each_day_what_it_would_find_without_memory_and_seldom_looks(site: Site) -> None:
    """Expiry by age, scan, vacuum and purge come by time alone, at different times in the three pools.

    A look is forgotten after 4 to 7 runs, by the pool's random id.  The bounds are the counts for 4.
    """
    site.lake.configure_pool("b", {"expire.age": "25d", "vacuum.grace": "60d"})
    site.lake.configure_pool("c", {"history.keep": "12d", "vacuum.grace": "2d"})
    site.lake.pool("c").branch().delete(where="k = 1")
    apply_tombstones(site.lake.pool("c").branch(), now=site.clock.now, at_once=True)
    worked, looks = Counter[str](), Counter[str]()
    for _ in range(150):
        site.clock.now += DAY
        found = site.find("retention")
        looks.update(site.looked_at())
        assert site.find("retention", pools=site.names) == found
        worked.update(found)
        for name in found:
            retain(site.lake, name)
    assert worked == {"a": 2, "b": 6, "c": 3}
    assert looks["a"] <= 49
    assert looks["c"] <= 51


def test_an_erasure_that_another_process_began_is_found_by_the_next_run(site: Site) -> None:
    site.settle("erasure")
    begin(site.lake.pool("b"), where="k = 1")
    assert site.find("erasure") == ["b"]
    assert site.looked_at() == ["b"]


def test_an_erasure_whose_receipt_is_written_late_is_found_by_the_next_run(site: Site) -> None:
    """The process stands still between its note and its receipt, while a run looks at the pool."""
    pool = site.lake.pool("b")

    def stall() -> None:
        site.clock.now += 2 * OVER
        assert site.find("erasure") == []

    site.rest("erasure")
    site.store.on("put", ".json", before=stall)  # the receipt
    begin(pool, where="k = 1")
    assert site.find("erasure") == ["b"]


@pytest.mark.parametrize("paused", [False, True])
def test_an_erasure_that_a_run_asks_for_in_quiet_pools_of_its_group_is_found(
    site: Site, paused: bool
) -> None:
    """A person is asked first, so `find` has begun none that would write to the pool."""
    if paused:
        site.lake.configure_pool("b", {"agents": "paused"})
    site.rest("erasure")
    assert site.find("erasure", pools=["b"], recurring=True) == []
    site.clock.now += 600
    how: dict[str, Any] = {"open_lake": lambda name: site.lake, "recurring": True, "begins": False}
    handed = driver.find("erasure", {"lake": "x", "pools": ["b"], "where": "k = 1"}, **how)
    assert [one.pool for one in (handed.put_off if paused else handed.work)] == ["b"]
    site.find("erasure", pools=["b"], recurring=True)
    assert site.looked_at() == [], "a run that asks for no erasure remembers"


def test_a_sub_pool_without_an_erasure_does_not_hide_that_of_its_pool(site: Site) -> None:
    begin(site.lake.pool("b"), where="k = 1")
    site.rest("erasure")
    for _ in range(2):
        assert site.find("erasure", pools=["b", "b.$nokey"], recurring=True) == ["b"]


def test_paused_pools_without_an_erasure_cost_no_more_than_others(site: Site) -> None:
    for name in ("a", "b"):
        site.lake.configure_pool(name, {"agents": "paused"})
    begin(site.lake.pool("b"), where="k = 1")
    site.settle("erasure")
    assert site.find("erasure") == ["b"]
    assert site.looked_at() == ["b"], "its erasure is pending"


def test_an_erasure_is_not_begun_if_the_store_takes_no_activity_note(site: Site) -> None:
    """Otherwise the agent may leave the pool alone for a week."""
    pool = site.lake.pool("b")
    site.store.on("put", naming.activity(pool.config.id), instead=unavailable, times=ALWAYS)
    with pytest.raises(Unavailable, match="took no activity note; its receipt was not written"):
        begin(pool, where="k = 1")
    assert list(read_all(pool)) == []


STEPS = ("append", "delete", "compact", "configure", "erase", "retain", "find")


@settings(max_examples=60, deadline=None)
@given(
    agent=st.sampled_from(AGENTS),
    steps=st.lists(
        st.tuples(
            st.sampled_from(STEPS),
            st.sampled_from(["a", "b", "c"]),
            st.sampled_from([0, 60, RENEW, OVER, 3600, DAY / 2, DAY, 3 * DAY, 31 * DAY]),
        ),
        max_size=12,
    ),
)
def test_every_run_finds_the_work_that_a_run_without_memory_finds(
    agent: str, steps: list[tuple[str, str, float]]
) -> None:
    site = Site()
    site.lake.configure_pool("c", {"expire.age": "5d"})
    for what, name, seconds in [*steps, ("find", "a", 0.0)]:
        site.clock.now += seconds
        if what == "append":
            site.append(name)
        elif what == "delete":
            site.lake.pool(name).branch().delete(where="k = 1")
        elif what == "compact":
            compact_pool(site.lake, name, plan_pool(site.lake, name, now=site.clock.now))
        elif what == "erase":
            begin(site.lake.pool(name), where="k = 1")
        elif what == "retain":
            retain(site.lake, name)
        elif what == "configure":
            now = site.lake.pool(name).settings["compact.depth"]
            site.lake.configure_pool(name, {"compact.depth": "3" if now == 1 else "1"})
        else:
            also = [POOLS] if agent == "checkpoint" else []
            assert site.find(agent) == site.find(agent, pools=[*also, *site.names])


def test_the_retention_agent_rests_until_the_first_grace_time_ends(site: Site) -> None:
    site.append("a")
    branch = site.lake.pool("a").branch()
    compact(branch, branch.revision().references)
    removed = site.clock.now
    site.clock.now += OVER
    assert site.find("retention") == []
    assert site.looked_at() == site.names
    assert not [name for _, name in site.store.requests if "/leases/" in name]
    site.clock.now += OVER
    assert site.find("retention") == []
    assert site.looked_at() == []
    settings = site.lake.pool("a").settings
    site.clock.now = removed + max(settings["vacuum.grace"], settings["history.keep"]) + OVER
    assert "a" in site.find("retention")
