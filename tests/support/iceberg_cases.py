"""Pools to publish, each with something that is hard for a reader of Iceberg. Other programs read them for
comparison with the lake."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from lake_core.records.transactions import sequence
from log_lake.lake.pool import Pool
from log_lake.publish.run import publish_iceberg
from log_lake.rewriting.compaction import compact
from tests.support.iceberg import ODD, TYPES, a_local_pool, read_table, values


def numbers(low: int, high: int, **more: Any) -> dict[str, Any]:
    return {"k": list(range(low, high)), **{name: [value] * (high - low) for name, value in more.items()}}


def _types(folder: Path) -> Pool:
    columns = {
        name: column for name, column in TYPES.items() if name != "time"
    }  # Spark has no such type here
    return a_local_pool(folder, pa.table({"k": [1, 2, 3], **columns}))


def _times_of_day(folder: Path) -> Pool:
    return a_local_pool(folder, pa.table({"k": [1, 2, 3], "t": TYPES["time"]}))


def _nested_nulls(folder: Path) -> Pool:
    kind = pa.list_(pa.struct({"a": pa.int64()}))
    return a_local_pool(folder, pa.table({"k": [1, 2, 3], "c": pa.array([[{"a": 1}, None], [], None], kind)}))


def _deletes(folder: Path) -> Pool:
    pool = a_local_pool(
        folder, numbers(0, 20_000, s="a"), numbers(10_000, 30_000, s="b"), numbers(50_000, 50_010)
    )
    pool.branch().delete(key_range=pool.at().key_range(low=8_000, high=12_000))
    pool.branch().delete(where="s = 'b' and k >= 29000")
    pool.branch().delete(where="k = 50003")
    return pool


def _compacted(folder: Path) -> Pool:
    pool = a_local_pool(folder, *(numbers(i, i + 5, v=i) for i in (0, 0, 3)))
    compact(pool.branch(), pool.at().references)
    pool.branch().revert("2")
    return pool


def _upsert(folder: Path) -> Pool:
    loads = [
        {"k": [1, 2, 3, 4], "_deleted": [True, False, None, False], "s": ["a", "b", "c", "d"]},
        {"k": [2, 4], "s": ["x", "y"]},
    ]
    pool = a_local_pool(folder, *loads, kind="upsert")
    compact(pool.branch(), pool.at().references)
    pool.branch().append(pa.table({"k": [10, 11], "_deleted": [None, True], "s": ["u", "v"]}))
    pool.branch().delete(where="s = 'y'")
    return pool


def _aggregate(folder: Path) -> Pool:
    pool = a_local_pool(
        folder, numbers(0, 5, n=1), numbers(3, 9, n=2), kind="aggregate", aggregates={"n": "sum"}
    )
    compact(pool.branch(), pool.at().references)
    return pool


def _evolved(folder: Path) -> Pool:
    return a_local_pool(
        folder,
        pa.table({"k": pa.array([1], pa.int32()), "r": [{"a": 1}], "x": pa.array([1.5], pa.float32())}),
        pa.table({"id.orig_h": ["h"], "r": [{"b": [{"c": 2}], "a": 3}], "k": [2**40], "nulls": pa.nulls(1)}),
        pa.table({"k": [3], "x": [1e300], "r": pa.array([None], pa.struct({"a": pa.int64()}))}),
    )


def _published_twice(folder: Path) -> Pool:
    pool = a_local_pool(folder, numbers(0, 10, s="a"), numbers(5, 15, s="b"))
    pool.branch().delete(where="k = 3")
    publish_iceberg(pool)
    pool.branch().append(pa.table({**numbers(20, 30, s="c"), "new": [None] * 9 + [1.5]}))
    pool.branch().delete(where="k = 3 or k = 7")
    compact(pool.branch(), [r for r in pool.at().references if r.seq == sequence(2)])
    return pool


def _descending(folder: Path) -> Pool:
    loads = [{"k": [3, None, 1], "s": ["b", "a", None]}, {"k": [None, 2], "s": [None, "z"]}]
    return a_local_pool(folder, *loads, key="s:desc,k")


def _floats(folder: Path) -> Pool:
    single = pa.array([0.1, float("-inf"), 16_777_216, None], pa.float32())
    return a_local_pool(folder, {"k": [1, 2, 3, 4], "x": [-0.0, 1.5, float("inf"), None], "single": single})


def _times(folder: Path) -> Pool:
    moments = pa.array([-(10**15), -1, 0, 1_000_000, 1_000_001, None], pa.timestamp("us", "UTC"))
    days = moments.cast(pa.date32())
    return a_local_pool(
        folder, pa.table({"k": range(6), "t": moments, "d": days, "n": moments.cast(pa.timestamp("us"))})
    )


@dataclass(frozen=True)
class Case:
    """A pool, and filters in two forms: for Spark, and for the lake."""

    make: Callable[[Path], Pool]
    branch: str = "main"
    without: tuple[str, ...] = ()
    filters: tuple[tuple[str, str], ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    """By field: its name in the table, if that is another one."""
    is_converted: bool = False
    """Whether the values are those that pyiceberg reads, not those of the lake; test_conversion.py has them."""


def _key_inside(folder: Path) -> Pool:
    pool = a_local_pool(folder, key="user.id,l.element")
    for number in range(3):
        file = folder / "in.ndjson"
        file.write_text(
            "".join(
                f'{{"user": {{"id": {id}, "name": "n{id}"}}, "l": [{id}], "l.element": "e"}}\n'
                for id in range(number * 10, number * 10 + 20)
            )
        )
        pool.branch().load([str(file)])
    pool.branch().delete(where='"user.id" = 7')
    return pool


def _converted(folder: Path) -> Pool:
    odd = {name: column for name, column in ODD.items() if name != "time s"}  # a time, which Spark has not
    several = {"k": [5], "v": [1]}, {"k": [6], "v": ["1"]}
    records = pa.table({"k": [1, 2, 3], **odd})
    pool = a_local_pool(folder, records, {"k": [4]}, *several, settings={"publish.types": "text"})
    pool.branch().delete(where="k = 2")
    return pool


def _edited(folder: Path) -> Pool:
    pool = a_local_pool(
        folder, {**numbers(0, 10, s="a"), "old": range(10), "gone": range(10), "r": [{"old": 1}] * 10}
    )
    pool.branch().delete(where="old = 3")
    publish_iceberg(pool)
    pool.rename_field(old="old", new="new")
    pool.drop_field("gone")
    pool.branch().append(
        pa.table({**numbers(5, 15, s="b"), "gone": [f"{n}" for n in range(10)], "new": range(10)})
    )
    for old, new in (("s", "t"), ("new", "s"), ("t", "new")):
        pool.rename_field(old=old, new=new)
    pool.branch().append(pa.table(numbers(20, 22, old="x")))
    return pool


def _branched(folder: Path) -> Pool:
    pool = a_local_pool(folder, numbers(0, 5, s="a"))
    pool.create_branch("dev")
    pool.branch("dev").append(pa.table(numbers(5, 10, s="b")))
    pool.branch().delete(where="k = 1")
    return pool


CASES = {
    "all types": Case(
        _types,
        filters=(
            ("int8 > 0", "int8 > 0"),
            ("decimal > 0", "decimal > 0"),
            ("`long decimal` < 0", '"long decimal" < 0'),
            ("double < 0", "double < 0"),
            ("record.a = 1", "record.a = 1"),
            ("bool", "bool = true"),
            ("`text` = 'zürich \U0001f600'", "text = 'zürich \U0001f600'"),
        ),
    ),
    "nested nulls": Case(_nested_nulls),
    "deletes": Case(
        _deletes,
        filters=(
            ("k >= 7990 and k < 12010", "k >= 7990 and k < 12010"),
            ("s = 'b' and k > 28990", "s = 'b' and k > 28990"),
        ),
    ),
    "compacted, with a revert": Case(_compacted),
    "upsert": Case(_upsert),
    "aggregate": Case(_aggregate),
    "evolved": Case(
        _evolved,
        filters=(("k > 2", "k > 2"), ("x > 1.25", "x > 1.25"), ("`id.orig_h` = 'h'", "\"id.orig_h\" = 'h'")),
    ),
    "published twice": Case(_published_twice, filters=(("new is not null", "new is not null"),)),
    "keys descending, and null": Case(
        _descending, filters=(("s is null", "s is null"), ("s < 'b'", "s < 'b'"))
    ),
    "floats": Case(_floats, filters=(("x = 0", "x = 0"), ("x > 1", "x > 1"))),
    "times": Case(
        _times,
        filters=(
            ("t > timestamp'1970-01-01 00:00:01'", "t > timestamp '1970-01-01T00:00:01Z'"),
            ("n <= timestamp_ntz'1970-01-01 00:00:01'", "n <= timestamp '1970-01-01T00:00:01'"),
            ("d < date'1970-01-01'", "d < '1970-01-01'"),
        ),
    ),
    "a branch": Case(_branched, branch="dev"),
    "main beside a branch": Case(_branched),
    "renamed and dropped fields": Case(
        _edited,
        filters=(
            ("s > 4", "s > 4"),
            ("gone is null", "gone is null"),
            ("old = 'x'", "old = 'x'"),
            ("new = 'b' and gone >= '4'", "new = 'b' and gone >= '4'"),
        ),
    ),
    "a key inside of records": Case(
        _key_inside,
        filters=(("user_id > 25", '"user.id" > 25'), ("user.id = 12", "user.id = 12")),
        renamed={"user.id": "user_id", "l.element": "l_element"},
    ),
    "without a field": Case(
        lambda folder: a_local_pool(folder, numbers(0, 3, c=1, s="a"), numbers(3, 6, c="a", s="b")),
        without=("c",),
    ),
    "converted": Case(_converted, is_converted=True),
}

BEYOND_SPARK = {"times of day": Case(_times_of_day, filters=(("t = time '23:59:59.999999'", "t > '12:00'"),))}
"""Cases that Iceberg's runtime for Spark refuses, and other programs read."""


@dataclass(frozen=True)
class Tables:
    """Published cases: the pools, and the locations of their tables."""

    cases: Mapping[str, Case]
    pools: Mapping[str, Pool]
    locations: Mapping[str, str]

    def expected(self, name: str, where: str | None) -> list[str]:
        """The rows that the lake returns, in the form of `read_as`."""
        case = self.cases[name]
        if case.is_converted:
            return read_as(read_table(self.locations[name]).to_pylist())
        view = self.pools[name].at(case.branch)
        columns = [column for column in view.plan().shown if column not in case.without]
        rows = (row for t in view.scan(columns=columns, where=where) for row in t.to_pylist())
        return read_as({case.renamed.get(name, name): value for name, value in row.items()} for row in rows)


def publish_cases(folder: Path, cases: Mapping[str, Case]) -> Tables:
    """Makes the pools of the cases below a folder, and publishes them."""
    pools, locations = {}, {}
    for number, (name, case) in enumerate(cases.items()):
        pools[name] = case.make(folder / str(number))
        locations[name] = publish_iceberg(pools[name], branch=case.branch, without=case.without).location
    return Tables(cases, pools, locations)


def read_as(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Returns rows as texts, which are equal if the rows are."""
    return values(without_zone(row) for row in rows)


def without_zone(value: Any) -> Any:
    """Returns instants as times of UTC without a zone, because readers name different zones."""
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, dict):
        return {name: without_zone(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(without_zone(part) for part in value)
    return value
