"""Conditions: Arrow answers as plain Python does, text gives the condition back, and pruning loses no record.

Spark's answers are in tests/spark/test_conditions.py, by the same records, conditions and evaluator.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from random import Random
from typing import Any

import msgspec
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from lake_core.conditions import Condition, Unless, may_hold, must_hold, top_level
from lake_core.keys import KeyField, KeyRange, PoolKey
from lake_core.keys.encoding import AFTER, Instant, encode_key, key_class
from lake_core.schemas.schema import unite_schemas
from lake_core.values.types import json_field
from log_lake.columns.cast import cast_table
from log_lake.columns.keys import keys_at
from log_lake.objects.statistics import column_statistics
from log_lake.where import Many, check, evaluate, holds, parse, show
from log_lake.where.keyrange import key_range_of
from log_lake.where.of_range import of_range
from tests.support.conditions import SCHEMA, paths, some_condition, some_records, to_table, truth

FIELDS = paths(SCHEMA)
RANDOM = st.randoms(use_true_random=True)  # as random as its seed, which is hypothesis's
STORED = msgspec.msgpack.Decoder(Condition)
IN_JSON = ["i", "u64", "s", "y", "b", "d", "t", "us", "ns", "m", "w"]
"""Fields whose values are all there still when they have become JSON."""


@given(RANDOM)
def test_a_condition_is_read_back_from_its_text_and_from_its_bytes(random: Random) -> None:
    condition = some_condition(random, FIELDS, depth=4)
    assert parse(show(condition)) == condition
    assert STORED.decode(msgspec.msgpack.encode(condition)) == condition


@given(RANDOM)
def test_a_checked_condition_stays_as_it_is_when_it_is_checked_again(random: Random) -> None:
    condition = some_condition(random, FIELDS)
    checked = check(condition, SCHEMA)
    assert check(checked, SCHEMA) == check(show(condition), SCHEMA) == checked
    assert show(checked) == show(condition)


@settings(max_examples=400)
@given(RANDOM, st.integers(0, 30), st.integers(1, 7))
def test_arrow_answers_as_plain_python(random: Random, count: int, chunk: int) -> None:
    condition = perhaps_of_a_filter(random, some_condition(random, FIELDS))
    records = some_records(random, count)
    expected = [truth(condition, record) for record in records]
    table = to_table(records)
    assert evaluate(condition, table).to_pylist() == expected
    assert holds(condition, table).to_pylist() == [found is True for found in expected]
    batches = table.to_batches(max_chunksize=chunk)
    assert evaluate(condition, pa.Table.from_batches(batches, SCHEMA)).to_pylist() == expected
    assert [found for batch in batches for found in evaluate(condition, batch).to_pylist()] == expected


@settings(max_examples=600)
@given(RANDOM, st.integers(0, 30), st.integers(1, 24), st.integers(1, 3))
def test_many_conditions_at_once_give_the_greatest_mark_of_those_that_hold(
    random: Random, count: int, many: int, fields: int
) -> None:
    some = {path: FIELDS[path] for path in random.sample(list(FIELDS), fields)}
    depth = random.choice([0, 1, 2])
    conditions = [
        perhaps_of_a_filter(random, some_condition(random, some, depth=random.randint(0, depth)))
        for _ in range(many)
    ]
    marked = [(condition, random.randint(1, 9)) for condition in conditions]
    table = to_table(some_records(random, count))
    expected = [0] * count
    for condition, mark in marked:
        for row, found in enumerate(holds(condition, table).to_pylist()):
            expected[row] = max(expected[row], mark if found else 0)
    assert Many(marked).newest(table).tolist() == expected


@given(RANDOM, st.integers(0, 10))
def test_only_the_fields_it_names_are_read(random: Random, count: int) -> None:
    condition = perhaps_of_a_filter(random, some_condition(random, FIELDS))
    table = to_table(some_records(random, count))
    assert evaluate(condition, table.select(list(top_level(condition)))) == evaluate(condition, table)


@given(RANDOM, st.integers(0, 10), st.sets(st.sampled_from(SCHEMA.names)))
def test_a_field_that_the_records_lack_is_null(random: Random, count: int, lacked: set[str]) -> None:
    condition = perhaps_of_a_filter(random, some_condition(random, FIELDS))
    records = some_records(random, count)
    without = [{n: None if n in lacked else v for n, v in record.items()} for record in records]
    table = to_table(records).drop_columns(list(lacked))
    assert evaluate(condition, table).to_pylist() == [truth(condition, record) for record in without]


@given(RANDOM, st.integers(1, 20))
def test_records_that_became_json_give_the_same_answers(random: Random, count: int) -> None:
    condition = perhaps_of_a_filter(
        random, some_condition(random, {(name,): FIELDS[name,] for name in IN_JSON})
    )
    table = to_table(some_records(random, count)).select(IN_JSON)
    united = unite_schemas([table.schema, pa.schema([json_field(name) for name in IN_JSON])])
    assert evaluate(condition, cast_table(table, united, what="test")) == evaluate(condition, table)


@settings(max_examples=400)
@given(RANDOM, st.integers(1, 4))
def test_what_statistics_say_of_an_object_is_true_of_its_records(random: Random, count: int) -> None:
    condition = perhaps_of_a_filter(random, some_condition(random, FIELDS, depth=2))
    table = to_table(some_records(random, count))
    columns = column_statistics(table)
    found = holds(condition, table).to_pylist()
    assert may_hold(condition, table.schema, columns, records=count) >= any(found)
    assert must_hold(condition, table.schema, columns, records=count) <= all(found)
    assert may_hold(condition, table.schema, (), records=count) >= any(found)
    assert must_hold(condition, table.schema, (), records=count) <= all(found)


def perhaps_of_a_filter(random: Random, condition: Condition) -> Condition:
    return Unless(condition) if random.random() < 0.3 else condition


KEY_FIELDS = ["i", "x", "s", "y", "b", "d", "t", "ns", "m"]


@st.composite
def pool_keys(draw: st.DrawFn) -> PoolKey:
    names = draw(st.lists(st.sampled_from(KEY_FIELDS), min_size=0, max_size=3, unique=True))
    return PoolKey(tuple(KeyField(name, draw(st.booleans())) for name in names))


@settings(max_examples=400)
@given(RANDOM, pool_keys(), st.integers(1, 15))
def test_every_key_that_fulfils_a_condition_lies_in_its_range(
    random: Random, key: PoolKey, count: int
) -> None:
    fields: dict[Any, Any] = {(name,): FIELDS[name,] for name in key.names} or FIELDS
    condition = perhaps_of_a_filter(random, some_condition(random, fields))
    table = to_table(some_records(random, count))
    span = key_range_of(condition, key, SCHEMA)
    for encoded, found in zip(keys_at(table, list(range(count)), key), holds(condition, table), strict=True):
        assert span.contains(encoded) or not found.as_py()


MOMENTS = [(-9_300_000_000, 0), (-1, 999_999_999), (0, 0), (0, 1), (0, 1000), (1_770_000_000, 123_456_789)]
OF_KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "boolean": (pa.bool_(), [False, True]),
    "integer": (pa.int64(), [-(2**63), -1, 0, 1, 2**53 + 1, 2**63 - 1]),
    "unsigned": (pa.uint64(), [0, 1, 2**53 + 1, 2**64 - 1]),
    "double": (pa.float64(), [-math.inf, -0.5, -0.0, 0.5, 2.0**53, 1e300, math.inf, math.nan]),
    "decimal": (pa.decimal128(9, 2), [Decimal("-0.01"), Decimal(0), Decimal("1.10"), Decimal("9999999.99")]),
    "bytes": (pa.binary(), [b"", b"\0", b"\0\xff", b"ab", b"\xff"]),
    "string": (pa.string(), ["", "a", "a'b", "a\0", "ab", "é", "\U0001f600", "null", "x\ny"]),
    "date": (pa.date32(), [dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(9999, 12, 31)]),
    "local": (pa.timestamp("us"), [Instant((0x08, *m)) for m in MOMENTS]),
    "instant": (pa.timestamp("us", "UTC"), [Instant((0x09, *m)) for m in MOMENTS]),
    "time of day": (pa.time64("ns"), [Instant((0x0A, *m)) for m in [*MOMENTS[2:-1], (86_399, 999_999_999)]]),
    "duration": (pa.duration("ns"), [Instant((0x0B, *m)) for m in MOMENTS[1:]]),
}
"""A field for each class of keys and each kind of number: its type, and values that are hard to tell apart."""


def key_values(name: str) -> list[Any]:
    """Values of the field's class, of any type; of them a bound is made."""
    kind = key_class(OF_KEYS[name][0])
    return [value for type_, values in OF_KEYS.values() if key_class(type_) == kind for value in values]


def some_column(random: Random, name: str, count: int, *, nulls: bool) -> pa.Array:
    kind, values = OF_KEYS[name]
    chosen = [random.choice([*values, None] if nulls else values) for _ in range(count)]
    if not isinstance(values[0], Instant):
        return pa.array(chosen, kind)
    tick = 1 if kind.unit == "ns" else 1000
    ticks = [None if value is None else (value[1] * 10**9 + value[2]) // tick for value in chosen]
    return pa.array(ticks, pa.int64()).cast(kind)


@settings(max_examples=600)
@given(RANDOM, st.lists(st.sampled_from(list(OF_KEYS)), min_size=1, max_size=3, unique=True))
def test_a_key_range_as_a_condition_is_read_from_its_text_and_holds_for_its_records_alone(
    random: Random, names: list[str]
) -> None:
    key = PoolKey(tuple(KeyField(name, random.random() < 0.5) for name in names))
    columns = [some_column(random, name, 20, nulls=place > 0) for place, name in enumerate(names)]
    records = pa.table(columns, names)

    def bound() -> bytes:
        size = random.randint(1, len(names))
        nulls = [[None] if place else [] for place in range(size)]
        values = [random.choice(key_values(n) + null) for n, null in zip(names, nulls, strict=False)]
        return encode_key(values, key) + random.choice([b"", AFTER])

    low, high = sorted([bound(), bound()])
    key_range = KeyRange(random.choice([low, b""]), random.choice([high, None]))
    condition = of_range(key_range, key)
    expected = [key_range.contains(one) for one in keys_at(records, list(range(20)), key)]
    if condition is None:
        assert all(expected)
        return
    assert parse(show(condition)) == condition
    assert holds(check(show(condition), records.schema), records).to_pylist() == expected, show(condition)
