"""Makes random queries of one table, in words that Spark and DuckDB both understand, and compares the answers of
both.

A query filters, projects, joins the table with itself, unites, groups, or has subqueries. Only integers are
summed, because sums of doubles depend on the order.

    python -m tests.support.spark.queries LAKE POOL SEED COUNT

asks the Spark that `spark_session` returns, by the data source and then by a native read, and prints how many
queries had equal answers. Run by test_masters over Spark Connect.
"""

from __future__ import annotations

import datetime as dt
import sys
from random import Random
from typing import Any

import duckdb
import pyarrow as pa

import pyspark_lake
from log_lake.lake import Lake
from spark_apps.session import spark_session

TABLE = "t"
COLUMNS = ("k", "n", "x", "s", "d", "b")
WORDS = ("", "a", "ab", "z", "\u00e9", "Z", "10", "9")


def records(count: int, *, seed: int) -> pa.Table:
    """Makes rows with a unique key, and values of several types, which recur or are null."""
    random = Random(seed)

    def some(value: Any) -> Any:
        return None if random.random() < 0.15 else value

    return pa.table(
        {
            "k": pa.array(random.sample(range(-count, count), count), pa.int64()),
            "n": pa.array([some(random.randrange(-20, 20)) for _ in range(count)], pa.int64()),
            "x": pa.array([some(random.choice([-1.5, 0.0, 0.25, 3.0, 1e300])) for _ in range(count)]),
            "s": pa.array([some(random.choice(WORDS)) for _ in range(count)]),
            "d": pa.array([some(dt.date(2020, 1, random.randrange(1, 9))) for _ in range(count)]),
            "b": pa.array([some(random.random() < 0.5) for _ in range(count)]),
        }
    )


class Queries:
    """A stream of queries, always the same for the same seed."""

    def __init__(self, seed: int, *, size: int) -> None:
        self._random = Random(seed)
        self._size = size

    def next(self) -> str:
        """Returns the next query."""
        shapes = (self._plain, self._plain, self._join, self._union, self._grouped, self._subquery)
        return self._random.choice(shapes)()

    def _plain(self) -> str:
        columns = self._random.sample(COLUMNS, self._random.randrange(1, len(COLUMNS) + 1))
        return f"select {', '.join(columns)} from {TABLE} where {self._condition()}"

    def _union(self) -> str:
        columns = ", ".join(self._random.sample(COLUMNS, 2))
        parts = [
            f"select {columns} from {TABLE} where {self._condition()}"
            for _ in range(self._random.randrange(2, 4))
        ]
        how = self._random.choice([" union all ", " union ", " intersect ", " except "])
        return how.join(parts)

    def _join(self) -> str:
        kind = self._random.choice(["join", "left join", "full join"])
        on = self._random.choice(["a.k = b.n", "a.n = b.k", "a.k = b.k", "a.k = b.k + 1"])
        left, right = self._condition(), self._condition()
        return (
            f"select a.k, a.s, b.k as other, b.n from (select * from {TABLE} where {left}) a "
            f"{kind} (select * from {TABLE} where {right}) b on {on}"
        )

    def _grouped(self) -> str:
        by = self._random.choice(["n", "s", "d", "b"])
        return (
            f"select {by}, count(*), count(n), sum(n), min(k), max(x), min(s), count(distinct d) from {TABLE} "
            f"where {self._condition()} group by {by} having count(*) > {self._random.randrange(3)}"
        )

    def _subquery(self) -> str:
        inner, outer = self._condition(), self._condition()
        asked = self._random.choice(
            [
                f"k in (select n from {TABLE} where {inner})",
                f"n in (select k from {TABLE} where {inner})",
                f"k > (select min(n) from {TABLE} where {inner})",
                f"exists (select 1 from {TABLE} o where o.k = m.n and o.k < {self._key()})",
            ]
        )
        return f"select k, n, s from {TABLE} m where {asked} and {outer}"

    def _condition(self, depth: int = 2) -> str:
        if depth and self._random.random() < 0.5:
            word = self._random.choice([" and ", " or "])
            return f"({self._condition(depth - 1)}{word}{self._condition(depth - 1)})"
        if self._random.random() < 0.1:
            return f"not ({self._condition(0)})"
        op = self._random.choice(["=", "<>", "<", "<=", ">", ">="])
        return self._random.choice(
            [
                f"k {op} {self._key()}",
                f"k between {self._key()} and {self._key()}",
                f"k in ({self._key()}, {self._key()}, {self._key()})",
                f"n {op} {self._random.randrange(-20, 20)}",
                f"x {op} {self._random.choice(['0.25', '0', '-1.5', '3'])}",
                f"s {op} '{self._random.choice(WORDS)}'",
                f"s like '{self._random.choice(['a%', '%b', '%', '_'])}'",
                f"d {op} date '2020-01-0{self._random.randrange(1, 9)}'",
                f"{self._random.choice(COLUMNS)} is {self._random.choice(['', 'not '])}null",
                "b",
                f"n + k {op} {self._key()}",
            ]
        )

    def _key(self) -> int:
        return self._random.randrange(-self._size, self._size)


def canonical(rows: list[tuple[Any, ...]]) -> list[str]:
    """Returns rows in an order that does not depend on the engine."""
    return sorted(repr(row) for row in rows)


def disagreements(spark: Any, frame: Any, table: pa.Table, *, seed: int, count: int) -> list[str]:
    """Returns those of so many queries whose answers differ. All are asked of the same data frame."""
    frame.createOrReplaceTempView(TABLE)
    queries = Queries(seed, size=table.num_rows)
    wrong = []
    with duckdb.connect() as oracle:
        oracle.register(TABLE, table)
        for _ in range(count):
            query = queries.next()
            found = canonical([tuple(row) for row in spark.sql(query).collect()])
            if found != canonical(oracle.execute(query).fetchall()):
                wrong.append(query)
    return wrong


def main(uri: str, pool: str, seed: str, count: str) -> None:
    with spark_session("queries") as spark:
        frame = spark.read.format("lake").option("lake", uri).option("tasks", "3").load(pool)
        native = pyspark_lake.read(spark, pool, lake=uri)
        table = Lake.open(uri).pool(pool).at().to_table()
        wrong = disagreements(spark, frame, table, seed=int(seed), count=int(count))
        wrong += disagreements(spark, native, table, seed=int(seed) + 1, count=int(count))
        ways = pyspark_lake.explain(spark, pool, lake=uri)
        if "parquet" not in ways or "data source" not in ways:
            wrong.append(f"not both ways: {ways}")
    if wrong:
        raise SystemExit("\n".join(["Spark and DuckDB differ:", *wrong]))
    print(f"2 times {count} agree")


if __name__ == "__main__":
    main(*sys.argv[1:])
