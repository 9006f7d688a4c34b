"""Two publishers, killed publishers, vacuums: readers always find a whole table, and its objects."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("pyiceberg")

from pyiceberg.table import StaticTable

from lake_core.errors import Corrupt, InvalidInput, Unavailable
from lake_core.ids import IdSource
from lake_core.store import Store
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.publish.lag import publication
from log_lake.publish.place import place_of
from log_lake.publish.published import hinted, published_at
from log_lake.publish.run import LOST, PUBLISHED, UNCHANGED, publish_iceberg
from log_lake.rewriting.compaction import compact
from log_lake.stores.local import LocalStore
from log_lake.vacuum.execute import vacuum
from tests.support.iceberg import check_published, read_table, shown, values
from tests.support.stores import ALWAYS, ScriptedStore, StoreInFront, lost, unavailable


@pytest.fixture
def store(tmp_path: Path) -> ScriptedStore:
    return ScriptedStore(LocalStore(tmp_path / "lake"))


@pytest.fixture
def pool(store: ScriptedStore) -> Pool:
    """Two objects, one with a hidden record, published once; then a third object."""
    pool = Lake.create_on(store).create_pool("p", key="k")
    for low in (0, 10):
        pool.branch().append(numbers(low))
    pool.branch().delete(where="k = 3")
    assert publish_iceberg(pool).number == 1
    pool.branch().append(numbers(20))
    return pool


def numbers(low: int) -> pa.Table:
    return pa.table({"k": list(range(low, low + 10))})


def location(pool: Pool) -> str:
    return place_of(pool, branch="main").location


def keys(pool: Pool) -> list[int]:
    return sorted(read_table(location(pool))["k"].to_pylist())


FIRST = [*range(3), *range(4, 20)]
"""The keys of the first table."""


def metadata(pool: Pool, number: int) -> str:
    return place_of(pool, branch="main").metadata(number)


def test_of_two_publishers_at_once_one_wins_and_the_other_is_told(store: ScriptedStore, pool: Pool) -> None:
    others = []
    store.on("create", metadata(pool, 2), before=lambda: others.append(publish_iceberg(pool)))
    done = publish_iceberg(pool)
    assert (done.outcome, done.number, done.version) == (LOST, 2, others[0].version)
    assert others[0].outcome == PUBLISHED
    assert keys(pool) == [*FIRST, *range(20, 30)]
    (tag,) = pool.tags.values()
    assert tag.set_at >= others[0].version, "the tag of the winner is left"
    assert check_published(pool).outcome == UNCHANGED


def test_the_other_is_told_too_if_the_files_of_the_table_before_are_gone(
    store: ScriptedStore, pool: Pool
) -> None:
    (old,) = Path(location(pool)).rglob("snap-*")

    def others() -> None:
        publish_iceberg(pool)
        old.unlink()

    name = f"{place_of(pool, branch='main').folder}/metadata/{old.name}"
    store.on("get", name, before=others)
    done = publish_iceberg(pool)
    assert (done.outcome, done.number) == (LOST, 2)
    assert keys(pool) == [*FIRST, *range(20, 30)]
    assert len(pool.tags) == 1


def test_a_publisher_that_lost_to_a_newer_version_does_not_take_the_hint_back(
    store: ScriptedStore, pool: Pool
) -> None:
    def others() -> None:
        publish_iceberg(pool)
        pool.branch().append(numbers(40))
        publish_iceberg(pool)

    store.on("create", metadata(pool, 2), before=others)
    done = publish_iceberg(pool)
    assert (done.outcome, done.number) == (LOST, 3)
    assert hinted(place_of(pool, branch="main")) == 3


def test_the_hint_ends_at_the_newest_metadata_when_two_write_it(store: ScriptedStore, pool: Pool) -> None:
    place = place_of(pool, branch="main")

    def other() -> None:
        pool.branch().append(numbers(40))
        assert publish_iceberg(pool).number == 3

    store.on("put", place.hint, before=other)
    assert publish_iceberg(pool).number == 2
    assert hinted(place) == 3


class Killed(BaseException):
    """The process ends."""


class KilledAt(StoreInFront):
    """A store whose process ends before its `count`-th request of a kind (from 0)."""

    def __init__(self, behind: Store, request: str, count: int) -> None:
        self.behind, self._request, self._left = behind, request, count

    def ask(self, request: str, name: str, call: Callable[[], Any]) -> Any:
        if request == self._request:
            if not self._left:
                raise Killed
            self._left -= 1
        return call()


@pytest.mark.parametrize(("request_name", "least"), [("create", 6), ("put", 1), ("get", 8)])
def test_killed_before_any_request_readers_see_the_table_before_or_the_new_one(
    tmp_path: Path, request_name: str, least: int
) -> None:
    stop = 0
    while True:  # bounded by the requests of a publication
        store = LocalStore(tmp_path / str(stop) / "lake")
        pool = Lake.create_on(store).create_pool("p", key="k")
        for low in (0, 10):
            pool.branch().append(numbers(low))
        pool.branch().delete(where="k = 3")
        publish_iceberg(pool)
        pool.branch().append(numbers(20))
        pool.branch().delete(where="k = 13")
        newest = [k for k in [*FIRST, *range(20, 30)] if k != 13]
        try:
            publish_iceberg(Lake.open_on(KilledAt(store, request_name, stop)).pool("p"))
        except Killed:
            pass
        else:
            break
        assert keys(pool) in (FIRST, newest), stop
        done = publish_iceberg(pool)
        assert done.outcome in (PUBLISHED, UNCHANGED)
        assert keys(pool) == newest
        assert len(pool.tags) == 1, "what the killed publisher left is gone"
        stop += 1
    assert stop >= least


def test_a_lost_answer_to_the_create_of_the_metadata_is_read_back(store: ScriptedStore, pool: Pool) -> None:
    store.on("create", metadata(pool, 2), answer=lost)
    assert publish_iceberg(pool).outcome == PUBLISHED
    assert keys(pool) == [*FIRST, *range(20, 30)]


def test_a_store_that_never_answers_leaves_the_table_as_it_was(store: ScriptedStore, pool: Pool) -> None:
    store.on("create", metadata(pool, 2), instead=lost, times=ALWAYS)
    with pytest.raises(Unavailable, match=r"does not show that metadata 2 was written; publish again"):
        publish_iceberg(pool)
    assert keys(pool) == FIRST


def test_a_store_that_refuses_leaves_the_table_as_it_was(store: ScriptedStore, pool: Pool) -> None:
    store.on("create", metadata(pool, 2), instead=unavailable, times=ALWAYS)
    with pytest.raises(Unavailable):
        publish_iceberg(pool)
    assert keys(pool) == FIRST


def test_files_of_older_tables_are_deleted_once_the_grace_time_is_over(tmp_path: Path, pool: Pool) -> None:
    folder = Path(location(pool))
    first = {path for path in folder.rglob("*") if path.is_file()}
    pool.branch().delete(where="k = 3 or k = 4")
    publish_iceberg(pool)
    assert {path for path in first if path.exists()} == first
    for path in folder.rglob("*"):
        os.utime(path, (1_600_000_000, 1_600_000_000))
    pool.branch().append(numbers(40))
    done = check_published(pool)
    left = {path.name.rpartition("-")[2] for path in first if path.exists()}
    assert left == {"hint.text", "m0.avro"}, "the manifest of the first two objects is still in use"
    assert (done.added, done.added_deletes) == (1, 0), "the files of the table before are used again"
    check_published(pool)


def test_a_folder_with_files_of_another_program_is_refused_and_these_are_never_deleted(
    tmp_path: Path, pool: Pool
) -> None:
    folder = tmp_path / "tables"
    other = folder / "metadata" / "00001-4b8e.metadata.json"
    other.parent.mkdir(parents=True)
    other.write_text("{}")
    with pytest.raises(InvalidInput, match=r"00001-4b8e.metadata.json is of another program"):
        publish_iceberg(pool, to=str(folder))
    other.unlink()
    publish_iceberg(pool, to=str(folder))
    other.write_text("{}")
    os.utime(other, (1_600_000_000, 1_600_000_000))
    pool.branch().append(numbers(40))
    publish_iceberg(pool, to=str(folder))
    assert other.exists()


def test_the_hint_may_name_metadata_that_is_not_there_or_nothing_at_all(
    store: ScriptedStore, pool: Pool
) -> None:
    place = place_of(pool, branch="main")
    for content in (b"", b"x", b"0"):  # then the metadata is listed
        store.put(place.hint, content)
        table = published_at(place)
        assert table is not None
        assert table.number == 1
    store.put(place.hint, b"7")
    with pytest.raises(Corrupt, match="the hint names metadata 7, which is not there"):
        published_at(place)


def test_a_table_of_another_program_is_not_continued(store: ScriptedStore, pool: Pool) -> None:
    store.create(metadata(pool, 2), b'{"format-version": 2}')
    with pytest.raises(Corrupt, match="metadata 2: damaged, or of a table that the lake did not publish"):
        publish_iceberg(pool)


# --- what the table needs stays


def test_no_vacuum_takes_objects_of_the_published_table(pool: Pool) -> None:
    table = StaticTable.from_metadata(location(pool))
    compact(pool.branch(), pool.at().references)
    vacuum(pool, grace=0.0)
    assert keys(pool) == FIRST
    (tag,) = pool.tags.values()
    assert tag.reason == f"published at {location(pool)}"
    check_published(pool)
    vacuum(pool, grace=0.0)
    assert len(pool.tags) == 1
    with pytest.raises(FileNotFoundError):
        table.scan().to_arrow()
    assert values(read_table(location(pool)).to_pylist()) == shown(pool.at())


def test_each_place_has_a_tag_of_its_own(tmp_path: Path, pool: Pool) -> None:
    publish_iceberg(pool, to=str(tmp_path / "tables"))
    pool.branch().append(numbers(40))
    publish_iceberg(pool)
    publish_iceberg(pool)
    places = [str(tmp_path / "tables"), location(pool)]
    assert sorted(tag.reason for tag in pool.tags.values()) == sorted(f"published at {at}" for at in places)


def test_without_its_tag_a_table_is_published_anew(pool: Pool) -> None:
    (tag,) = pool.tags
    pool.delete_tag(tag)
    assert check_published(pool).objects == 3
    (tag,) = pool.tags
    pool.delete_tag(tag)
    assert check_published(pool).outcome == PUBLISHED, "though the table shows the newest version"
    assert len(pool.tags) == 1


def test_a_publisher_that_is_refused_after_its_tag_takes_the_tag_back(
    store: ScriptedStore, pool: Pool
) -> None:
    branch = Lake.open_on(store.behind).pool("p").branch()
    unpublishable = [pa.table({"k": [1], "u": pa.array([1], pa.uint8())})]

    def entropy(size: int) -> bytes:  # is asked for the first time when the tag gets its name
        if unpublishable:
            branch.append(unpublishable.pop())
        return secrets.token_bytes(size)

    pool = replace(pool, context=replace(pool.context, ids=IdSource(entropy=entropy)))
    with pytest.raises(InvalidInput, match="field 'u' is of type uint8"):
        publish_iceberg(pool)
    assert len(pool.tags) == 1
    assert keys(pool) == FIRST


# --- the lag


def test_the_lag_is_counted_in_transactions_of_the_branch_and_in_seconds(pool: Pool) -> None:
    pool.create_branch("dev")
    pool.branch("dev").append(numbers(50))
    lag = publication(pool)
    assert lag is not None
    assert (lag.transactions, lag.uncounted) == (1, False)
    assert lag.published.version == 3
    newest = next(transaction for _, transaction in pool.log(branch="main"))
    assert lag.seconds == newest.time / 1e6 - lag.published.time >= 0
    publish_iceberg(pool)
    lag = publication(pool)
    assert lag is not None
    assert (lag.transactions, lag.seconds) == (0, 0.0)
    assert publication(pool, branch="dev") is None


def test_a_commit_between_the_look_and_the_tag_is_published_too(store: ScriptedStore, pool: Pool) -> None:
    branch = Lake.open_on(store.behind).pool("p").branch()
    done = []
    store.on("create", metadata(pool, 2), before=lambda: done.append(branch.append(numbers(60))))
    first = publish_iceberg(pool)
    assert first.version < done[0].version
    assert publish_iceberg(pool).version == done[0].version
