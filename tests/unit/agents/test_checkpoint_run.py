"""The checkpoint agent without Spark: which journals want work, the work, the report."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from lake_core import naming
from lake_core.errors import Incomplete, InvalidInput, NotFound
from lake_core.ids import IdSource
from lake_core.journal import Purged
from lake_core.journal.marks import Mark
from lake_core.journal.purge import write_newest
from log_lake.agents.checkpoint.plan import policy_of
from log_lake.agents.checkpoint.run import (
    POOLS,
    all_journals,
    checkpoint_and_purge,
    journal_of,
    look,
    plan_purge,
    purge_pool,
    purge_until,
    settings_of,
    write_between,
    write_checkpoint,
)
from log_lake.lake import Lake
from tests.support.agents import finder, reporter
from tests.support.clocks import DAY, Clock
from tests.support.records import add, draft
from tests.support.stores import InPlaceStore, ScriptedStore

report = reporter("checkpoint")
find = finder("checkpoint")

START = 2_000_000_000.0


@pytest.fixture
def clock() -> Clock:
    return Clock(START)


@pytest.fixture
def store(clock: Clock) -> ScriptedStore:
    return ScriptedStore(InPlaceStore(clock=clock))


@pytest.fixture
def lake(store: ScriptedStore, clock: Clock) -> Lake:
    lake = Lake.create_on(store, ids=IdSource(clock=clock), author="test")
    lake.create_pool(
        "p", key="k", settings={"checkpoint.entries": "3", "checkpoint.age": "1d", "history.keep": "2d"}
    )
    return lake


def commit(lake: Lake, *numbers: int, token: str = "") -> None:
    for n in numbers:
        lake.pool("p").history.commit(draft(n, add(n), token=token))


def again(lake: Lake) -> Lake:
    """The lake as another process opens it."""
    return Lake.open_on(lake.store, ids=lake.context.ids, author="test")


def due(lake: Lake, clock: Clock) -> dict[str, str]:
    """Why each journal wants a checkpoint, of those that do."""
    opened = again(lake)
    looked = {name: look(opened, name, now=clock.now) for name in all_journals(opened)}
    return {name: why for name, why in looked.items() if why}


def checkpoints(lake: Lake, pool: str = "p") -> list[int]:
    return [mark.version for mark in journal_of(lake, pool).marks().checkpoints]


def newest(lake: Lake) -> Mark:
    return journal_of(lake, "p").marks().checkpoints[0]


# ---------------------------------------------------------------- which journals want a checkpoint


def test_a_new_pool_wants_nothing(lake: Lake, clock: Clock) -> None:
    assert due(lake, clock) == {}


def test_a_pool_wants_a_checkpoint_after_so_many_transactions(lake: Lake, clock: Clock) -> None:
    commit(lake, 1, 2)
    assert due(lake, clock) == {}
    commit(lake, 3)
    assert due(lake, clock) == {"p": "3 entries or more since the last checkpoint"}
    write_checkpoint(lake, "p", now=clock.now)
    assert due(lake, clock) == {}
    commit(lake, 4, 5, 6)
    assert list(due(lake, clock)) == ["p"]


def test_a_pool_wants_a_checkpoint_when_its_tail_is_old(lake: Lake, clock: Clock) -> None:
    commit(lake, 1)
    clock.now += DAY - 1
    assert due(lake, clock) == {}
    clock.now += 1
    old = "the oldest entry since the last checkpoint is 1 d old"
    assert due(lake, clock) == {POOLS: old, "p": old}


def test_the_list_of_pools_is_looked_after_too(lake: Lake, clock: Clock) -> None:
    clock.now += DAY
    assert list(due(lake, clock)) == [POOLS]
    assert checkpoint_and_purge(lake, POOLS, now=clock.now).written
    assert due(lake, clock) == {}
    assert again(lake).pool("p").name == "p"


def test_each_journal_is_looked_at_on_its_own(lake: Lake, clock: Clock) -> None:
    commit(lake, 1, 2, 3)
    assert look(lake, POOLS, now=clock.now) is None
    assert look(lake, "p", now=clock.now) == "3 entries or more since the last checkpoint"
    with pytest.raises(NotFound, match="'nothing'"):
        look(lake, "nothing", now=clock.now)


def test_to_look_at_a_pool_without_news_costs_a_listing_and_a_read(lake: Lake, store: ScriptedStore) -> None:
    commit(lake, 1, 2, 3)
    write_checkpoint(lake, "p", now=START)
    lake.pools()
    store.requests.clear()
    look(lake, "p", now=START)
    name = naming.pool_journal(lake.pool("p").config.id)
    assert [(r, n) for r, n in store.requests if n.startswith(name)] == [
        ("list", naming.marks(name)),
        ("get", naming.entry(name, 4)),
    ]


def test_the_policy_is_the_pools(lake: Lake) -> None:
    assert policy_of(settings_of(lake, "p")).entries == 3
    policy = policy_of(settings_of(lake, POOLS))
    assert (policy.entries, policy.keep_seconds) == (500, 30 * DAY)


# ---------------------------------------------------------------- checkpoints


def test_a_checkpoint_is_written_once_for_a_state(lake: Lake, clock: Clock) -> None:
    commit(lake, 1, 2)
    assert write_checkpoint(lake, "p", now=clock.now) == (True, 2)
    assert write_checkpoint(lake, "p", now=clock.now) == (False, 2)
    assert checkpoints(lake) == [2]


def test_an_empty_pool_gets_none(lake: Lake, clock: Clock) -> None:
    assert write_checkpoint(lake, "p", now=clock.now) == (False, 0)
    assert checkpoints(lake) == []


def test_a_damaged_checkpoint_counts_for_nothing(lake: Lake, clock: Clock) -> None:
    commit(lake, 1, 2)
    write_checkpoint(lake, "p", now=clock.now)
    bad = newest(lake)
    lake.store.put(bad.name, (lake.store.get(bad.name) or b"")[:-100])
    assert write_checkpoint(again(lake), "p", now=clock.now) == (True, 2)
    assert checkpoints(lake) == [2, 2]
    assert again(lake).pool("p").at().version == 2


def test_a_checkpoint_is_written_though_what_its_state_rests_on_is_purged_meanwhile(
    lake: Lake, clock: Clock, store: ScriptedStore
) -> None:
    commit(lake, 1, 2)
    write_checkpoint(lake, "p", now=clock.now)
    stalled = again(lake)
    stalled.pool("p").history.load()
    commit(lake, 3)

    def others() -> None:
        faster = Lake.open_on(store.behind, ids=lake.context.ids, author="test")
        checkpoint_and_purge(faster, "p", now=clock.now)
        purge_pool(faster, "p", keep=0.0, now=clock.now + 1)

    store.on("open_output", ".checkpoint", before=others)
    assert write_checkpoint(stalled, "p", now=clock.now)[1] == 3
    assert again(lake).pool("p").at().version == 3


def test_tokens_are_forgotten_by_the_policy_of_the_pool(lake: Lake, clock: Clock) -> None:
    lake.catalog.configure("p", {"token.keep": "1h"})
    commit(lake, 1, token="t")
    assert again(lake).pool("p").history.load().state.tokens.get("t") is not None
    clock.now += 3599
    write_checkpoint(again(lake), "p", now=clock.now)
    assert again(lake).pool("p").history.load().state.tokens.get("t") is not None
    commit(lake, 2)
    clock.now += 2
    write_checkpoint(again(lake), "p", now=clock.now)
    assert again(lake).pool("p").history.load().state.tokens.get("t") is None


def test_a_process_that_runs_on_forgets_tokens_by_the_policy_that_the_pool_has_now(
    lake: Lake, clock: Clock
) -> None:
    commit(lake, 1, token="t")
    again(lake).catalog.configure("p", {"token.keep": "1h"})
    clock.now += 3601
    write_checkpoint(lake, "p", now=clock.now)
    assert again(lake).pool("p").history.load().state.tokens.get("t") is None
    commit(lake, 2, token="u")
    again(lake).catalog.configure("p", {"token.keep": "2h"})
    clock.now += 3601
    write_checkpoint(lake, "p", now=clock.now)
    assert again(lake).pool("p").history.load().state.tokens.get("u") is not None


# ---------------------------------------------------------------- purge


@pytest.fixture
def daily(lake: Lake, clock: Clock) -> Lake:
    """A transaction a day for six days, each with a checkpoint; it is the evening of the sixth."""
    for n in range(1, 7):
        commit(lake, n)
        write_checkpoint(lake, "p", now=clock.now)
        clock.now += DAY
    clock.now -= DAY / 2
    return lake


def test_a_purge_keeps_the_history_that_the_policy_says(daily: Lake, clock: Clock) -> None:
    assert purge_until(daily, "p", now=clock.now) == 4
    assert plan_purge(daily, "p", now=clock.now) == (4, 4)
    assert purge_pool(daily, "p", now=clock.now) == Purged(fence=4, entries=4, checkpoints=3)
    assert checkpoints(daily) == [6, 5, 4]
    assert plan_purge(daily, "p", now=clock.now) == (4, 0)
    assert purge_pool(daily, "p", now=clock.now) == Purged(fence=4)


@pytest.mark.parametrize(
    ("days", "until"), [(0.0, 6), (0.6, 5), (1.4, 5), (1.5, 4), (5.4, 1), (5.6, 0), (1000.0, 0)]
)
def test_a_purge_keeps_what_it_is_told_to_keep(daily: Lake, clock: Clock, days: float, until: int) -> None:
    assert purge_until(daily, "p", keep=days * DAY, now=clock.now) == until
    assert plan_purge(daily, "p", keep=days * DAY, now=clock.now) == (until, until)
    assert purge_pool(daily, "p", keep=days * DAY, now=clock.now).fence == until
    assert again(daily).pool("p").at().records == 6


def test_a_plan_does_not_count_on_a_damaged_checkpoint(daily: Lake, clock: Clock) -> None:
    daily.store.put(newest(daily).name, b"half")
    assert plan_purge(daily, "p", keep=0.0, now=clock.now) == (5, 5)
    assert purge_pool(daily, "p", keep=0.0, now=clock.now).fence == 5


def test_planning_a_purge_changes_nothing_on_the_store(daily: Lake, clock: Clock) -> None:
    before = [o.name for o in daily.store.list("")]
    plan_purge(daily, "p", keep=0.0, now=clock.now)
    assert [o.name for o in daily.store.list("")] == before


def test_a_checkpoint_says_how_many_entries_a_reader_need_not_read_any_more(lake: Lake, clock: Clock) -> None:
    def tails() -> tuple[int, int]:
        done = checkpoint_and_purge(lake, "p", now=clock.now)
        return done.tail_before, done.tail_after

    commit(lake, 1, 2, 3)
    assert (tails(), tails()) == ((3, 0), (0, 0))
    commit(lake, 4)
    assert tails() == (1, 0)


def test_upkeep_writes_the_checkpoint_and_purges_what_is_old(daily: Lake, clock: Clock) -> None:
    commit(daily, 7)
    kept = checkpoint_and_purge(daily, "p", now=clock.now)
    assert (kept.checkpoint, kept.written, kept.fence, kept.entries, kept.checkpoints) == (7, True, 4, 4, 3)
    kept = checkpoint_and_purge(daily, "p", now=clock.now)
    assert (kept.checkpoint, kept.written, kept.fence, kept.entries) == (7, False, 4, 0)
    assert checkpoint_and_purge(daily, "p", now=clock.now + 100 * DAY, purging=False).fence == 0


# ---------------------------------------------------------------- the agent's tasks


def test_a_dry_run_logs_what_is_due_and_hands_over_nothing(
    tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "log_lake.agents")
    lake = Lake.create(str(tmp_path), author="test")
    lake.create_pool("p", key="k", settings={"checkpoint.entries": "1"})
    params: dict[str, Any] = {"lake": lake.store.uri, "pools": []}
    assert find(params) == []
    assert caplog.messages == ["no checkpoint is due in 2 journals"]
    commit(lake, 1)
    assert [work["pool"] for work in find(params)] == ["p"]
    caplog.clear()
    assert find(params | {"dry_run": True}) == []
    assert caplog.messages == [
        "p: a checkpoint is due: 1 entry or more since the last checkpoint",
        "dry run: nothing is written",
    ]
    with pytest.raises(InvalidInput, match="unknown parameter 'wait'"):
        find(params | {"wait": True})
    with pytest.raises(NotFound, match="did you mean 'p'"):
        find(params | {"pools": ["P"]})


def test_a_report_sums_the_journals(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    one = {"pool": "p", "checkpoint": 1200, "written": True, "fence": 3, "entries": 2000, "checkpoints": 1}
    one |= {"tail_before": 1200, "tail_after": 0}
    assert report(
        [{"pool": "p"}, {"pool": "q"}],
        [one, one | {"pool": "q", "written": False, "entries": 0, "checkpoints": 0, "tail_before": 0}],
    ) == {
        "journals": 2,
        "entries": 2000,
    }
    assert caplog.messages == [
        "p: wrote the checkpoint of version 1,200; entries to read when it is opened: 1,200 -> 0; purged "
        "2,000 entries and 1 checkpoint",
        "q: there was a checkpoint already, the one of version 1,200; nothing to purge",
        "2 journals: purged 2,000 entries",
    ]


def test_a_report_names_the_journals_that_failed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    one = {"pool": "p", "checkpoint": 1, "written": True, "fence": 0, "entries": 0, "checkpoints": 0}
    one |= {"tail_before": 0, "tail_after": 0}
    with pytest.raises(Incomplete, match=r"^1 failure: q: damaged\. What was written stays"):
        report([{"pool": "p"}, {"pool": "q"}], [one, {"pool": "q", "failed": "damaged", "kind": "Corrupt"}])
    assert caplog.messages[0] == "p: wrote the checkpoint of version 1; nothing to purge"
    with pytest.raises(Incomplete, match="q: run failed"):
        report([{"pool": "q"}], [])
    with pytest.raises(Incomplete, match="the task `find` failed"):
        report(None, [])


# ---------------------------------------------------------------- checkpoints in between, after a long tail


def test_travel_into_a_long_tail_reads_the_entries_after_the_checkpoint_before(
    lake: Lake, store: ScriptedStore, clock: Clock
) -> None:
    commit(lake, *range(1, 58))
    expected = again(lake).pool("p").history.load_version(34).state
    journal, new_id = journal_of(again(lake), "p"), lake.context.ids.new
    newest = journal.load()
    assert (
        write_between(journal, newest, every=10, new_id=new_id, now=clock.now) == 4
    )  # the next one is the newest
    assert sorted(checkpoints(lake)) == [10, 20, 30, 40]
    assert write_between(journal, newest, every=10, new_id=new_id, now=clock.now) == 0
    reading = again(lake).pool("p").history
    store.requests.clear()
    assert reading.load_version(34).state.branches["main"].tip == expected.branches["main"].tip == 34
    read = [naming.entry_version(name) for request, name in store.requests if request == "get"]
    assert sorted(version for version in read if version is not None) == [31, 32, 33, 34]  # several at once


def test_a_short_tail_costs_no_listing_for_checkpoints_in_between(
    lake: Lake, store: ScriptedStore, clock: Clock
) -> None:
    commit(lake, *range(1, 5))
    journal, new_id = journal_of(again(lake), "p"), lake.context.ids.new
    newest = journal.load()
    store.requests.clear()
    assert write_between(journal, newest, every=3, new_id=new_id, now=clock.now) == 0
    assert store.requests == []
    assert write_newest(journal, new_id=new_id, now=clock.now, forgets=False, loaded=newest)[0]
    assert sum(request == "list" for request, _ in store.requests) == 2, (
        "for one that is there, and for a fence"
    )


def test_checkpoints_in_between_are_bounded_and_a_purge_deletes_them(lake: Lake, clock: Clock) -> None:
    commit(lake, *range(1, 41))
    journal, new_id = journal_of(again(lake), "p"), lake.context.ids.new
    assert write_between(journal, journal.load(), every=1, new_id=new_id, now=clock.now, most=3) == 3
    assert sorted(checkpoints(lake)) == [10, 20, 30]
    clock.now += 3 * DAY
    checkpoint_and_purge(lake, "p", now=clock.now)
    clock.now += 3 * DAY
    checkpoint_and_purge(lake, "p", now=clock.now)
    assert checkpoints(lake) == [40]
