"""ZNG values as Arrow and back: nothing is lost, and the types come back too."""

from __future__ import annotations

import datetime as dt
import decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lake_core.errors import InvalidInput
from log_lake.zng.arrow_types import arrow_schema, arrow_type, zng_schema
from log_lake.zng.columns import nulls
from log_lake.zng.from_arrow import batch_of_tables
from log_lake.zng.rows import batch_of
from log_lake.zng.to_arrow import record_batches, to_arrow
from log_lake.zng.types import Type
from tests.support.zng_files import opened, rows_of, zng_of, zst_of
from tests.support.zng_values import record_types, stream, stream_values

Values = list[tuple[Type, bytes]]


def through_arrow(values: Values) -> bytes:
    batches = []
    for rows in rows_of(stream(values)):
        batch = batch_of(rows)
        tables = record_batches(batch)
        for table in tables:
            table.validate(full=True)
        batches.append(batch_of_tables(tables, batch.kinds))
    return zng_of(batches)


@given(stream_values(records=True))
def test_values_come_back_from_arrow(values: Values) -> None:
    try:
        found = through_arrow(values)
    except InvalidInput as error:
        assume("null key" not in str(error))
        raise
    assert found == stream(values)


@given(record_types)
def test_a_schema_says_the_type(kind: Type) -> None:
    assert zng_schema(arrow_schema(kind)) == kind


@given(stream_values(records=True), st.integers(0, 5), st.integers(0, 5))
@settings(max_examples=60)
def test_slices_of_tables_come_back(values: Values, start: int, stop: int) -> None:
    values = [value for value in values if value[0] == values[0][0]]
    for rows in rows_of(stream(values)):
        try:
            (table,) = record_batches(batch_of(rows))
        except InvalidInput as error:
            assume("null key" not in str(error))
            raise
        assert zng_of([batch_of_tables([table.slice(start, stop)])]) == stream(values[start : start + stop])


def columns() -> pa.RecordBatch:
    noon = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)
    return pa.record_batch(
        {
            "flag": pa.array([True, None, False]),
            "date": pa.array([dt.date(1, 1, 1), None, dt.date(9999, 12, 31)]),
            "us": pa.array([noon, None, dt.datetime(9999, 1, 1, tzinfo=dt.UTC)], pa.timestamp("us", "UTC")),
            "naive": pa.array([noon.replace(tzinfo=None), None, None], pa.timestamp("ms")),
            "ns": pa.array([1, None, -1], pa.timestamp("ns", "UTC")),
            "time": pa.array([dt.time(12, 30), None, None], pa.time64("us")),
            "short": pa.array([dt.time(12, 30), None, None], pa.time32("ms")),
            "lasted": pa.array([dt.timedelta(1), None, None], pa.duration("us")),
            "price": pa.array(
                [decimal.Decimal("1.10"), None, decimal.Decimal("-3.00")], pa.decimal128(10, 2)
            ),
            "half": pa.array([np.float16(1.5), None, None], pa.float16()),
            "large": pa.array(["a", None, "b"], pa.large_string()),
            "often": pa.array(["a", None, "a"]).dictionary_encode(),
            "raw": pa.array([b"\0\xff", None, b""]),
            "json": pa.array(['{"a":1}', None, "2"]),
            "list": pa.array([[1, None], None, []], pa.list_(pa.int16())),
            "map": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int32())),
            "in": pa.array([{"x": 1, "y": "a"}, None, {"x": None, "y": None}]),
            "nothing": pa.nulls(3),
        }
    )


def test_every_type_that_objects_store_comes_back_from_a_file_of_columns() -> None:
    table = columns()
    (batch,) = opened(zst_of([batch_of_tables([table])])).batches()
    (found,) = record_batches(batch)
    for name in table.schema.names:
        expected = table.column(name)
        if name in ("large", "often"):
            expected = expected.cast(pa.string())
        assert found.column(name).equals(expected), name


def test_a_type_that_zng_cannot_hold_is_refused() -> None:
    table = pa.record_batch({"a": pa.array([(1, 2, 3)], pa.month_day_nano_interval())})
    with pytest.raises(InvalidInput, match="field 'a': type month_day_nano_interval cannot be ZNG"):
        batch_of_tables([table])


@given(record_types)
@settings(max_examples=60)
def test_no_rows_have_the_type_too(kind: Type) -> None:
    assert to_arrow(kind, nulls(kind, 0)).type == arrow_type(kind)
