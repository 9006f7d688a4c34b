"""Counts, minima and maxima from statistics are those of all records; only objects that do not tell are read.

The oracle is DuckDB over a table of all records.  `LAKE_STATE_SEEDS` takes so many histories.
"""

from __future__ import annotations

import datetime as dt
import math
import os
from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any

import duckdb
import msgspec
import pyarrow as pa
import pytest

from lake_core.keys.encoding import encode_value
from lake_core.naming import FORMATS
from lake_core.records import Column
from log_lake import Lake
from log_lake.lake.pool import Pool
from log_lake.lake.view import View
from log_lake.reading.known import FieldStatistics, value_in
from log_lake.system_tables.dataset import as_sql_sees
from log_lake.system_tables.sql import query
from tests.support import pools
from tests.support.pools import compact_all
from tests.support.stores import InPlaceStore, ScriptedStore

SEEDS = int(os.environ.get("LAKE_STATE_SEEDS", "2"))

TEXTS = ["", "a", "b\0c", "\uffff", "\U0001f600", "x" * 70, "x" * 69 + "y", "Z", "1"]
DOUBLES = [0.0, -0.0, 1.5, -2.25, math.inf, -math.inf, math.nan, 1e300, 5e-324]
BIG = [0, 1, 2**53 + 1, 2**63, 2**64 - 1]

KEYS: dict[str, Callable[[Random, int], Any]] = {
    "integer": lambda chance, n: chance.randrange(12) + 10 * n,
    "text": lambda chance, n: chance.choice(TEXTS),
    "double": lambda chance, n: chance.choice(DOUBLES),
    "decimal": lambda chance, n: Decimal(chance.randrange(-50, 50)) / 4 + n,
    "time": lambda chance, n: dt.datetime(2026, 1, 1 + n, chance.randrange(24), tzinfo=dt.UTC),
    "unsigned": lambda chance, n: chance.choice(BIG),
}
TYPES = {
    "integer": pa.int64(),
    "text": pa.string(),
    "double": pa.float64(),
    "decimal": pa.decimal128(12, 2),
    "time": pa.timestamp("us", "UTC"),
    "unsigned": pa.uint64(),
}


def a_load(chance: Random, n: int, kind: str) -> pa.Table:
    """Some records; their fields are not those of all loads, and `any` has another type in each."""
    count = chance.randrange(1, 9)

    def some(make: Callable[[], Any]) -> list[Any]:
        return [None if chance.random() < 0.15 else make() for _ in range(count)]

    columns: dict[str, Any] = {
        "k": pa.array([KEYS[kind](chance, n) for _ in range(count)], TYPES[kind]),
        "g": pa.array([n % 3 if chance.random() < 0.8 else None] * count, pa.int64()),
        "d": pa.array(some(lambda: chance.choice(DOUBLES)), pa.float64()),
        "s": pa.array(some(lambda: chance.choice(TEXTS)), pa.string()),
        "t": pa.array(
            some(lambda: dt.datetime(1970 + n, 1, 1 + chance.randrange(9))),
            pa.timestamp(chance.choice(["us", "ns"])),
        ),
        "r": [{"in": chance.randrange(3), "G": None} for _ in range(count)],
    }
    if n % 2:
        columns["n"] = pa.array(some(lambda: chance.randrange(100)), chance.choice([pa.int32(), pa.int64()]))
        columns["u"] = pa.array(some(lambda: chance.choice(BIG)), pa.uint64())
        columns["dec"] = pa.array(some(lambda: Decimal(chance.randrange(-900, 900)) / 8), pa.decimal128(9, 3))
    columns["any"] = chance.choice([pa.array(["a"] * count), pa.array([1] * count), pa.array([True] * count)])
    columns["day"] = pa.array(some(lambda: dt.date(2026, 1, 1 + n % 5)), pa.date32())
    columns["b"] = pa.array(some(lambda: chance.random() < 0.5), pa.bool_())
    if chance.random() < 0.2:
        columns["_deleted"] = pa.array(some(lambda: chance.random() < 0.4), pa.bool_())
    return pa.table(columns)


def a_pool(seed: int) -> tuple[Lake, Pool]:
    """A pool of any kind and format after a few loads, deletes and compactions, on one of two branches."""
    chance = Random(seed)
    kind, key = chance.choice(["append", "append", "upsert", "aggregate"]), chance.choice([*KEYS])
    settings = {"format": chance.choice(FORMATS)}
    if chance.random() < 0.4:
        settings["load.inline"] = "64KiB"
    if kind != "aggregate" and chance.random() < 0.2:
        settings["age_off"] = "day:1000d"
    if chance.random() < 0.2:
        settings["keep.where"] = "k is not null" if kind == "aggregate" else "n > 3"
    order = chance.choice(["", ":desc"])
    lake = Lake.create_on(ScriptedStore(InPlaceStore()), author="test")
    aggregates = {"n": "max", "d": "min", "s": "last"} if kind == "aggregate" else None
    pool = lake.create_pool("p", key=f"k{order}", kind=kind, aggregates=aggregates, settings=settings)
    for n in range(chance.randrange(1, 9)):
        if n == 4 and chance.random() < 0.4:
            pool.create_branch("other", at="main")
        branch = pool.branch(chance.choice(list(pool.at().state.branches)))
        load = a_load(chance, n, key)
        branch.append(
            load if kind == "upsert" or "_deleted" not in load.column_names else load.drop(["_deleted"])
        )
        if chance.random() < 0.15:
            keys = load["k"].to_pylist()
            pool.branch().delete(key_range=pool.at().key_range(low=min(keys, key=str)))
        if kind != "aggregate" and chance.random() < 0.15:
            pool.branch().delete(where=chance.choice(["g = 1", "b = true"]))
        if chance.random() < 0.1 and pool.at().references:
            compact_all(pool)
    return lake, pool


FIELDS = ("k", "g", "d", "s", "t", "n", "u", "dec", "any", "day", "b", "r")
CONDITIONS = (
    "g >= 1",
    "g = 1 and n < 50",
    "day between '2026-01-02' and '2026-01-03'",
    "t > '1973-01-01'",
    "day >= timestamp '2026-01-02 12:00:00' and 3 > g",
    "s >= 'b'",
    "s < 'x'",
    "dec > 1.5",
    "u >= 9223372036854775808",
    "u > -1",
    "g = 1 or g = 2",
    "n > 2.5",
    "g > NULL",
    "d > 0",
    "t < timestamp '1972-01-05' + interval 2 day",
)


def a_statement(chance: Random, fields: list[str]) -> str:
    usable = [name for name in FIELDS if name in fields]
    shown = ["count(*)"] if chance.random() < 0.7 else []
    for name in chance.sample(usable, min(len(usable), chance.randrange(3))):
        shown.append(chance.choice([f"count({name})", f"min({name})", f"max(l.{name}) as most_{name}"]))
    groups = chance.sample(["g", "day", "k", "b", "s", "any"], chance.choice([0, 0, 1, 2]))
    groups = [name for name in groups if name in fields]
    text = f'select {", ".join([*groups, *(shown or ["count(1) + 1"])])} from "p@BRANCH" l'
    conditions = [c for c in CONDITIONS if all(f in fields for f in FIELDS if f"{f} " in c)]
    if chance.random() < 0.5 and conditions:
        text += f" where {chance.choice(conditions)}"
    if groups:
        text += f" group by {', '.join(groups)}"
    return text + (" having count(*) > 1" if chance.random() < 0.2 else "")


def rows(table: pa.Table) -> list[str]:
    return sorted(repr(tuple(record.values())) for record in table.to_pylist())


def expected(view: View, sql: str) -> pa.Table:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET threads = 1")
        connection.register(f"p@{view.branch}", as_sql_sees(view.to_table()))
        return connection.sql(sql).to_arrow_table()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_answer_is_that_of_all_records(seed: int) -> None:
    chance = Random(f"statements {seed}")
    lake, pool = a_pool(seed)
    for branch in pool.at().state.branches:
        view = pool.at(branch)
        for _ in range(4):
            sql = a_statement(chance, view.schema.names).replace("BRANCH", branch)
            try:
                wanted = expected(view, sql)
            except duckdb.Error:
                continue
            found = query(lake, sql).read_all()
            assert rows(found) == rows(wanted), sql
            assert found.schema.names == wanted.schema.names, sql
        summary, table = view.summary(read=True), view.to_table()
        assert summary.records == table.num_rows
        nulls = {name: one.nulls for name, one in summary.fields.items()}
        assert nulls == {name: table[name].null_count for name in table.schema.names}


def days(*, kind: str = "append", store: ScriptedStore | None = None) -> tuple[Lake, ScriptedStore]:
    """Six objects of ten records each, of one day each."""
    store = store or ScriptedStore(InPlaceStore())
    lake = Lake.create_on(store, author="test")
    pool = lake.create_pool("p", key="day,k", kind=kind)
    for n in range(6):
        day = pa.array([dt.date(2026, 1, 1 + n)] * 10, pa.date32())
        pool.branch().append(pa.table({"day": day, "k": range(10), "x": [n + 0.5] * 10}))
    return lake, store


def opened(store: ScriptedStore) -> int:
    return len({name for request, name in store.requests if request == "open_input" and "/data/" in name})


@pytest.mark.parametrize(
    ("sql", "objects", "answer"),
    [
        ("select count(*), min(day), max(day) from p", 0, [(60, dt.date(2026, 1, 1), dt.date(2026, 1, 6))]),
        ("select count(*) + 1, max(k) - min(p.k), count(x), min(x) from p", 0, [(61, 9, 60, 0.5)]),
        (
            "select day from p group by day having count(*) > 9 order by 1 desc limit 1",
            0,
            [(dt.date(2026, 1, 6),)],
        ),
        ("select count(*) from p where day between '2026-01-02' and '2026-01-03'", 0, [(20,)]),
        ("select count(*) from p where day >= '2026-01-06' and k < 3", 1, [(3,)]),
        ("select count(*) from p where day > '2027-01-01'", 0, [(0,)]),
        ("select max(x) from p where day = '2026-01-04'", 1, [(3.5,)]),  # NaN would be in no bound
        ("select sum(x) from p where day = '2026-01-04'", 1, [(35.0,)]),
    ],
)
def test_only_objects_that_the_statistics_do_not_tell_of_are_read(
    sql: str, objects: int, answer: Any
) -> None:
    lake, store = days()
    store.requests.clear()
    assert [tuple(record.values()) for record in query(lake, sql).read_all().to_pylist()] == answer
    assert opened(store) == objects


def test_a_delete_costs_the_objects_that_it_may_touch_and_explain_says_so() -> None:
    lake, store = days()
    lake.pool("p").branch().delete(where="day = '2026-01-03' and k = 4")
    lake.pool("p").branch().delete(key_range=lake.pool("p").at().key_range(low=dt.date(2026, 1, 6)))
    store.requests.clear()
    assert query(lake, "select count(*) from p").read_all().to_pylist() == [{"count_star()": 49}]
    assert opened(store) == 1
    last = query(lake, "explain select day, count(*) from p where day < '2026-01-05' group by day").read_all()
    assert last.to_pylist()[-1] == {
        "explain_key": "objects",
        "explain_value": "reads 1 of 6 objects (1: a delete may hide records); the statistics of 3 answer, "
        "2 cannot fulfil the condition or are deleted",
    }


def test_records_that_replace_each_other_are_read_and_their_neighbours_are_not() -> None:
    lake, store = days(kind="upsert")
    lake.pool("p").branch().append(
        pa.table({"day": pa.array([dt.date(2026, 1, 2)] * 2, pa.date32()), "k": [4, 5]})
    )
    store.requests.clear()
    assert query(lake, "select count(*), count(x) from p").read_all().to_pylist()[0] == {
        "count_star()": 60,
        "count(x)": 58,
    }
    assert opened(store) == 2


def test_a_statistic_that_cannot_be_right_is_not_used() -> None:
    schema = pa.schema([("k", pa.int64()), ("s", pa.string())])
    pool = pools.a_pool(pa.table({"k": [1, 2], "s": ["a", "b"]}, schema=schema))
    (reference,) = pool.at().references
    good = {column.name: column for column in reference.columns}
    low, high = encode_value(1), encode_value(2)
    for bad in (
        Column("k", 3, low, high),
        Column("k", 0, high, low),
        Column("k", 2, low, high),
        Column("s", 0, low, high),
        Column("s", 0, encode_value("a")[:-1], encode_value("b")),
    ):
        columns = tuple((good | {bad.name: bad}).values())
        damaged = msgspec.structs.replace(reference, columns=columns)
        found = FieldStatistics.of(damaged, bad.name, schema)
        assert found is None or value_in(found.low, schema.field(bad.name).type) is None
    assert FieldStatistics.of(msgspec.structs.replace(reference, columns=()), "k", schema) is None


def test_between_takes_its_three_values_to_one_type() -> None:
    lake = Lake.create_on(InPlaceStore())
    lake.create_pool("p", key="k").branch().append(pa.table({"k": [9_007_199_254_740_992]}))
    sql = (
        "select count(*) as n from p where k between 9007199254740993 and 1e300"  # as doubles, both are equal
    )
    assert query(lake, sql).read_all()["n"].to_pylist() == [1]
