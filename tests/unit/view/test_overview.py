"""Pools at a glance: what a row says, and what an idle pool costs."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from airflow_lake.reach import view_lakes
from lake_core import naming
from lake_core.errors import NotFound, Unavailable
from lake_core.ids import IdSource
from log_lake.agents.checkpoint.run import purge_pool, write_checkpoint
from log_lake.lake import Lake
from log_lake.rewriting.compaction import compact
from log_lake.texts.keytext import RangeText
from log_lake.view.figures import figures_of
from log_lake.view.lakes import REOPEN_SECONDS, Lakes
from log_lake.view.overview import FRESH_SECONDS, LOOK_BACK, Overview, PoolRow
from tests.support.pools import compact_all
from tests.support.stores import ScriptedStore, unavailable


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lake(clock: Clock) -> Lake:
    lake = Lake.create_on(ScriptedStore(), ids=IdSource(clock=clock), author="ada")
    lake.create_pool("logs", key="k")
    return lake


def store_of(lake: Lake) -> ScriptedStore:
    store = lake.store.behind
    assert isinstance(store, ScriptedStore)
    return store


def load(lake: Lake, *keys: int, pool: str = "logs") -> None:
    for key in keys:
        lake.pool(pool).branch().append(pa.table({"k": [key, key + 10]}))


def row(overview: Overview, lake: Lake, clock: Clock, pool: str = "logs") -> PoolRow:
    clock.now += FRESH_SECONDS
    (row,) = [row for row in overview.table(lake).pools if row.pool == pool]
    return row


def test_a_row_says_what_the_pool_itself_says(lake: Lake, clock: Clock) -> None:
    load(lake, 1, 2, 3)
    pool = lake.pool("logs")
    pool.branch().delete(where="k = 1")
    pool.create_branch("dev")
    view, shown = pool.at(), row(Overview(clock), lake, clock)
    figures = shown.figures
    assert figures is not None
    assert (figures.version, figures.records, figures.depth) == (5, view.records, view.depth)
    assert (figures.objects, figures.references, figures.tombstones, figures.branches) == (3, 3, 1, 2)
    assert figures.live == figures.held == sum(r.size for r in view.references)
    assert (shown.key, shown.kind, shown.tail) == ("k", "append", 5)


def test_figures_of_many_references_are_those_of_few(lake: Lake) -> None:
    load(lake, 1, 2, 30)
    pool = lake.pool("logs")
    pool.branch().append(pa.table({"other": ["no key"]}))
    few, many = (figures_of(pool.at(), max_listed=listed) for listed in (4, 3))
    assert few == many
    assert (few.objects, few.depth, few.beside) == (4, 2, 1)


@pytest.mark.parametrize("max_listed", [500, 0])
def test_the_headline_counts_records_that_readers_see(lake: Lake, max_listed: int) -> None:
    """5,500 records where readers see 2,500: what deletes and equal keys hide does not count (decision 251)."""
    pool = lake.pool("logs")
    load(lake, 1, 100)

    def counts(name: str = "logs") -> tuple[int, bool, int]:
        figures = figures_of(lake.pool(name).at(), max_listed=max_listed)
        return figures.records, figures.is_exact, figures.stored

    assert counts() == (4, True, 4)
    pool.branch().delete(key_range=RangeText(high="50"))
    assert counts() == ((2, True, 4) if max_listed else (4, False, 4)), "a whole object, or a bound"
    pool.branch().delete(where="k = 100")
    assert counts()[1:] == (False, 4), "the condition may hold for some"
    orders = lake.create_pool("orders", key="k", kind="upsert")
    for _ in range(2):
        orders.branch().append(pa.table({"k": [1]}))
    assert counts("orders") == (2, False, 2), "equal keys may be one record"


def test_a_count_of_a_pool_whose_records_age_off_is_a_bound_since_rows_are_kept(lake: Lake) -> None:
    pool = lake.create_pool("events", key="at", settings={"age_off": "at:1d"})
    pool.branch().append(pa.table({"at": pa.array([1_700_000_000], pa.timestamp("s", "UTC"))}))
    assert not figures_of(lake.pool("events").at()).is_exact


def test_an_empty_pool_is_a_row_of_zeros(lake: Lake, clock: Clock) -> None:
    shown = row(Overview(clock), lake, clock)
    assert shown.figures is not None
    assert (shown.figures.records, shown.figures.depth, shown.tail) == (0, 0, 0)
    assert (shown.written, shown.kept) == (None, None)


def test_what_a_compaction_removed_is_held_and_not_live(lake: Lake, clock: Clock) -> None:
    load(lake, 1, 2)
    before = row(Overview(clock), lake, clock).figures
    compact_all(lake.pool("logs"))
    after = row(Overview(clock), lake, clock).figures
    assert before is not None
    assert after is not None
    assert (after.references, after.depth) == (1, 1)
    assert after.held == after.live + before.live


def test_writes_and_upkeep_have_times_of_their_own(lake: Lake, clock: Clock) -> None:
    overview = Overview(clock)
    load(lake, 1, 2)
    written = clock.now
    clock.now += 60
    compact(lake.pool("logs").branch(), lake.pool("logs").at().references, message="compaction")
    kept = clock.now
    shown = row(overview, lake, clock)
    assert (shown.written, shown.kept) == (written, kept)
    assert shown.how == "compaction"
    clock.now += 60
    later = clock.now
    load(lake, 5)
    shown = row(overview, lake, clock)
    assert (shown.written, shown.kept) == (later, kept)


def test_a_tag_and_another_branch_are_no_upkeep_and_no_write_of_main(lake: Lake, clock: Clock) -> None:
    load(lake, 1)
    written = clock.now
    clock.now += 60
    pool = lake.pool("logs")
    pool.create_branch("dev")
    pool.branch("dev").append(pa.table({"k": [9]}))
    pool.tag("v1")
    shown = row(Overview(clock), lake, clock)
    assert (shown.written, shown.kept) == (written, None)


def test_upkeep_that_is_long_ago_is_remembered_once_it_was_seen(lake: Lake, clock: Clock) -> None:
    overview = Overview(clock)
    load(lake, 1, 2)
    compact_all(lake.pool("logs"))
    kept = row(overview, lake, clock).kept
    assert kept is not None
    for _ in range(3):
        load(lake, *range(LOOK_BACK - 1))
        assert row(overview, lake, clock).kept == kept
    assert row(Overview(clock), lake, clock).kept is None, (
        "an overview that begins now looks back so far only"
    )


def test_an_idle_pool_costs_a_read_and_a_listing(lake: Lake, clock: Clock) -> None:
    lake.create_pool("idle", key="k")
    load(lake, *range(20))
    overview = Overview(clock)
    row(overview, lake, clock)
    store = store_of(lake)
    store.requests.clear()
    row(overview, lake, clock)
    for name in ("logs", "idle"):
        journal = naming.pool_journal(lake.pool(name).config.id)
        assert [kind for kind, asked in store.requests if asked.startswith(journal)] == ["list", "get"]


def test_pages_that_ask_within_two_seconds_get_one_answer(lake: Lake, clock: Clock) -> None:
    overview = Overview(clock)
    first = overview.table(lake)
    load(lake, 1)
    assert overview.table(lake) is first
    clock.now += FRESH_SECONDS
    figures = overview.table(lake).pools[0].figures
    assert figures is not None
    assert figures.records == 2


def test_a_checkpoint_shortens_the_tail_although_it_adds_no_entry(lake: Lake, clock: Clock) -> None:
    overview = Overview(clock)
    load(lake, 1, 2, 3)
    assert row(overview, lake, clock).tail == 3
    write_checkpoint(lake, "logs", now=clock.now)
    assert row(overview, lake, clock).tail == 0
    load(lake, 4)
    assert row(overview, lake, clock).tail == 1


def test_a_pool_whose_next_entry_was_purged_unseen_is_read_again(lake: Lake, clock: Clock) -> None:
    overview = Overview(clock)
    load(lake, 1, 2, 3)
    row(overview, lake, clock)
    load(lake, 4, 5)
    write_checkpoint(lake, "logs", now=clock.now)
    clock.now += 1
    purge_pool(lake, "logs", keep=0, now=clock.now)
    assert lake.pool("logs").history.journal.read(4) is None
    figures = row(overview, Lake.open_on(store_of(lake)), clock).figures
    assert figures is not None
    assert (figures.version, figures.records) == (5, 10)


def test_a_pool_that_cannot_be_read_is_a_row_that_says_why_and_the_others_are_shown(
    lake: Lake, clock: Clock
) -> None:
    lake.create_pool("good", key="k")
    load(lake, 1, pool="good")
    overview = Overview(clock)
    marks = naming.marks(naming.pool_journal(lake.pool("logs").config.id))
    store_of(lake).on("list", marks, instead=unavailable, times=99)
    bad = row(overview, lake, clock)
    assert bad.figures is None
    assert bad.error
    good = row(overview, lake, clock, "good")
    assert good.figures is not None


def test_a_dropped_pool_leaves_the_table_and_the_cache(lake: Lake, clock: Clock) -> None:
    overview = Overview(clock)
    load(lake, 1)
    row(overview, lake, clock)
    lake.drop_pool("logs")
    clock.now += FRESH_SECONDS
    assert overview.table(lake).pools == []


def test_only_so_many_pools_are_shown_and_the_table_says_how_many_there_are(lake: Lake, clock: Clock) -> None:
    for number in range(5):
        lake.create_pool(f"p{number}", key="k")
    table = Overview(clock, max_rows=3).table(lake)
    assert ([shown.pool for shown in table.pools], table.total) == (["logs", "p0", "p1"], 6)


def test_the_lakes_are_those_that_the_variable_names() -> None:
    assert view_lakes({"LAKE_VIEW_LAKES": "lake_a  s3://b/c lake_a"}) == ("lake_a", "s3://b/c")


@pytest.mark.parametrize("name", ["", "lake_b", "/etc", "file:///etc", "s3://other/lake"])
def test_a_page_cannot_choose_what_the_server_opens(name: str, lake: Lake) -> None:
    opened: list[str] = []

    def open_it(name: str) -> Lake:
        opened.append(name)
        return lake

    with pytest.raises(NotFound, match="not shown here"):
        Lakes(["lake_a"], opener=open_it).shown(name)
    assert opened == []


def test_a_lake_is_opened_once_and_again_after_five_minutes(lake: Lake, clock: Clock) -> None:
    opened: list[str] = []

    def open_it(name: str) -> Lake:
        opened.append(name)
        return lake

    lakes = Lakes(["lake_a"], opener=open_it, clock=clock)
    for seconds in (0.0, REOPEN_SECONDS - 1, 1.0):
        clock.now += seconds
        assert lakes.shown("lake_a")[0] is lake
    assert opened == ["lake_a", "lake_a"]


def test_a_lake_that_did_not_open_is_tried_again(lake: Lake) -> None:
    answers: list[Lake | None] = [None, lake]

    def open_it(name: str) -> Lake:
        answer = answers.pop(0)
        if answer is None:
            raise Unavailable("the store does not answer")
        return answer

    lakes = Lakes(["lake_a"], opener=open_it)
    with pytest.raises(Unavailable):
        lakes.shown("lake_a")
    assert lakes.shown("lake_a")[0] is lake


def test_who_waits_for_a_lake_that_does_not_open_is_told_as_well() -> None:
    opened: list[str] = []
    now, asked = [0.0], threading.Event()

    def clock() -> float:
        asked.set()
        return now[0]

    def open_it(name: str) -> Lake:
        opened.append(name)
        raise Unavailable("the store does not answer")

    lakes = Lakes(["lake_a"], opener=open_it, clock=clock)
    shown = lakes._shown["lake_a"]
    with ThreadPoolExecutor(1) as threads:
        with shown.opening:  # as one that opens the lake, which takes 400 s and fails
            waits = threads.submit(lakes.shown, "lake_a")
            asked.wait()
            now[0] += 400
            shown.failure, shown.failed = Unavailable("away"), now[0]
        with pytest.raises(Unavailable, match="away"):
            waits.result()
    assert opened == []
    with pytest.raises(Unavailable, match="does not answer"):
        lakes.shown("lake_a")
    assert opened == ["lake_a"], "who asks later has it opened"
