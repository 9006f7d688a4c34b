"""`lake rekey`: a new pool with another key and the same records, or nothing."""

from __future__ import annotations

import datetime as dt
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lake_core.errors import AlreadyExists, InvalidInput, LakeError
from lake_core.records.pools import PoolConfig
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.lake.rekey import rekey
from log_lake.workers import Here, Workers
from tests.support.workers import Shuffling

RECORDS = [{"k": n, "city": f"c{n * 7 % 13}", "n": n % 5, "x": {"y": [n]}} for n in range(300)]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.create(str(tmp_path / "lake"))


def filled(lake: Lake, *, kind: str = "append", **settings: str) -> Pool:
    pool = lake.create_pool("old", key="k", kind=kind, settings=settings)
    for begin in range(0, 300, 100):
        pool.branch().append(pa.Table.from_pylist(RECORDS[begin : begin + 100]))
    pool.branch().append(pa.Table.from_pylist([{"k": None, "city": "c1", "n": -1, "x": None}]))
    pool.branch().delete(where="n = 4")
    return pool


def rows(pool: Pool) -> list[dict[str, Any]]:
    return list(pool.at().to_table().to_pylist())


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("format", ["parquet", "zng", "zst"])
def test_the_new_pool_has_the_readable_records_in_its_order(lake: Lake, format: str, many: bool) -> None:
    old = filled(lake, format=format)
    workers: Workers = Here.of(lake.context)
    if many:
        workers = Shuffling(Here.of(lake.context).worker)
    done = rekey(lake, "old", "new", key="city:desc,k", workers=workers, ranges=3 if many else None)
    new = lake.pool("new")
    assert (done.version, done.result.records) == (5, 241)
    expected = [*rows(old), {"k": None, "city": "c1", "n": -1, "x": None}]
    expected.sort(key=lambda row: -1 if row["k"] is None else row["k"])
    expected.sort(key=lambda row: row["city"], reverse=True)
    assert rows(new) == expected
    held = sorted(new.at().references, key=lambda r: r.low)
    if format == "parquet":  # otherwise the record of $nokey, which has no types of its own, is a run beside
        assert all(one.high <= other.low for one, other in pairwise(held))
    assert len(new.at().points) == (2 if many else 0)
    assert new.settings["format"] == format
    assert sum(transaction.branch == "main" for _, transaction in new.log()) == 1


def test_what_cannot_be_is_refused_and_no_pool_is_listed(lake: Lake) -> None:
    filled(lake, kind="upsert")
    lake.create_pool("sums", key="k", kind="aggregate", aggregates={"n": "sum"})
    for name, key, kind, why in (
        ("old", "nowhere", None, "no record has the key field 'nowhere'"),
        ("old", "city,nowhere", None, "no record has the key field 'nowhere'"),
        ("old", "city", None, "the new key of another one"),
        ("sums", "n", None, "combined once more"),
        ("old.$nokey", "k", None, "without a sub-pool"),
    ):
        with pytest.raises(InvalidInput, match=why):
            rekey(lake, name, "new", key=key, kind=kind)
    with pytest.raises(AlreadyExists):
        rekey(lake, "old", "sums", key="city")
    with pytest.raises(InvalidInput, match="one process alone makes no ranges"):
        rekey(lake, "old", "new", key="city,k", ranges=3)
    assert [pool.name for pool in lake.pools()] == ["old", "sums"]
    assert rekey(lake, "old", "new", key="city", kind="append").result.records == 241


@pytest.mark.parametrize("format", ["parquet", "zng"])
@pytest.mark.parametrize("many", [False, True])
def test_a_key_inside_records_is_as_in_an_ordinary_load(lake: Lake, format: str, many: bool) -> None:
    table = pa.table({"k": [1, 2, 3], "z": [1, 1, 2], "s": [{"x": 10}, {"x": 5}, None]})
    settings = {"format": format}
    lake.create_pool("old", key="k", settings=settings).branch().append(table)
    workers: Workers = Shuffling(Here.of(lake.context).worker) if many else Here.of(lake.context)
    for number, key in enumerate(("s.x", "z,s.x")):
        ordinary = lake.create_pool(f"p{number}", key=key, settings=settings)
        ordinary.branch().append(table)
        new = rekey(lake, "old", f"new{number}", key=key, workers=workers).pool
        assert rows(new) == rows(ordinary)
        assert (
            new.at().to_table(where="s.x = 5").to_pylist()
            == ordinary.at().to_table(where="s.x = 5").to_pylist()
        )
        nokey = [lake.pool(f"{name}{number}.$nokey").at().to_table().to_pylist() for name in ("new", "p")]
        assert nokey[0] == nokey[1]


@pytest.mark.parametrize("format", ["parquet", "zng"])
def test_the_key_has_its_declared_type(lake: Lake, format: str) -> None:
    old = lake.create_pool("old", key="k", settings={"format": format})
    old.branch().append(pa.table({"k": [1, 2], "c": ["2013-01-10", "2013-01-09"]}))
    lake.configure_pool("old", {"type.c": "date"})
    new = rekey(lake, "old", "new", key="c").pool
    new.branch().append(pa.table({"k": [5], "c": [dt.date(2013, 1, 1)]}))
    assert [row["c"] for row in rows(new)] == [dt.date(2013, 1, day) for day in (1, 9, 10)]
    lake.configure_pool("old", {"type.c": "boolean"})
    with pytest.raises(InvalidInput, match="a record of the pool: field 'c'"):
        rekey(lake, "old", "other", key="c")
    old.branch().append(pa.table({"k": [3], "t": ["x" * 40_000]}))
    with pytest.raises(InvalidInput, match="'t': a key's value may have at most"):
        rekey(lake, "old", "other", key="t")


def test_settings_of_one_pool_are_not_copied(lake: Lake) -> None:
    one_pool = {"ingest.source": "/in", "intervals.source": "/in/%Y", "publish.iceberg": "/table"}
    lake.create_pool("old", key="t", settings={**one_pool, "type.t": "timestamp", "load.memory": "1GiB"})
    lake.create_pool("beside", key="t", settings={"publish.iceberg": "beside"})
    assert rekey(lake, "old", "new", key="c").pool.config.settings == {
        "type.t": "timestamp",
        "load.memory": "1GiB",
    }
    assert rekey(lake, "beside", "new2", key="c").pool.config.settings == {"publish.iceberg": "beside"}


def test_a_pool_without_transactions_makes_an_empty_one(lake: Lake) -> None:
    lake.create_pool("old", key="k")
    done = rekey(lake, "old", "new", key="c")
    assert (done.version, done.result.version, rows(lake.pool("new"))) == (0, None, [])


def test_an_error_says_which_folder_is_left(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(lake, kind="upsert")
    with pytest.raises(InvalidInput, match="the new key of another one") as caught:
        rekey(lake, "old", "new", key="city")
    lake.give_up_folder(left_by(caught))
    create = lake.catalog.create

    def late(config: PoolConfig) -> int:
        monkeypatch.undo()
        lake.create_pool("new", key="k")
        return create(config)

    monkeypatch.setattr(lake.catalog, "create", late)
    with pytest.raises(AlreadyExists) as taken:
        rekey(lake, "old", "new", key="city,k")
    lake.give_up_folder(left_by(taken))


def left_by(caught: pytest.ExceptionInfo[LakeError]) -> str:
    found = re.search(r"in the folder (\w+); .*lake drop (\w+) --yes$", str(caught.value))
    assert found is not None
    assert found[1] == found[2]
    return found[1]


def test_an_impossible_name_is_refused_before_anything_is_written(lake: Lake) -> None:
    filled(lake)
    with pytest.raises(InvalidInput) as caught:
        rekey(lake, "old", "a/b", key="city")
    assert "lake drop" not in str(caught.value)


def test_a_field_without_an_order_is_refused_before_anything_is_written(lake: Lake) -> None:
    lake.create_pool("old", key="k").branch().append(pa.table({"k": [1], "user": [{"id": 7}]}))
    with pytest.raises(InvalidInput, match=r"key field 'user': .* or a field inside: user\.NAME$"):
        rekey(lake, "old", "new", key="user")
    rekey(lake, "old", "new", key="user.id")
