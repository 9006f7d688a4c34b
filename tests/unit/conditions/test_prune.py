"""Pruning by statistics: what it can tell.  That it is never wrong is tests/properties/test_conditions.py."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from lake_core.conditions import may_hold, must_hold
from lake_core.conditions.classwise import _of_one
from lake_core.keys.encoding import encode_value
from lake_core.records import Column
from lake_core.values.types import json_field
from log_lake.objects.statistics import column_statistics
from log_lake.where import check

TABLE = pa.table(
    {
        "n": [10, 11, 20],
        "same": [7, 7, 7],
        "some": [1, None, 3],
        "none": pa.array([None, None, None], pa.int64()),
        "x": [1.0, 2.0, math.nan],
        "s": ["b", "m", "m"],
        "long": ["a" * 100, "a" * 100 + "b", "c" * 100],
        "r": [{"n": 1}, {"n": 2}, None],
    }
)
COLUMNS = column_statistics(TABLE)
NEVER, PERHAPS, ALWAYS = "never", "perhaps", "always"


def verdict(text: str, columns: tuple[Column, ...] = COLUMNS) -> str:
    condition = check(text, pa.schema([*TABLE.schema, ("gone", pa.int64())]))
    may = may_hold(condition, TABLE.schema, columns, records=TABLE.num_rows)
    must = must_hold(condition, TABLE.schema, columns, records=TABLE.num_rows)
    assert may or not must
    return ALWAYS if must else PERHAPS if may else NEVER


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("n = 9", NEVER),
        ("n = 10", PERHAPS),
        ("n = 15", PERHAPS),
        ("n = 20", PERHAPS),
        ("n = 21", NEVER),
        ("n != 21", ALWAYS),
        ("n < 10", NEVER),
        ("n <= 10", PERHAPS),
        ("n < 20", PERHAPS),
        ("n <= 20", ALWAYS),
        ("n > 20", NEVER),
        ("n >= 20", PERHAPS),
        ("n > 10", PERHAPS),
        ("n >= 10", ALWAYS),
        ("n in (1, 9, 21, 30)", NEVER),
        ("n in (1, 15, 30)", PERHAPS),
        ("n in (1, null)", NEVER),
        ("n not in (1, 30)", ALWAYS),
        ("n not in (1, null)", NEVER),
        ("n = null", NEVER),
        ("n is null", NEVER),
        ("n is not null", ALWAYS),
        ("same = 7", ALWAYS),
        ("same != 7", NEVER),
        ("same in (6, 7)", ALWAYS),
        ("some <= 3", PERHAPS),
        ("some > 3", NEVER),
        ("not some > 3", PERHAPS),
        ("some is null", PERHAPS),
        ("none is null", ALWAYS),
        ("none = 1", NEVER),
        ("not none = 1", NEVER),
        ("gone = 1", NEVER),
        ("not gone = 1", NEVER),
        ("gone is null", ALWAYS),
        ("n > 20 and gone = 1", NEVER),
        ("n >= 10 and same = 7", ALWAYS),
        ("n >= 10 and some = 1", PERHAPS),
        ("n > 20 or same = 7", ALWAYS),
        ("n > 20 or gone = 1", NEVER),
        ("not (n > 20 or same != 7)", ALWAYS),
        ("s < 'b'", NEVER),
        ("s >= 'b'", ALWAYS),
        ("r.n = 5", PERHAPS),
        ("r.n is null", PERHAPS),
        ("r is null", PERHAPS),
    ],
)
def test_statistics_say_whether_all_some_or_no_records_fulfil_a_condition(text: str, said: str) -> None:
    assert verdict(text) == said


def test_doubles_may_hide_a_nan_above_their_bounds() -> None:
    assert verdict("x < 1") == NEVER
    assert verdict("x >= 1") == ALWAYS
    assert verdict("x > 2") == PERHAPS
    assert verdict("x <= 2") == PERHAPS
    assert verdict("x = double 'nan'") == PERHAPS


def test_bounds_that_were_cut_decide_where_they_can() -> None:
    assert verdict(f"long = '{'a' * 50}'") == NEVER
    assert verdict(f"long >= '{'a' * 50}'") == ALWAYS
    assert verdict(f"long = '{'a' * 99}'") == PERHAPS
    assert verdict(f"long > '{'c' * 101}'") == PERHAPS
    assert verdict("long > 'd'") == NEVER


def test_an_object_that_was_written_before_its_field_became_json_is_asked_as_its_own_class() -> None:
    days = pa.table({"v": pa.array([10, 11], pa.int32()).cast(pa.date32())})
    columns = column_statistics(days)
    for text, may, must in [
        ("v = '2026-01-31'", False, False),
        ("v < '2026-01-31'", True, True),
        ("v = '1970-01-12'", True, False),
        ("v = 'never'", False, False),
        ("v != 1", False, False),
    ]:
        condition = check(text, pa.schema([json_field("v")]))
        assert may_hold(condition, days.schema, columns, records=2) == may
        assert must_hold(condition, days.schema, columns, records=2) == must


@pytest.mark.parametrize("text", ["n = 9", "n is null", "n <= 20", "r.n = 1"])
def test_without_statistics_everything_may_be(text: str) -> None:
    assert verdict(text, ()) == PERHAPS
    assert verdict("gone = 1", ()) == NEVER


def test_bounds_of_another_kind_than_the_value_tell_nothing() -> None:
    condition = check("n = 9", TABLE.schema)
    columns = column_statistics(pa.table({"n": ["a", "b"]}))
    assert may_hold(condition, TABLE.schema, columns, records=2)


def test_the_comparisons_of_a_thousand_deletes_are_worked_out_once() -> None:
    """A scan asks about each of them at every object; that it works them out again is where the time went."""
    schema = pa.schema([("v", pa.int64())])
    columns = [Column("v", 0, encode_value(0), encode_value(5_000))]
    conditions = [check(f"v = {number}", schema) for number in range(1_000)]
    _of_one.cache_clear()
    for _ in range(3):
        assert all(may_hold(condition, schema, columns, records=9) for condition in conditions)
    assert _of_one.cache_info().misses == len(conditions)
