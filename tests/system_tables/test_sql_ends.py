"""Statements that need one end of the key read that end, and the answer is that of all records."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from log_lake import Lake
from log_lake.system_tables.ends import ranges
from log_lake.system_tables.sql import query
from tests.support.stores import InPlaceStore, ScriptedStore


def a_lake(store: ScriptedStore | None = None) -> Lake:
    return Lake.create_on(store or ScriptedStore(InPlaceStore()), author="test")


@pytest.fixture(scope="module")
def store() -> ScriptedStore:
    return ScriptedStore(InPlaceStore())


@pytest.fixture(scope="module")
def integers(store: ScriptedStore) -> Lake:
    """A lake with a pool of integers, which no test changes."""
    lake = a_lake(store)
    filled(lake)
    return lake


def filled(
    lake: Lake, *, key: str = "k", kind: str = "append", make: Callable[[int], Any] = int, objects: int = 30
) -> None:
    """Objects of 50 records, of which each overlaps its neighbours; some records are deleted."""
    pool = lake.create_pool("p", key=key, kind=kind)
    for n in range(objects):
        keys = [make(n * 40 + i) for i in range(50)]
        pool.branch().append(pa.table({"k": keys, "v": [n] * 50, "w": [i % 7 for i in range(50)]}))
    pool.branch().delete(where=f"v = {objects - 1} and w > 2")
    pool.branch().delete(where="v = 0 and w < 4")


def opened(store: ScriptedStore) -> int:
    """The number of objects opened."""
    return len({name for request, name in store.requests if request == "open_input" and "/data/" in name})


ENDS = [
    "select k, v from p order by k limit 3",
    "select k, v from p order by k desc limit 3",
    "select k from p where w = 6 order by k desc limit 5 offset 2",
    "select * exclude (v) from p where w <> 6 and v % 2 = 0 order by k limit 1",
    "select min(k) from p",
    "select max(K) as greatest, max(k) from p",
    "select max(k) from p where w = 1",
    "select v from p limit 2",
]
ALL = [
    "select k from p order by k offset 2",
    "select min(k), max(k) from p",
    "select v as k from p order by k desc limit 3",
    "select k, v from p order by v desc limit 3",
    "select k, v from p order by k desc, v limit 3",
    "select sum(k) from p order by 1 limit 3",
    "select k, count(*) from p group by k order by k limit 3",
    "select distinct k from p order by k desc limit 3",
    "select k, row_number() over (order by v) from p order by k limit 3",
    "select k from p where v = (select max(v) from p) order by k limit 3",
    "select k from p where v < 0 order by k limit 3",
    "select max(k) from p where v < 0",
    "select max(k) filter (where v = 3) from p",
    "select max(distinct v) from p",
    "select a.k from p a join p b on a.k = b.k order by a.k limit 3",
    "select k from (select k from p order by v, k limit 40) order by k desc limit 3",
    "select k from p order by k limit 0",
]


def answers(lake: Lake, sql: str) -> tuple[pa.Table, pa.Table]:
    """Of the lake, and of DuckDB over all records."""
    with duckdb.connect() as connection:
        connection.register("p", lake.pool("p").at().to_table())
        expected = connection.sql(sql).to_arrow_table()
    return query(lake, sql).read_all(), expected


@pytest.mark.parametrize("sql", ENDS)
def test_one_end_is_read(integers: Lake, store: ScriptedStore, sql: str) -> None:
    store.requests.clear()
    found = query(integers, sql).read_all()
    assert 0 < opened(store) <= (10 if "where" in sql else 3)
    assert found.num_rows
    if "limit 2" not in sql:
        assert found.column(0).to_pylist() == answers(integers, sql)[1].column(0).to_pylist()


@pytest.mark.parametrize("sql", ALL)
def test_a_statement_that_may_need_all_records_gets_them(integers: Lake, sql: str) -> None:
    found, expected = answers(integers, sql)
    assert found.num_rows == expected.num_rows
    if "row_number" not in sql:  # which of equal values comes first is not said
        assert sorted(map(str, found.column(0).to_pylist())) == sorted(
            map(str, expected.column(0).to_pylist())
        )


@pytest.mark.parametrize("kind", ["append", "upsert"])
@pytest.mark.parametrize(
    ("key", "make"),
    [
        ("k:desc", int),
        ("k,w", lambda n: n // 3),
        ("k", lambda n: f"a{n:05d}"),
        ("k", lambda n: dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(minutes=n)),
        ("k", lambda n: float("nan") if n > 450 else n / 7),
        ("k", lambda n: n > 240),
    ],
    ids=["descending", "two fields", "text", "time", "double", "boolean"],
)
def test_the_answer_is_that_of_all_records_for_keys_of_every_kind(
    kind: str, key: str, make: Callable[[int], Any]
) -> None:
    lake = a_lake()
    filled(lake, key=key, kind=kind, make=make, objects=12)
    for sql in ENDS[:7]:
        found, expected = answers(lake, sql)
        assert list(map(str, found.column(0).to_pylist())) == list(
            map(str, expected.column(0).to_pylist())
        ), sql


def test_one_large_object_is_cut_by_the_samples_of_its_keys() -> None:
    lake = a_lake()
    pool = lake.create_pool("p", key="k")
    pool.branch().append(pa.table({"k": range(400_000), "v": [0] * 400_000}))
    for last, wanted in ((False, [0, 1]), (True, [399_999, 399_998])):
        first, *_ = ranges(pool.at(), last=last, records=2)
        assert sum(t.num_rows for t in pool.at().scan(key_range=first)) < 100_000
        order = "desc" if last else "asc"
        found = query(lake, f"select k from p order by k {order} limit 2").read_all()
        assert found["k"].to_pylist() == wanted


def test_an_explained_statement_shows_its_plan(integers: Lake) -> None:
    assert query(integers, "explain select k from p order by k limit 1").read_all().num_rows == 1
