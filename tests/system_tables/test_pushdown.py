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
