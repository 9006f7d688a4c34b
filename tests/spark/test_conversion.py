"""Records of random types, nested, sliced and with nulls, to Spark's Arrow form and back: no value changes.

Without Spark itself: what the two modules convert is Arrow, and Spark checks only the schema.
"""

from __future__ import annotations

import datetime as dt
import decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from spark_apps.datasource.from_spark import from_spark
from spark_apps.datasource.to_spark import to_batches
from spark_apps.datasource.types import arrow_schema, spark_schema

EPOCH = dt.datetime(1970, 1, 1)
TABLES = 150
PLAIN = [
    pa.int64(), pa.int8(), pa.uint64(), pa.uint16(), pa.string(), pa.bool_(), pa.timestamp("ns"),
    pa.timestamp("ms", "UTC"), pa.time32("ms"), pa.null(), pa.duration("ns"),
]  # fmt: skip
KEYS = [pa.string(), pa.int32(), pa.timestamp("ns"), pa.time64("us")]


def some_type(random: Random, depth: int = 3) -> pa.DataType:
    """A plain type, or lists, maps and records of others."""
    kind = random.randrange(len(PLAIN) + 4) if depth else random.randrange(len(PLAIN))
    if kind < len(PLAIN):
        return PLAIN[kind]
    if kind == len(PLAIN):
        return pa.list_(some_type(random, depth - 1))
    if kind == len(PLAIN) + 1:
        return pa.map_(random.choice(KEYS), some_type(random, depth - 1))
    names = range(random.randrange(1, 4))
    return pa.struct([pa.field(f"f{i}", some_type(random, depth - 1)) for i in names])


def some_value(random: Random, kind: pa.DataType, *, nullable: bool = True) -> Any:
    """A value as Arrow takes it: times are numbers."""
    if pa.types.is_null(kind) or (nullable and random.random() < 0.25):
        return None
    if pa.types.is_list(kind):
        return [some_value(random, kind.value_type) for _ in range(random.randrange(4))]
    if pa.types.is_map(kind):
        return [
            (some_value(random, kind.key_type, nullable=False), some_value(random, kind.item_type))
            for _ in range(random.randrange(3))
        ]
    if pa.types.is_struct(kind):
        return {field.name: some_value(random, field.type) for field in kind}
    if pa.types.is_boolean(kind):
        return random.random() < 0.5
    if pa.types.is_string(kind):
        return random.choice(["", "a", "\u00e9"])
    if pa.types.is_time(kind):
        return random.randrange(86_400_000)
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return random.randrange(-(10**13), 10**13)
    low = 0 if pa.types.is_unsigned_integer(kind) else -(2 ** (kind.bit_width - 1))
    return low + random.randrange(2**kind.bit_width)


def in_spark(value: Any, kind: pa.DataType) -> Any:
    """The value as Spark has it: microseconds rounded down, times of day as nanoseconds."""
    if value is None:
        return None
    if pa.types.is_list(kind):
        return [in_spark(item, kind.value_type) for item in value]
    if pa.types.is_map(kind):
        return [(in_spark(key, kind.key_type), in_spark(item, kind.item_type)) for key, item in value]
    if pa.types.is_struct(kind):
        return {field.name: in_spark(value[field.name], field.type) for field in kind}
    if pa.types.is_timestamp(kind):
        microseconds = value // 1000 if kind.unit == "ns" else value * 1000
        moment = EPOCH + dt.timedelta(microseconds=microseconds)
        return moment.replace(tzinfo=dt.UTC) if kind.tz else moment
    if pa.types.is_duration(kind):
        return dt.timedelta(microseconds=value // 1000)
    if pa.types.is_time(kind):
        return value * (10**6 if kind.unit == "ms" else 10**3)
    return decimal.Decimal(value) if pa.types.is_uint64(kind) else value


@pytest.mark.parametrize("seed", range(4))
def test_values_of_random_types_are_the_same_in_spark_and_come_back(seed: int) -> None:
    random = Random(seed)
    for _ in range(TABLES):
        kind = some_type(random)
        values = [some_value(random, kind) for _ in range(random.randrange(12))]
        begin = random.randrange(len(values) + 1)
        end = random.randrange(begin, len(values) + 1)
        whole = pa.table({"x": pa.array(values, kind)})
        table = pa.concat_tables([whole.slice(begin, end - begin), whole])
        target = arrow_schema(spark_schema(table.schema))
        batches = to_batches(table, target)
        found = []
        for batch in batches:
            batch.validate(full=True)
            assert batch.schema.equals(target)
            found += batch.column(0).to_pylist()
            part = batch.slice(min(1, batch.num_rows))
            back = from_spark(part)
            back.validate(full=True)
            assert back.column(0).to_pylist() == part.column(0).to_pylist()
        assert found == [in_spark(value, kind) for value in [*values[begin:end], *values]]
