"""What DuckDB hands down: only the columns that are needed are read, and the answer is DuckDB's own."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from log_lake.lake import Lake
from log_lake.lake.by_type import records_of
from log_lake.lake.view import View
from log_lake.reading.plan import ScanPlan
from log_lake.system_tables import query
from log_lake.system_tables.dataset import PoolDataset

TABLE = pa.table(
    {
        "k": list(range(8)),
        "x": [1.0, math.nan, -1.5, None, math.inf, 5.0, -math.inf, 7.0],
        "s": ["a", "b", None, "d'", 'e"', "Ü", "g", ""],
        "a.b": [1, 2, 3, 4, None, 6, 7, 8],
        'q"x': list(range(8)),
        "back\\slash": [1, 2] * 4,
        "new\nline": [1, 2] * 4,
        "t": pa.array([dt.datetime(2020, 1, i + 1) for i in range(8)], pa.timestamp("us", "UTC")),
        "d": [dt.date(2020, 1, i + 1) for i in range(8)],
        "n": pa.array([decimal.Decimal(i) / 4 for i in range(8)], pa.decimal128(9, 2)),
        "r": [{"u": i, "v": {"w": str(i)}} if i else None for i in range(8)],
        "l": [[i] for i in range(8)],
        "b": [True, False, None, True] * 2,
        "u": pa.array([2**63 + i for i in range(8)], pa.uint64()),
    }
)
CONDITIONS = [
    "x > 0",
    "x <= 1",
    "not (x > 0)",
    "x = 'nan'::double",
    "x < 'inf'::double",
    "x <> 5",
    "x is null",
    "x is not null",
    "x between -2 and 6",
    "x < 0 or x > 6",
    "x is distinct from 'nan'::double",
    "s = 'd'''",
    "s = 'e\"'",
    "s > 'a'",
    "s in ('a', 'b', 'Ü')",
    "s not in ('a', 'b')",
    "s = ''",
    "s like '_''%'",
    "s is not distinct from null",
    '"a.b" > 3',
    '"q""x" = 2',
    '"back\\slash" = 1',
    '"new\nline" = 2',
    "t >= timestamptz '2020-01-03 00:00:00+00'",
    "d = date '2020-01-02'",
    "n > 1.1",
    "n = 0.25",
    "r.u = 3",
    "r.v.w = '3'",
    "r is null",
    "l[1] = 3",
    "b",
    "not b",
    "u > 9223372036854775810",
    "k in (1, 5, 7)",
    "k > 3.5",
    "k = 1 or k = 4",
    "x > 0 and s > 'a' or k = 3",
    "false",
]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    lake = Lake.create(str(tmp_path_factory.mktemp("lake") / "lake"))
    pool = lake.create_pool("p", key="k")
    pool.branch().append(TABLE.take([3, 1, 5]))
    pool.branch().append(TABLE.take([0, 2, 4, 6, 7]))
    return lake


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The columns that scans asked for, in turn."""
    seen: list[list[str]] = []
    run = View.run

    def remember(self: View, plan: ScanPlan) -> Iterator[pa.Table]:
        seen.append(list(plan.columns))
        return run(self, plan)

    monkeypatch.setattr(View, "run", remember)
    return seen


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_means_what_it_means_to_duckdb(lake: Lake, condition: str) -> None:
    plain = duckdb.connect()
    try:
        plain.register("source", TABLE)
        plain.execute("create table p as select * from source")
        expected = [
            row[0] for row in plain.execute(f"select k from p where {condition} order by k").fetchall()
        ]
        plain.unregister("source")
    finally:
        plain.close()
    found = query(lake, f'select k from "p" where {condition} order by k').read_all()
    assert found["k"].to_pylist() == expected


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ('select s from "p"', {"s"}),
        ('select k, "a.b" from "p"', {"k", "a.b"}),
        ('select s from "p" where "q""x" = 2', {"s", 'q"x'}),
        ('select s from "p" where u > 5', {"s", "u"}),
    ],
)
def test_only_the_columns_of_the_question_are_read(
    lake: Lake, asked: list[list[str]], sql: str, columns: set[str]
) -> None:
    query(lake, sql).read_all()
    (read,) = asked
    assert read is not None
    assert columns <= set(read)
    assert len(read) <= len(columns) + 3  # names that the text of a condition happens to contain


def test_a_count_reads_one_column_at_most(lake: Lake, asked: list[list[str]]) -> None:
    assert query(lake, 'select count(*) as n from "p"').read_all().to_pylist() == [{"n": 8}]
    (read,) = asked
    assert read is not None
    assert len(read) <= 1


def test_a_filter_whose_columns_cannot_be_guessed_is_given_all_of_them(
    lake: Lake, asked: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("log_lake.system_tables.dataset.str", lambda expression: "", raising=False)
    view = lake.pool("p").at()
    dataset = PoolDataset(view, records_of(view), [])
    scanner = dataset.scanner(columns=["s"], filter=pc.field("a.b") > 6)
    assert scanner.to_reader().read_all().to_pydict() == {"s": ["g", ""]}
    assert asked == [TABLE.schema.names]


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[ScanPlan]:
    """The plans that ran."""
    seen: list[ScanPlan] = []
    run = View.run

    def remember(self: View, plan: ScanPlan) -> Iterator[pa.Table]:
        seen.append(plan)
        return run(self, plan)

    monkeypatch.setattr(View, "run", remember)
    return seen


KEYS: dict[str, tuple[pa.Array, str, str]] = {
    "integers": (pa.array([-2, -1, 5, 2**40]), "-1", "5"),
    "unsigned": (pa.array([0, 1, 2**63, 2**64 - 1], pa.uint64()), "1", "9223372036854775808"),
    "texts": (pa.array(["", 'a"b\\c', "b\nü'", "c"]), "'a\"b\\c'", "'b\nü'''"),
    "days": (
        pa.array([dt.date(1969, 1, 1), dt.date(2020, 1, 2), dt.date(2020, 1, 3), dt.date(2021, 1, 1)]),
        "date '2020-01-02'",
        "date '2020-01-03'",
    ),
    "instants": (
        pa.array([dt.datetime(2020, 1, day) for day in (1, 2, 3, 4)], pa.timestamp("us", "UTC")),
        "timestamptz '2020-01-02 00:00:00+00'",
        "timestamptz '2020-01-03 00:00:00+00'",
    ),
    "decimals": (
        pa.array([decimal.Decimal(text) for text in ("-1.25", "0.50", "0.75", "9.00")]),
        "0.5",
        "0.75",
    ),
}
"""Four keys in order, and the second and third as SQL writes them."""

INSIDE = {
    "k = {0}": {1},
    "k > {0}": {2, 3},
    "k >= {0}": {1, 2, 3},
    "k < {1}": {0, 1},
    "k between {0} and {1}": {1, 2},
    "k in ({1}, {0})": {1, 2},
    "k = {0} or k = {1}": {1, 2},
    "k > {0} and k < {1}": set(),
    "k >= {0} and x > 0": {1, 2, 3},
    "not (k < {0})": {1, 2, 3},
}
"""The keys that a condition leaves, by their place; so many objects are read, since each holds one key."""


@pytest.mark.parametrize("kind", KEYS)
def test_a_filter_of_the_key_reads_only_the_objects_of_its_range(plans: list[ScanPlan], kind: str) -> None:
    keys, low, high = KEYS[kind]
    lake = Lake.create(f"memory://pushed-{kind}")
    branch = lake.create_pool("p", key="k").branch()
    for place in range(4):
        branch.append(pa.table({"k": keys.slice(place, 1), "x": [place]}))
    for condition, places in INSIDE.items():
        plans.clear()
        found = query(lake, f'select x from "p" where {condition.format(low, high)}').read_all()
        assert set(found["x"].to_pylist()) == places, condition
        (plan,) = plans
        assert len(plan.references) <= len(places), condition


@pytest.mark.parametrize(
    ("condition", "keys", "read"),
    [
        ("k > 1 or x = 0", [0, 2, 3], 4),
        ("k is null or k > 1", [2, 3], 4),
        ("k <> 1", [0, 2, 3], 4),
        ("x = 2", [2], 1),
        ("k + 1 > 2", [2, 3], 2),
    ],
)
def test_a_filter_without_bounds_reads_all_and_one_of_another_field_what_may_hold_it(
    plans: list[ScanPlan], condition: str, keys: list[int], read: int
) -> None:
    lake = Lake.create(f"memory://bounds-{read}-{len(condition)}")
    branch = lake.create_pool("p", key="k").branch()
    for k in range(4):
        branch.append(pa.table({"k": [k], "x": [k]}))
    found = query(lake, f'select k from "p" where {condition} order by k').read_all()
    assert found["k"].to_pylist() == keys
    (plan,) = plans
    assert len(plan.references) == read


@pytest.mark.parametrize("shape", ["", ":typed"])
def test_records_that_lack_the_key_or_hide_others_are_answered_as_without_bounds(shape: str) -> None:
    lake = Lake.create(f"memory://upserted{len(shape)}")
    branch = lake.create_pool(
        "p", key="k", kind="upsert", settings={"format": "zng"} if shape else {}
    ).branch()
    branch.append(pa.table({"k": [1, 2, 3], "x": [10, 20, None]}))
    branch.append(pa.table({"k": [2], "x": [1]}))
    asked = f'select k from "p{shape}" where x >= 10 order by k'
    assert query(lake, asked).read_all()["k"].to_pylist() == [1]


@pytest.mark.parametrize(
    "condition",
    [
        "s >= '2020-01-01 00:00:00.000000001'",
        "s = '0000-01-01'",
        "s <> '0000-01-01' and d > date '0000-01-01'",
        "s < '99999-01-01'",
    ],
)
def test_a_text_that_is_no_value_of_another_field_stops_no_statement(condition: str) -> None:
    """It is tried as a bound of each field, and Python has no such times."""
    lake = Lake.create(f"memory://candidates-{len(condition)}")
    day = dt.date(2020, 1, 1)
    times = pa.array([0], pa.int64())
    records = {"k": [1], "s": ["x"], "d": [day], "n": times.cast(pa.timestamp("ns"))}
    lake.create_pool("p", key="k").branch().append(pa.table(records | {"u": times.cast(pa.timestamp("us"))}))
    asked = f'select k, n is null, u is null, d is null from "p" where {condition}'
    assert query(lake, asked).read_all().num_rows == (1 if ">" in condition else 0)
