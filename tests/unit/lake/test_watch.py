"""Looking for new transactions of many pools: nothing is missed, and what is not news is not said."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake_core import naming
from lake_core.errors import Corrupt, LakeError, Unavailable
from lake_core.history.activity import READS_A_PAGE, RENEW, SKEW, listing_pays
from lake_core.ids import IdSource
from lake_core.journal.newest import newest_version
from lake_core.store import ObjectInfo
from log_lake.agents.checkpoint.run import purge_pool, write_checkpoint
from log_lake.lake import Lake
from log_lake.lake.watch import ALL, News, Watcher, WatchPosition, begin, resume
from log_lake.repair.rebuild import Wanted, plan_rebuild, rebuild
from log_lake.rewriting.compaction import compact
from log_lake.stores.memory import MemoryStore
from tests.support.clocks import Clock
from tests.support.stores import ScriptedStore, unavailable


@pytest.fixture
def lake() -> Lake:
    lake = Lake.create_on(MemoryStore())
    for name in ("a", "b"):
        lake.create_pool(name, key="k")
    return lake


def look(lake: Lake, positions: dict[str, WatchPosition]) -> tuple[list[News], dict[str, WatchPosition]]:
    """The first look of a watcher: at every pool."""
    return Watcher(lake).look(positions)


def load(lake: Lake, pool: str, count: int = 1, *, branch: str = "main") -> None:
    for k in range(count):
        lake.pool(pool).branch(branch).append(pa.table({"k": [k]}))


def seen(news: list[News]) -> list[tuple[str, int, str, bool]]:
    return [(one.pool, one.position.version, one.branch, one.changes_records) for one in news]


def test_only_what_comes_after_the_beginning_is_news(lake: Lake) -> None:
    load(lake, "a", 3)
    positions = begin(lake, ["a", "b"])
    assert {name: at.version for name, at in positions.items()} == {"a": 3, "b": 0}
    assert look(lake, positions) == ([], positions)
    load(lake, "a")
    load(lake, "b", 2)
    news, after = look(lake, positions)
    assert seen(news) == [("a", 4, "main", True), ("b", 1, "main", True), ("b", 2, "main", True)]
    assert look(lake, after) == ([], after)


def test_a_look_at_idle_pools_costs_one_read_each_and_one_of_the_list(lake: Lake) -> None:
    store = lake.store.behind
    assert isinstance(store, MemoryStore)
    positions = begin(lake, ["a", "b"])
    reads, listings = [], []

    class Counted(MemoryStore):
        def get(self, name: str) -> bytes | None:
            reads.append(name)
            return store.get(name)

        def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
            listings.append(prefix)
            return store.list(prefix, after=after)

    lake.store.behind = Counted()
    look(lake, positions)
    assert (len(reads), len(listings)) == (2 + len(OF_THE_LIST), 0)


def test_maintenance_is_said_to_be_none_of_the_records(lake: Lake) -> None:
    load(lake, "a", 2)
    branch = lake.pool("a").branch()
    branch.delete(where="k = 1")
    positions = begin(lake, ["a"])
    compact(branch, lake.pool("a").at().references)
    assert [one.changes_records for one in look(lake, positions)[0]] == [False]
    branch.delete(where="k = 0")
    assert [one.changes_records for one in look(lake, positions)[0]] == [False, True]


def test_a_reverted_delete_changes_records_and_a_tag_does_not(lake: Lake) -> None:
    load(lake, "a", 2)
    pool = lake.pool("a")
    deleted = pool.branch().delete(where="k = 1")
    positions = begin(lake, ["a"])
    pool.branch().revert(str(deleted.version))
    pool.tag("t")
    assert [one.changes_records for one in look(lake, positions)[0]] == [True, False]


def test_news_name_the_branch(lake: Lake) -> None:
    load(lake, "a")
    lake.pool("a").create_branch("dev")
    positions = begin(lake, ["a"])
    load(lake, "a", branch="dev")
    assert [(one.branch, one.changes_records) for one in look(lake, positions)[0]] == [("dev", True)]


def test_a_pool_that_is_made_later_or_made_again_begins_at_its_first_transaction(lake: Lake) -> None:
    positions = begin(lake, ["later", "a"])
    assert positions["later"] == WatchPosition()
    lake.create_pool("later", key="k")
    load(lake, "later")
    load(lake, "a", 2)
    news, positions = look(lake, positions)
    assert seen(news)[0] == ("later", 1, "main", True)
    lake.drop_pool("a")
    assert not [one for one in look(lake, positions)[0] if one.changes_records]
    lake.create_pool("a", key="k")
    load(lake, "a")
    assert [one.position.version for one in look(lake, positions)[0]] == [1]


def test_what_was_purged_unseen_is_news_of_any_branch(lake: Lake) -> None:
    old = begin(lake, ["a"])["a"]
    load(lake, "a", 4)
    now = lake.context.now()
    write_checkpoint(lake, "a", now=now)
    purge_pool(lake, "a", keep=0.0, now=now + 10)
    assert look(lake, {"a": old}) == ([], {"a": old}), "a look alone cannot tell"
    news, position = resume(lake, "a", old)
    assert [(one.branch, one.position.version) for one in news] == [("", 4)]
    assert resume(lake, "a", position) == ([], position)


@pytest.mark.parametrize(
    "error", [Unavailable("not now"), Corrupt("damaged")], ids=lambda e: type(e).__name__
)
def test_a_pool_that_cannot_be_read_keeps_its_position_and_holds_no_other_back(
    lake: Lake, error: LakeError
) -> None:
    positions = begin(lake, ["a", "b"])
    load(lake, "a")
    load(lake, "b")
    store = lake.store.behind
    folder = lake.pool("a").config.id

    class Failing(MemoryStore):
        def get(self, name: str) -> bytes | None:
            if name.startswith(folder):
                raise error
            return store.get(name)

    lake.store.behind = Failing()
    news, after = look(lake, positions)
    assert [one.pool for one in news] == ["b"]
    assert after["a"] == positions["a"]
    lake.store.behind = store
    assert [one.pool for one in look(lake, after)[0]] == ["a"]


@pytest.mark.parametrize("hint", [b"", b"3", b"999", b"garbage"])
def test_the_newest_version_needs_no_true_hint(lake: Lake, hint: bytes) -> None:
    load(lake, "a", 5)
    journal = lake.pool("a").history.journal.name
    if hint:
        lake.store.put(naming.head(journal), hint)
    assert newest_version(lake.store, journal) == 5


# ---------------------------------------------------------------- by activity notes

QUIET = RENEW + SKEW
OF_THE_LIST = [("get", "pools"), ("get", "pools"), ("get", "pools-gates")]
"""A look at the list of pools: its next entries, and the next gate."""


class Watched:
    """A lake of pools on a clock of its own, so many that a watcher lists notes, and goes by them alone."""

    NAMES = ("a", "b", *(f"c{number}" for number in range(READS_A_PAGE)))

    def __init__(self, *, skew: float = 0.0, all_each: float = float("inf")) -> None:
        self.clock = Clock(1_800_000_000.0)
        self.store = ScriptedStore(MemoryStore(clock=lambda: self.clock.now + skew))
        self.lake = Lake.create_on(self.store, ids=IdSource(clock=self.clock))
        for name in self.NAMES:
            self.lake.create_pool(name, key="k")
            load(self.lake, name)
        self.watcher = Watcher(self.another(), all_each=all_each)
        self.positions = begin(self.lake, [*self.NAMES])

    def another(self) -> Lake:
        """The lake, as another process has it."""
        return Lake.open_on(self.store, ids=IdSource(clock=self.clock))

    def look(self) -> list[str]:
        """The pools with news."""
        news, self.positions = self.watcher.look(self.positions)
        return [one.pool for one in news]

    def costs(self) -> list[tuple[str, str]]:
        """The requests of a look: `pools` is the list, a name a pool."""
        ids = {self.lake.pool(name).config.id: name for name in self.NAMES}
        self.store.requests.clear()
        assert self.look() == []
        return [
            (request, ids.get(of, of)) for request, name in self.store.requests for of in name.split("/")[:1]
        ]


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_all_quiet_pools_cost_one_listing_together(watched: Watched) -> None:
    for name in ("a", "b"):
        load(watched.lake, name)
    assert watched.look() == ["a", "b"]
    watched.clock.now += QUIET
    watched.look()
    assert watched.costs() == [*OF_THE_LIST, ("list", "activity")]
    load(watched.lake, "b")
    assert watched.look() == ["b"]
    assert watched.costs() == [*OF_THE_LIST, ("list", "activity"), ("get", "b")]
    watched.clock.now += QUIET
    assert watched.costs()[4:] == [("get", "b")], (
        "written to after the look before, for all the watcher knows"
    )
    assert watched.costs()[4:] == []


def test_few_pools_are_read_since_a_listing_costs_more(watched: Watched) -> None:
    for name in ("a", "b"):
        del watched.positions[name]
    watched.look()
    watched.clock.now += QUIET
    watched.look()
    reads = [("get", name) for name in watched.NAMES[2:]]
    assert sorted(watched.costs()) == sorted([*OF_THE_LIST, *reads])


@pytest.mark.parametrize(
    ("reads", "notes", "pays"), [(12, 0, False), (13, 999, True), (13, 1000, False), (25, 1000, True)]
)
def test_a_page_of_a_listing_costs_as_much_as_twelve_reads(reads: int, notes: int, pays: bool) -> None:
    assert listing_pays(reads=reads, notes=notes) is pays


def test_every_pool_is_looked_at_now_and_then() -> None:
    """A note is lost if its writer is killed after a commit that took longer than the note stands."""
    watched = Watched(all_each=ALL)
    load(watched.lake, "a")
    watched.look()
    watched.clock.now += QUIET
    watched.look()
    watched.store.on("put", watched.lake.pool("a").config.id, instead=lambda: None, times=9)
    load(watched.another(), "a")
    assert watched.look() == []
    watched.clock.now += ALL
    assert watched.look() == ["a"]


def test_without_notes_every_pool_is_looked_at(watched: Watched) -> None:
    load(watched.lake, "a")
    watched.look()
    watched.clock.now += QUIET
    watched.look()
    watched.store.on("list", naming.ACTIVITY, instead=unavailable, times=2)
    assert sorted(watched.costs()[4:]) == sorted(("get", name) for name in watched.NAMES)
    load(watched.another(), "a")
    assert watched.look() == ["a"]


def test_a_clock_that_was_set_back_hides_no_commit(watched: Watched) -> None:
    load(watched.lake, "a")
    watched.look()
    for _ in range(2):
        watched.clock.now += 3 * QUIET
        watched.look()
    watched.clock.now -= 2 * QUIET
    load(watched.another(), "a")
    assert watched.look() == ["a"]


def test_a_pool_that_was_rebuilt_is_news_within_the_hour_and_then_goes_on() -> None:
    watched = Watched(all_each=ALL)
    load(watched.lake, "a")
    assert watched.look() == ["a"]
    for info in list(watched.store.behind.list(naming.pool_journal(watched.lake.pool("a").config.id))):
        watched.store.behind.delete(info.name)
    lake = watched.another()
    rebuild(lake, plan_rebuild(lake, "a", Wanted()))
    load(lake, "a")
    assert watched.look() == []
    watched.clock.now += ALL
    assert watched.look() == ["a", "a"], "what was there is one piece of news, what came after it another"
    assert watched.look() == []


def test_a_position_that_is_set_back_is_read_from_there(watched: Watched) -> None:
    before = watched.positions
    load(watched.lake, "a", 2)
    watched.look()
    watched.clock.now += QUIET
    watched.look()
    watched.positions = before
    assert watched.look() == ["a", "a"]


@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["commit", "slow commit", "other commit", "look"]),
            st.sampled_from([0, 1, 5, RENEW - 1, RENEW, 2 * RENEW, QUIET - 1, QUIET, 2 * QUIET]),
        ),
        max_size=14,
    ),
    skew=st.sampled_from([-SKEW, -1.0, 0.0, 1.0, SKEW]),
)
def test_no_commit_is_missed_by_its_note(steps: list[tuple[str, float]], skew: float) -> None:
    """Whatever the time between commits and looks, and if the store's clock is off by as much as it may."""
    watched = Watched(skew=skew)
    for what, seconds in [*steps, ("look", 0.0)]:
        watched.clock.now += seconds
        if what == "look":
            watched.look()
            newest = watched.another().pool("a").history.load().version
            assert watched.positions["a"].version == newest
            continue
        lake = watched.another() if what == "other commit" else watched.lake
        if what == "slow commit":
            version = watched.another().pool("a").history.load().version + 1

            def wait() -> None:
                watched.clock.now += seconds  # noqa: B023 the commit is made in this step
                watched.look()

            journal = lake.pool("a").history.journal.name
            watched.store.on("create", naming.entry(journal, version), before=wait)
        load(lake, "a")
