"""One tag on every pool: all or none, on the versions that were read first."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.errors import AlreadyExists, Incomplete, NotFound, Unavailable
from log_lake.lake import Lake
from log_lake.lake.all_pools import delete_from_all, tag_all
from tests.support.stores import ALWAYS, ScriptedStore, raising, unavailable

POOLS = ("a", "b", "c")


def load(lake: Lake, pool: str, *keys: int) -> None:
    lake.pool(pool).branch().append(pa.table({"k": list(keys)}))


def lake_of(store: ScriptedStore, *, empty: tuple[str, ...] = ()) -> Lake:
    lake = Lake.create_on(store.behind)
    for name in (*POOLS, *empty):
        lake.create_pool(name, key="k")
    for name in POOLS:
        load(lake, name, 1)
    return Lake.open_on(store)


def tagged(store: ScriptedStore) -> list[str]:
    lake = Lake.open_on(store.behind)
    return [name for name in POOLS if "close" in lake.pool(name).tags]


def keys(lake: Lake, revision: str) -> list[list[int]]:
    return [lake.pool(name).at(revision).to_table()["k"].to_pylist() for name in POOLS]


@pytest.fixture
def store() -> ScriptedStore:
    return ScriptedStore()


def entry(lake: Lake, pool: str, version: int) -> str:
    return naming.entry(lake.pool(pool).history.journal.name, version)


def test_every_pool_has_the_tag_on_its_newest_version(store: ScriptedStore) -> None:
    lake = lake_of(store, empty=("d",))
    lake.pool("b").create_branch("dev")
    done = tag_all(lake, "close", reason="the books are closed")
    assert (sorted(done.pools), done.empty) == (list(POOLS), ("d",))
    load(lake, "a", 2)
    assert keys(lake, "close") == [[1], [1], [1]]
    assert keys(lake, "main") == [[1, 2], [1], [1]]
    assert lake.pool("b").tags["close"].branch == "main"
    assert lake.pool("c").tags["close"].reason == "the books are closed"


def test_a_load_that_begins_after_all_pools_were_read_is_in_no_tag(store: ScriptedStore) -> None:
    lake = lake_of(store)
    other = Lake.open_on(store.behind)

    def elsewhere() -> None:
        for name in POOLS:
            load(other, name, 2)

    store.on("create", entry(lake, "a", 2), before=elsewhere)
    tag_all(lake, "close")
    assert keys(lake, "close") == [[1], [1], [1]]
    assert keys(lake, "main") == [[1, 2], [1, 2], [1, 2]]


def test_a_name_that_one_pool_has_is_refused_before_anything_is_set(store: ScriptedStore) -> None:
    lake = lake_of(store)
    lake.pool("c").create_branch("close")
    with pytest.raises(AlreadyExists, match=r"^pool c has a branch 'close'; choose another name$"):
        tag_all(lake, "close")
    assert tagged(store) == []
    lake.pool("a").tag("close")
    lake.pool("b").tag("close")
    both = r"^pools a, b have a tag 'close' already, and pool c has a branch 'close'; choose another name$"
    with pytest.raises(AlreadyExists, match=both):
        tag_all(lake, "close")
    lake.pool("c").delete_branch("close")
    with pytest.raises(AlreadyExists, match=r"Only if an earlier .* was interrupted .*--all -d close"):
        tag_all(lake, "close")


def test_the_list_of_pools_is_not_read_for_each_pool(store: ScriptedStore) -> None:
    def requests_for_the_list(lake: Lake) -> int:
        store.requests.clear()
        tag_all(lake, f"t{len(lake.pools())}")
        return sum(lake.catalog.journal.name in name for _, name in store.requests)

    few = lake_of(store)
    counted = requests_for_the_list(few)
    for name in ("d", "e", "f"):
        few.create_pool(name, key="k")
    assert requests_for_the_list(few) == counted


def set_by_another(store: ScriptedStore, pool: str) -> Callable[[], object]:
    other = Lake.open_on(store.behind)
    return lambda: other.pool(pool).tag("close", reason="of another")


def test_a_tag_that_another_process_sets_meanwhile_stays(store: ScriptedStore) -> None:
    lake = lake_of(store)
    store.on("create", entry(lake, "b", 2), before=set_by_another(store, "b"))
    with pytest.raises(AlreadyExists):
        tag_all(lake, "close")
    assert tagged(store) == ["b"]
    assert Lake.open_on(store.behind).pool("b").tags["close"].reason == "of another"


def test_a_tag_that_replaced_ours_meanwhile_stays(store: ScriptedStore) -> None:
    lake = lake_of(store)

    def replaces() -> None:
        Lake.open_on(store.behind).pool("a").delete_tag("close")
        set_by_another(store, "a")()

    store.on("create", entry(lake, "c", 2), before=replaces, instead=raising(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        tag_all(lake, "close")
    assert tagged(store) == ["a"]
    assert Lake.open_on(store.behind).pool("a").tags["close"].reason == "of another"


@pytest.mark.parametrize("is_ours", [True, False])
def test_of_a_pool_with_unknown_outcome_only_our_tag_is_deleted(store: ScriptedStore, is_ours: bool) -> None:
    lake = lake_of(store)
    interrupted = raising(KeyboardInterrupt())
    if is_ours:
        store.on("create", entry(lake, "b", 2), answer=interrupted)
    else:
        store.on("create", entry(lake, "b", 2), before=set_by_another(store, "b"), instead=interrupted)
    with pytest.raises(KeyboardInterrupt):
        tag_all(lake, "close")
    assert tagged(store) == ([] if is_ours else ["b"])


@pytest.mark.parametrize(
    ("broken", "raised"), [(("a",), r"1 pool .*'a': .*refuses"), (("a", "b"), r"2 pools .*'a': .*; 'b': ")]
)
def test_deleting_goes_on_if_a_pool_fails_and_says_so(
    store: ScriptedStore, broken: tuple[str, ...], raised: str
) -> None:
    lake = lake_of(store)
    tag_all(lake, "close")
    for pool in broken:
        store.on("create", entry(lake, pool, 3), instead=unavailable, times=ALWAYS)
    done = delete_from_all(lake, "close")
    assert list(done.pools) == [name for name in POOLS if name not in broken]
    assert (tagged(store), list(done.failures)) == (list(broken), list(broken))
    with pytest.raises(Incomplete, match=raised):
        done.check()


def test_a_tag_or_a_pool_that_goes_while_all_are_deleted_is_no_failure(store: ScriptedStore) -> None:
    lake = lake_of(store)
    tag_all(lake, "close")
    other = Lake.open_on(store.behind)

    def meanwhile() -> None:
        other.pool("a").delete_tag("close")
        other.drop_pool("b")

    store.on("create", entry(lake, "a", 3), before=meanwhile)
    done = delete_from_all(lake, "close")
    assert (list(done.pools), done.failures) == (["c"], {})
    done.check()


def test_if_one_pool_fails_no_pool_keeps_the_tag(
    store: ScriptedStore, caplog: pytest.LogCaptureFixture
) -> None:
    lake = lake_of(store)
    store.on("create", entry(lake, "c", 2), instead=unavailable, times=ALWAYS)
    with caplog.at_level(logging.WARNING), pytest.raises(Unavailable):
        tag_all(lake, "close")
    assert tagged(store) == []


def test_what_cannot_be_taken_back_is_said_and_deleted_later(
    store: ScriptedStore, caplog: pytest.LogCaptureFixture
) -> None:
    lake = lake_of(store)
    store.on("create", entry(lake, "c", 2), instead=unavailable, times=ALWAYS)
    taking_back = entry(lake, "a", 3)
    store.on("create", taking_back, instead=unavailable, times=ALWAYS)
    with pytest.raises(Unavailable):
        tag_all(lake, "close")
    assert tagged(store) == ["a"]
    assert "pool 'a' may keep the tag 'close'" in caplog.text
    lake = Lake.open_on(store.behind)
    assert list(delete_from_all(lake, "close").pools) == ["a"]
    with pytest.raises(NotFound, match="no pool has a tag 'close'"):
        delete_from_all(lake, "close")
    assert len(tag_all(lake, "close").pools) == 3


def test_a_lake_without_a_transaction_has_nothing_to_tag(store: ScriptedStore) -> None:
    lake = Lake.create_on(store)
    lake.create_pool("a", key="k")
    with pytest.raises(NotFound, match="nothing to tag"):
        tag_all(lake, "close")
