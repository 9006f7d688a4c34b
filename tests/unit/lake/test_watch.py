"""Looking for new transactions of many pools: nothing is missed, and what is not news is not said."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.agents.checkpoint.run import purge_pool, write_checkpoint
from lake_core.agents.compact.rewrite import compact
from lake_core.errors import Corrupt, LakeError, Unavailable
from lake_core.journal.newest import newest_version
from lake_core.lake import Lake
from lake_core.lake.watch import News, Position, begin, look, resume
from lake_core.store import ObjectInfo
from lake_core.store.memory import MemoryStore


@pytest.fixture
def lake() -> Lake:
    lake = Lake.create_on(MemoryStore())
    for name in ("a", "b"):
        lake.create_pool(name, key="k")
    return lake


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
    assert (len(reads), len(listings)) == (2, 1)


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
    assert positions["later"] == Position()
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
