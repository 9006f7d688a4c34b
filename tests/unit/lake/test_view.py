"""Bounds as users give them: read as the type of the key, or refused."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import pyarrow as pa
import pytest

from lake_core.errors import InvalidInput
from lake_core.ids import IdSource
from log_lake.lake import Lake
from log_lake.lake.view import View
from log_lake.loading.block import Block
from log_lake.stores.memory import MemoryStore
from tests.support.pools import a_pool

DAY, MOMENT = dt.date(2013, 1, 2), dt.datetime(2013, 1, 2, 3, tzinfo=dt.UTC)
VALUES: dict[str, pa.Array] = {
    "number": pa.array([5]),
    "string": pa.array(["5"]),
    "boolean": pa.array([True]),
    "bytes": pa.array([b"\x05"]),
    "date": pa.array([DAY]),
    "decimal": pa.array([decimal.Decimal("5.00")]),
    "timestamp": pa.array([MOMENT.replace(tzinfo=None)], pa.timestamp("us")),
    "timestamp with zone": pa.array([MOMENT], pa.timestamp("us", "UTC")),
}


def view(key_class: str, key: str = "k") -> View:
    """A pool of one record whose key is of this class."""
    return a_pool(pa.table(dict.fromkeys(key.split(","), VALUES[key_class])), key=key).at()


@pytest.mark.parametrize(
    ("key_class", "given"),
    [
        ("number", 5),
        ("number", 5.0),
        ("number", "5"),
        ("string", "5"),
        ("boolean", True),
        ("boolean", "true"),
        ("bytes", b"\x05"),
        ("bytes", "BQ=="),
        ("bytes", "x'05'"),
        ("date", DAY),
        ("date", "2013-01-02"),
        ("decimal", decimal.Decimal(5)),
        ("decimal", 5),
        ("decimal", "5.0"),
        ("timestamp", "2013-01-02T03:00:00"),
        ("timestamp", MOMENT),
        ("timestamp with zone", "2013-01-02T03:00:00Z"),
        ("timestamp with zone", "2013-01-02T04:00:00+01:00"),
        ("timestamp with zone", MOMENT),
    ],
    ids=repr,
)
def test_a_bound_is_read_as_the_type_of_the_key(key_class: str, given: Any) -> None:
    assert view(key_class).get(given).num_rows == 1


@pytest.mark.parametrize(
    ("key_class", "given"),
    [
        ("number", "five"),
        ("number", True),
        ("boolean", 1),
        ("bytes", "no hex"),
        ("date", 2013),
        ("date", "today"),
        ("date", MOMENT),
        ("decimal", "NaN"),
        ("timestamp", 2013),
        ("timestamp with zone", 2013),
        ("string", 5),
        ("string", {"a": 1}),
        ("number", {"a": 1}),
        ("number", [[5]]),
    ],
    ids=repr,
)
def test_a_bound_of_another_class_is_refused_and_never_compared_in_silence(
    key_class: str, given: Any
) -> None:
    with pytest.raises(InvalidInput, match="key"):
        view(key_class).get(given)


def test_more_values_than_key_fields_are_refused_in_the_words_of_the_user() -> None:
    with pytest.raises(
        InvalidInput, match=r"key \['2013-01-02', 3, 4\] has 3 values; the pool key a,b has 2 fields"
    ):
        view("date", "a,b").bound(["2013-01-02", 3, 4])


def test_an_open_end_is_open() -> None:
    found = view("number").key_range()
    assert (found.low, found.high) == (b"", None)


def test_a_scan_of_no_columns_still_counts_its_records() -> None:
    assert view("number").to_table(columns=[]).num_rows == 1


def test_a_version_of_an_overtaken_load_supersedes_none() -> None:
    seconds = [1_700_000_000.0]
    lake = Lake.create_on(MemoryStore(), ids=IdSource(clock=lambda: seconds[0]))
    pool = lake.create_pool("p", key="k", kind="upsert")
    branch = pool.branch()
    branch.append(pa.table({"k": [1], "x": ["old"]}))
    slow = branch.begin_load()
    builder = branch.builder(slow)
    builder.add(Block(pa.table({"k": [1], "x": ["overtaken"]})))
    written = builder.finish()
    only = pool.at().key_range(low=1, high=2)
    seconds[0] += 1  # the replace begins later
    branch.replace_with(pa.table({"k": [1], "x": ["replaced"]}), key_range=only)
    branch.commit(slow, objects=[one.action for one in written], schemas=[one.schema for one in written])
    view = pool.at()
    assert view.get(1).to_pylist() == [{"k": 1, "x": "replaced"}]
    assert [(one.fate, one.overtaken) for one in view.explain(only)] == [
        ("deleted", False),
        ("visible", False),
        ("deleted", True),
    ]
