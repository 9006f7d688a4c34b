"""A published table has the names of fields that readers of the pool see, over objects that have stored names."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("pyiceberg")

from pyiceberg.table import StaticTable

from lake_core.errors import InvalidInput, NotFound
from log_lake.agents.compact.publication import publication_due
from log_lake.lake.pool import Pool
from log_lake.publish.lag import publication
from log_lake.publish.report import lag_line
from log_lake.publish.run import PUBLISHED, UNCHANGED, publish_iceberg
from log_lake.rewriting.compaction import compact
from tests.support.iceberg import a_local_pool, check_published, read_table

ROWS = {"k": [1, 2, 3], "a": [1, 2, 3], "c": ["x", "y", "z"], "r": [{"a": 1}, {"a": 2}, None]}
SEEDS = 8


@pytest.fixture
def pool(tmp_path: Path) -> Pool:
    return a_local_pool(tmp_path, ROWS)


def ids(location: str) -> dict[str, int]:
    """The id of each column that the table at the location has now."""
    return {column.name: column.field_id for column in StaticTable.from_metadata(location).schema().fields}


def test_a_renamed_field_keeps_its_id_and_its_description(pool: Pool) -> None:
    before = ids(check_published(pool).location)
    pool.rename_field(old="a", new="b")
    done = check_published(pool)
    assert (done.outcome, done.added) == (PUBLISHED, 0), "objects are not described again"
    assert ids(done.location) == {"k": before["k"], "b": before["a"], "c": before["c"], "r": before["r"]}
    assert read_table(done.location, row_filter="b > 1").num_rows == 2
    assert publish_iceberg(pool).outcome == UNCHANGED


def test_a_new_field_with_the_name_of_a_dropped_one_has_none_of_its_values(pool: Pool) -> None:
    before = ids(check_published(pool).location)
    pool.drop_field("a")
    assert "a" not in ids(check_published(pool).location)
    pool.branch().append(pa.table({"k": [4], "a": ["new"]}))
    done = check_published(pool)
    assert ids(done.location)["a"] > max(before.values())
    assert sorted(read_table(done.location).column("a").to_pylist(), key=str) == [None, None, None, "new"]


def test_names_that_were_exchanged_keep_their_values(pool: Pool) -> None:
    before = ids(check_published(pool).location)
    for old, new in (("a", "t"), ("c", "a"), ("t", "c")):
        pool.rename_field(old=old, new=new)
    after = ids(check_published(pool).location)
    assert (after["c"], after["a"]) == (before["a"], before["c"])
    pool.branch().append(pa.table({"k": [4], "a": ["w"], "c": [4]}))
    check_published(pool)


def test_an_edit_alone_makes_the_table_lag(tmp_path: Path) -> None:
    pool = a_local_pool(tmp_path, ROWS, settings={"publish.iceberg": "beside"})
    publish_iceberg(pool)
    assert publication_due(pool, branch="main") == ""
    pool.rename_field(old="a", new="b")
    lag = publication(pool)
    assert lag is not None
    assert (lag.transactions, lag.edited) == (0, True)
    assert publication_due(pool, branch="main") == "its fields were edited since"
    assert lag_line(lag).endswith("; no transaction is newer; it has the names of its fields before an edit")


def test_an_added_field_is_a_column_before_a_record_has_it(pool: Pool) -> None:
    publish_iceberg(pool)
    pool.add_field("new", "double")
    done = check_published(pool)
    assert (done.outcome, done.added) == (PUBLISHED, 0)
    id = ids(done.location)["new"]
    pool.branch().append(pa.table({"k": [4], "new": [1.5]}))
    assert ids(check_published(pool).location)["new"] == id
    assert read_table(done.location, row_filter="new > 1").num_rows == 1


def test_an_added_field_that_is_renamed_keeps_its_id(pool: Pool) -> None:
    pool.add_field("new", "double")
    id = ids(publish_iceberg(pool).location)["new"]
    pool.branch().append(pa.table({"k": [9], "old": [1]}))
    pool.drop_field("old")
    publish_iceberg(pool)
    pool.rename_field(old="new", new="old")
    assert ids(check_published(pool).location)["old"] == id


def test_a_tag_shows_the_names_of_its_time(pool: Pool) -> None:
    pool.tag("v1")
    pool.rename_field(old="a", new="b")
    assert list(ids(check_published(pool, "v1").location)) == ["k", "a", "c", "r"]
    assert list(ids(check_published(pool).location)) == ["k", "b", "c", "r"]


def test_an_open_table_keeps_its_names(pool: Pool) -> None:
    earlier = StaticTable.from_metadata(check_published(pool).location)
    pool.rename_field(old="a", new="b")
    check_published(pool)
    assert earlier.scan().to_arrow().column("a").to_pylist() == [1, 2, 3]


def test_what_is_left_out_stays_left_out_under_its_new_name(pool: Pool) -> None:
    publish_iceberg(pool, without=["a"])
    pool.rename_field(old="a", new="b")
    assert list(ids(publish_iceberg(pool).location)) == ["k", "c", "r"]
    pool.drop_field("b")
    assert list(ids(publish_iceberg(pool).location)) == ["k", "c", "r"]
    with pytest.raises(InvalidInput, match="field 'a' does not exist"):
        publish_iceberg(pool, without=["a"])


def test_deletes_by_a_condition_hide_records_after_their_field_was_edited(pool: Pool) -> None:
    pool.branch().delete(where="a = 2")
    pool.rename_field(old="a", new="b")
    pool.branch().delete(where="b = 3")
    assert check_published(pool).hidden == 2
    pool.drop_field("b")
    done = check_published(pool)
    assert (done.hidden, done.added_deletes) == (2, 0)


def test_a_filter_and_an_upsert_pool_are_published_with_the_new_names(tmp_path: Path) -> None:
    marks = {"_deleted": [False, None, True]}
    pool = a_local_pool(tmp_path, {**ROWS, **marks}, kind="upsert", settings={"keep.where": "c >= 'y'"})
    pool.rename_field(old="a", new="b")
    assert check_published(pool).hidden == 2


def test_a_column_that_cannot_be_published_is_named_as_readers_see_it(pool: Pool) -> None:
    pool.rename_field(old="c", new="d")
    pool.branch().append(pa.table({"k": [9], "d": [5]}))
    with pytest.raises(InvalidInput, match=r"field 'd' holds values of several kinds.*--without d"):
        publish_iceberg(pool)
    check_published(pool, without=["d"])


def test_copies_of_converted_objects_stay_after_an_edit(tmp_path: Path) -> None:
    rows = pa.table({"k": [1, 2], "a": pa.array([1, 2**64 - 1], pa.uint64()), "c": ["x", "y"]})
    pool = a_local_pool(tmp_path, rows, settings={"publish.types": "text"})
    publish_iceberg(pool)
    pool.rename_field(old="a", new="b")
    done = publish_iceberg(pool)
    assert (done.outcome, done.added) == (PUBLISHED, 0)
    assert read_table(done.location).select(["k", "b", "c"]).to_pylist()[1] == {
        "k": 2,
        "b": 2**64 - 1,
        "c": "y",
    }
    pool.drop_field("c")
    done = publish_iceberg(pool)
    assert read_table(done.location).column_names == ["k", "b"]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_histories_are_published_as_the_lake_shows_them(tmp_path: Path, seed: int) -> None:
    """Each publication reuses the ids and descriptions of the one before."""
    chance = random.Random(seed)
    pool, number, names = a_local_pool(tmp_path, {"k": [0], "a": [0]}), 0, "abcd"
    for _ in range(12):
        what = chance.choice(
            ["load", "load", "rename", "rename", "drop", "add", "compact", "delete", "publish"]
        )
        try:
            if what == "load":
                number += 1
                fields = chance.sample(names, chance.randint(1, 4))
                pool.branch().append(
                    pa.table({"k": [number], **{name: [chance.randint(0, 3)] for name in fields}})
                )
            elif what == "rename":
                old, new = chance.sample(names, 2)
                pool.rename_field(old=old, new=new)
            elif what == "drop":
                pool.drop_field(chance.choice(names))
            elif what == "add":
                pool.add_field(chance.choice(names), "bigint")
            elif what == "compact":
                compact(pool.branch(), pool.at().references)
            elif what == "delete":
                pool.branch().delete(
                    where=f"{chance.choice(pool.at().schema.names)} = {chance.randint(0, 3)}"
                )
            else:
                check_published(pool)
        except (NotFound, InvalidInput):
            assert what in ("rename", "drop", "add")
    if pool.at().records:
        check_published(pool)
