"""Changes as rows: what was inserted and deleted, so that who applies them in order has the records of the pool."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

import pyspark_lake
from lake_core.errors import InvalidInput, NotFound
from log_lake.agents.checkpoint.run import purge_pool, write_checkpoint
from log_lake.lake.pool import Pool
from log_lake.loading.block import Block
from log_lake.where import check, holds
from spark_apps.datasource import LakeDataSource
from tests.spark.conftest import Landing
from tests.support.rewrites import remove, rewrite

pytestmark = pytest.mark.spark


def changes(
    landing: Landing, since: object = 0, until: object = "main", **options: str
) -> list[dict[str, Any]]:
    """The rows of changes, as the reader gives them to Spark."""
    given = {"lake": landing.uri, "path": "p", "changes": "true", "since": str(since), "until": str(until)}
    source = LakeDataSource(given | options)
    reader = source.reader(source.schema())
    return [
        row
        for partition in reader.partitions()
        for batch in reader.read(partition)
        for row in batch.to_pylist()
    ]


def test_changes_of_a_branch_since_a_version_before_it_are_refused_instead_of_a_gap(landing: Landing) -> None:
    pool = landing.lake.create_pool("p", key="k")
    pool.branch().append(pa.table({"k": [1]}))
    pool.branch().append(pa.table({"k": [2]}))
    pool.create_branch("x")
    pool.branch("x").append(pa.table({"k": [3]}))
    with pytest.raises(NotFound, match=r"branch 'x' was created in version 3: .* is of another branch"):
        changes(landing, since=1, until="x", branch="x")
    assert [row[2] for row in short(changes(landing, since=3, until="x", branch="x"))] == [3]
    assert [row[2] for row in short(changes(landing, since=0, until="x", branch="x"))] == [1, 2, 3]


def short(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(row["_change"], row["_version"], row.get("k"), row["_where"]) for row in rows]


def applied(rows: list[dict[str, Any]], kind: str) -> list[tuple[int, int]]:
    """The records that one has who applies the changes in order."""
    held: list[dict[str, Any]] = []
    schema = pa.schema([("k", pa.int64()), ("v", pa.int64())])
    for row in rows:
        record = {"k": row["k"], "v": row["v"], "_seq": row["_seq"]}
        if row["_change"] == "insert":
            held = [r for r in held if kind != "upsert" or r["k"] != row["k"]] + [record]
        elif row["_change"] == "delete_key":
            held = [r for r in held if r["k"] != row["k"]]
        else:
            older = [r["_seq"] < row["_seq"] for r in held]
            table = pa.Table.from_pylist([{"k": r["k"], "v": r["v"]} for r in held], schema=schema)
            hidden = [True] * len(held)
            if row["_where"] is not None:
                hidden = holds(check(row["_where"], schema), table).to_pylist()
            held = [r for r, old, hit in zip(held, older, hidden, strict=True) if not (old and hit)]
    return sorted((r["k"], r["v"]) for r in held)


def step(pool: Pool, chance: random.Random, kind: str) -> None:
    """One write, or a rewrite, which is no change."""
    branch = pool.branch()
    table = pa.table(
        {"k": [chance.randrange(9) for _ in range(3)], "v": [chance.randrange(9) for _ in range(3)]}
    )
    low = chance.randrange(8)
    span = pool.at().key_range(low=low, high=low + 3)
    inside = table.set_column(0, "k", pa.array([low, low + 1, low + 2]))
    match chance.randrange(7):
        case 0:
            branch.delete(where=f"v = {chance.randrange(9)}")
        case 1:
            branch.delete(key_range=span)
        case 2:
            branch.replace_with(inside, key_range=span)
        case 3:
            branch.replace_keys(table)
        case 4:
            branch.delete_keys(table)
        case 5:
            rewrite(pool)
        case _:  # a load that a replace overtakes
            pending = branch.begin_load()
            building = branch.builder(pending)  # type: ignore[arg-type]
            building.add(Block(table))
            written = building.finish()
            branch.replace_with(inside, key_range=span)
            branch.commit(
                pending,  # type: ignore[arg-type]
                objects=[w.action for w in written],
                schemas=[w.schema for w in written],
            )


@pytest.mark.parametrize("kind", ["append", "upsert"])
@pytest.mark.parametrize("seed", range(6))
def test_who_applies_the_changes_in_order_has_the_records_of_every_version(
    landing: Landing, kind: str, seed: int
) -> None:
    chance = random.Random(seed)
    pool = landing.lake.create_pool("p", key="k", kind=kind)
    pool.branch().append(pa.table({"k": list(range(9)), "v": list(range(9))}))
    for _ in range(12):
        step(pool, chance, kind)
    newest = pool.at().version
    middle = newest // 2
    first, second = changes(landing, until=middle), changes(landing, since=middle)
    for rows, version in ((first, middle), (first + second, newest)):
        table = pool.at(str(version)).to_table(columns=["k", "v"])
        expected = sorted(zip(table["k"].to_pylist(), table["v"].to_pylist(), strict=True))
        assert applied(rows, kind) == expected, version
    assert first + second == changes(landing)


def test_a_change_says_what_its_transaction_did(landing: Landing) -> None:
    pool = landing.lake.create_pool("p", key="k")
    branch = pool.branch()
    branch.append(pa.table({"k": [1, 2, 3, 4], "v": [1, 2, 3, 4]}))
    branch.delete(where="v = 2")
    branch.delete(key_range=pool.at().key_range(low=3, high=4))
    branch.replace_with(pa.table({"k": [4], "v": [0]}))
    assert short(changes(landing)) == [
        *(("insert", 1, k, None) for k in (1, 2, 3, 4)),
        ("delete", 2, None, "v = 2"),
        ("delete", 3, None, "k >= 3 and k < 4"),
        ("delete", 4, None, None),
        ("insert", 4, 4, None),
    ]
    assert list(changes(landing, columns="v")[0]) == ["_change", "_version", "_seq", "_where", "v"]


def test_what_no_change_can_say_is_an_error_and_what_is_purged_begins_with_the_state(
    landing: Landing,
) -> None:
    pool = landing.lake.create_pool("p", key="k")
    pool.branch().append(pa.table({"k": [1, 2]}))
    pool.branch().delete(where="k = 1")
    pool.branch().revert("2")
    pool.branch().append(pa.table({"k": [9]}))
    with pytest.raises(InvalidInput, match=r"version 3 takes a delete back.*since=3"):
        changes(landing)
    assert short(changes(landing, since=3)) == [("insert", 4, 9, None)]
    now = time.time() + 1
    write_checkpoint(landing.lake, "p", now=now)
    purge_pool(landing.lake, "p", keep=0, now=now)
    assert short(changes(landing)) == [("insert", 4, k, None) for k in (1, 2, 9)]
    with pytest.raises(NotFound, match="purge"):
        changes(landing, since=1)


def test_a_merge_of_a_branch_gives_its_writes_in_order(landing: Landing) -> None:
    pool = landing.lake.create_pool("p", key="k")
    pool.branch().append(pa.table({"k": [1, 2], "v": [1, 2]}))
    pool.create_branch("side")
    side = landing.lake.pool("p").branch("side")
    side.append(pa.table({"k": [3, 4], "v": [3, 4]}))
    side.delete(where="k in (1, 3)")
    side.append(pa.table({"k": [1], "v": [10]}))
    pool.branch().delete(where="k = 2")
    pool.branch().append(pa.table({"k": [2], "v": [20]}))
    pool.branch().merge("side")
    sequences = [row["_seq"] for row in changes(landing)]
    assert sequences == sorted(sequences), "what a merge brings is newer than all before it"
    assert applied(changes(landing), "append") == [(1, 10), (2, 20), (4, 4)]
    assert [row[0] for row in short(changes(landing, branch="side", since=2, until="side"))] == [
        "insert",
        "insert",
        "delete",
        "insert",
    ]


def test_changes_have_every_column_and_kind_that_they_give_also_if_no_record_has_it_any_more(
    landing: Landing,
) -> None:
    """A later delete may name the column; who applies the changes would otherwise lack it."""
    branch = landing.lake.create_pool("p", key="k").branch()
    branch.append(pa.table({"k": [1], "old": ["a"], "x": ["text"]}))
    branch.delete(where="old = 'a' and k = 1")
    branch.revert("1")
    branch.append(pa.table({"k": [2], "x": [5]}))
    rows = changes(landing)
    assert [(row["_change"], row["_where"], row["old"]) for row in rows] == [
        ("insert", None, "a"),
        ("delete", "(k >= 1 and k <= 1) and (old = 'a' and k = 1)", None),
        ("insert", None, None),
    ]
    assert [row["x"] and set(row["x"]) for row in rows] == [
        {"value", "metadata"},
        None,
        {"value", "metadata"},
    ]
    assert changes(landing, since=3)[0] == {**{n: rows[2][n] for n in rows[2] if n != "old"}, "x": 5}
    assert [row["old"] for row in changes(landing, columns="old")] == ["a", None, None]
    with pytest.raises(InvalidInput, match="column 'old' does not exist"):
        changes(landing, columns="old", since=3)


def test_the_state_at_the_beginning_comes_in_the_kinds_and_columns_of_all_changes(landing: Landing) -> None:
    branch = landing.lake.create_pool("p", key="k").branch()
    branch.append(pa.table({"k": [1], "old": ["a"], "x": pa.array([0], pa.date32())}))
    now = time.time() + 1
    write_checkpoint(landing.lake, "p", now=now)
    purge_pool(landing.lake, "p", keep=0, now=now)
    remove(landing.lake.pool("p"))
    branch.append(pa.table({"k": [2], "x": [5]}))
    rows = changes(landing)
    assert [(row["_version"], row["k"], row["old"]) for row in rows] == [(1, 1, "a"), (3, 2, None)]
    assert all(set(row["x"]) == {"value", "metadata"} for row in rows)


def test_of_an_upsert_pool_changes_have_the_mark_of_deletes_only_if_it_is_chosen(landing: Landing) -> None:
    branch = landing.lake.create_pool("p", key="k", kind="upsert").branch()
    branch.append(pa.table({"k": [1], "old": ["a"]}))
    branch.revert("1")
    branch.append(pa.table({"k": [1, 2]}))
    branch.delete_keys(pa.table({"k": [2]}))
    assert list(changes(landing)[0])[4:] == ["k", "old"]
    assert list(changes(landing, columns="k,_deleted")[0])[4:] == ["k", "_deleted"]


@pytest.mark.parametrize("kind", ["append", "upsert", "aggregate"])
def test_what_a_filter_hides_is_no_change(landing: Landing, kind: str) -> None:
    pool = landing.lake.create_pool("p", key="k", kind=kind, settings={"keep.where": "k != 2"})
    pool.branch().append(pa.table({"k": [1, 2, 3], "v": [1, 2, 3]}))
    given = [(row["_change"], row["k"]) for row in changes(landing, columns="v,k")]
    hidden = [("delete_key", 2)] if kind == "upsert" else []
    assert sorted(given) == sorted([("insert", 1), *hidden, ("insert", 3)])
    assert applied(changes(landing), kind) == [(1, 1), (3, 3)]


def test_a_delete_of_a_range_of_booleans_is_a_condition_that_the_lake_takes(landing: Landing) -> None:
    pool = landing.lake.create_pool("p", key="k,f")
    copy = landing.lake.create_pool("copy", key="k,f").branch()
    records = pa.table({"k": [1, 1, 1, 2], "f": [None, False, True, None]})
    pool.branch().append(records)
    pool.branch().delete(key_range=pool.at().key_range(low=[1, True]))
    copy.append(records)
    copy.delete(where=changes(landing)[-1]["_where"])
    assert landing.lake.pool("copy").at().to_table() == pool.at().to_table()


def test_changes_have_columns_of_their_own(landing: Landing) -> None:
    landing.lake.create_pool("p", key="k").branch().append(pa.table({"k": [1]}))
    source = LakeDataSource({"lake": landing.uri, "path": "p", "changes": "true"})
    with pytest.raises(InvalidInput, match=r"changes=true has columns of its own; leave .schema out"):
        source.reader(StructType().add("k", "long")).partitions()


def test_options_that_do_not_fit_are_refused(spark: Any, landing: Landing) -> None:
    pool = landing.lake.create_pool("p", key="k")
    pool.branch().append(pa.table({"k": [1], "_Where": ["x"]}))
    with pytest.raises(InvalidInput, match="has a column '_Where', which a change has too"):
        changes(landing)
    assert short(changes(landing, columns="k")) == [("insert", 1, 1, None)]
    with pytest.raises(InvalidInput, match="since=1 is after until=0"):
        changes(landing, since=1, until=0, columns="k")
    with pytest.raises(InvalidInput, match="unknown option 'at'"):
        pyspark_lake.changes(spark, "p", lake=landing.uri, at=1)
    with pytest.raises(NotFound, match="9"):
        pyspark_lake.changes(spark, "p", lake=landing.uri, since=9)


def test_spark_reads_changes_as_a_frame_of_its_versions_and_as_a_stream(
    spark: Any, landing: Landing, tmp_path: Path
) -> None:
    pool = landing.lake.create_pool("p", key="k", kind="upsert")
    pool.branch().append(pa.table({"k": [1, 2, 3], "v": [1, 2, 3]}))
    pool.branch().delete_keys(pa.table({"k": [2]}))
    frame = pyspark_lake.changes(spark, "p", lake=landing.uri)
    pool.branch().delete(where="v = 3")
    expected = [
        ("insert", 1, 1, None),
        ("insert", 1, 2, None),
        ("insert", 1, 3, None),
        ("delete_key", 2, 2, None),
    ]
    for _ in range(2):
        rows = frame.orderBy("_seq", "k").select("_change", "_version", "k", "_where").collect()
        assert [tuple(row) for row in rows] == expected, "no newer version, however often it is used"
    stream = spark.readStream.format("lake").options(lake=landing.uri, changes="true").load("p")
    query = (
        stream.writeStream.format("memory")
        .queryName("changes")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    found = spark.sql("select _change, _version, k, _where from changes order by _seq, k").collect()
    assert [tuple(row) for row in found] == [*expected, ("delete", 3, None, "v = 3")]
