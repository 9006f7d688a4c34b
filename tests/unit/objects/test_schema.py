"""How differing shapes unite: what type a field gets, and that every value comes back as it was."""

from __future__ import annotations

import datetime as dt
import decimal
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lake_core.errors import Corrupt, InvalidInput
from lake_core.schemas.schema import schema_id, unite_fields, unite_schemas
from lake_core.values.types import (
    JSON_MARK,
    WIDE_MARK,
    declared_field,
    is_json,
    is_wide,
    json_field,
    show_type,
)
from log_lake.columns.cast import cast_table, mixed_table
from log_lake.columns.json_text import json_lines, typed
from log_lake.objects.normalize import normalized

JSON = json_field("f")
WIDE = pa.field("f", pa.int64(), metadata=WIDE_MARK)
WIDE_MS = pa.field("f", pa.duration("ms"), metadata=WIDE_MARK)


def field(kind: pa.DataType) -> pa.Field:
    return pa.field("f", kind)


UNITED = [
    (field(pa.int64()), field(pa.int64()), field(pa.int64())),
    (field(pa.int8()), field(pa.int32()), field(pa.int32())),
    (field(pa.uint8()), field(pa.uint32()), field(pa.uint32())),
    (field(pa.uint8()), field(pa.int8()), field(pa.int16())),
    (field(pa.uint32()), field(pa.int8()), field(pa.int64())),
    (field(pa.uint64()), field(pa.uint8()), field(pa.uint64())),
    (field(pa.uint64()), field(pa.int64()), field(pa.int64())),
    (pa.field("f", pa.uint64(), metadata=WIDE_MARK), field(pa.int64()), JSON),
    (field(pa.int64()), field(pa.float64()), field(pa.float64())),
    (field(pa.float32()), field(pa.float64()), field(pa.float64())),
    (WIDE, field(pa.int64()), WIDE),
    (WIDE, field(pa.int8()), WIDE),
    (WIDE, field(pa.float64()), JSON),
    (field(pa.null()), field(pa.string()), field(pa.string())),
    (field(pa.int64()), field(pa.string()), JSON),
    (field(pa.bool_()), field(pa.int64()), JSON),
    (field(pa.string()), JSON, JSON),
    (field(pa.date32()), field(pa.timestamp("us")), JSON),
    (field(pa.timestamp("ms", "UTC")), field(pa.timestamp("us", "UTC")), field(pa.timestamp("us", "UTC"))),
    (field(pa.timestamp("us", "UTC")), field(pa.timestamp("us")), JSON),
    (field(pa.time32("ms")), field(pa.time64("us")), field(pa.time64("us"))),
    (field(pa.time64("ns")), field(pa.time64("us")), field(pa.time64("ns"))),
    (field(pa.time64("ns")), field(pa.duration("ns")), JSON),
    (field(pa.duration("s")), field(pa.duration("ns")), field(pa.duration("ns"))),
    (pa.field("f", pa.duration("s"), metadata=WIDE_MARK), field(pa.duration("ms")), JSON),
    (pa.field("f", pa.duration("ms"), metadata=WIDE_MARK), field(pa.duration("s")), WIDE_MS),
    (field(pa.list_(pa.time32("ms"))), field(pa.list_(pa.time64("ns"))), field(pa.list_(pa.time64("ns")))),
    (field(pa.decimal128(9, 2)), field(pa.decimal128(12, 0)), field(pa.decimal128(14, 2))),
    (field(pa.decimal128(38, 0)), field(pa.decimal128(38, 30)), JSON),
    (field(pa.list_(pa.int8())), field(pa.list_(pa.int64())), field(pa.list_(pa.int64()))),
    (field(pa.list_(pa.int8())), field(pa.int8()), JSON),
]


@pytest.mark.parametrize(("a", "b", "united"), UNITED, ids=str)
def test_two_fields_unite_to_the_narrowest_that_holds_both(
    a: pa.Field, b: pa.Field, united: pa.Field
) -> None:
    for one, other in ((a, b), (b, a)):
        found = unite_fields(one, other)
        assert found.type == united.type
        assert (is_json(found), is_wide(found)) == (is_json(united), is_wide(united))


def test_records_unite_field_by_field() -> None:
    a = field(pa.struct([("x", pa.int8()), ("y", pa.string())]))
    b = field(pa.struct([("x", pa.int64()), ("z", pa.bool_())]))
    assert unite_fields(a, b).type == pa.struct([("x", pa.int64()), ("y", pa.string()), ("z", pa.bool_())])


def test_schemas_unite_by_name_in_the_order_first_seen() -> None:
    united = unite_schemas(
        [pa.schema([("b", pa.int8()), ("a", pa.int8())]), pa.schema([("c", pa.int8()), ("b", pa.int64())])]
    )
    assert united == pa.schema([("b", pa.int64()), ("a", pa.int8()), ("c", pa.int8())])
    assert unite_schemas([]) == pa.schema([])


def test_equal_schemas_have_one_id_and_marks_count() -> None:
    plain = pa.schema([("f", pa.string())])
    assert schema_id(plain) == schema_id(pa.schema([("f", pa.string())]))
    assert len({schema_id(s) for s in (plain, pa.schema([JSON]), pa.schema([("g", pa.string())]))}) == 3


# ---------------------------------------------------------------- what is stored

STORED = [
    (pa.array(["a"], pa.large_string()), pa.string()),
    (pa.array(["a"]).dictionary_encode(), pa.string()),
    (pa.array([b"ab"], pa.binary(2)), pa.binary()),
    (pa.array([1.5], pa.float16()), pa.float32()),
    (pa.array([dt.date(2020, 1, 1)], pa.date64()), pa.date32()),
    (pa.array(["0.0000123"]).cast(pa.decimal128(5, 7)), pa.decimal128(7, 7)),
    (pa.array([decimal.Decimal(12300)], pa.decimal128(5, -2)), pa.decimal128(7, 0)),
    (pa.array([1], pa.timestamp("s")), pa.timestamp("ms")),
    (pa.array([1], pa.timestamp("us", "Europe/Berlin")), pa.timestamp("us", "UTC")),
    (pa.array([[1]], pa.large_list(pa.int8())), pa.list_(pa.int8())),
    (pa.array([[1, 2]], pa.list_(pa.int8(), 2)), pa.list_(pa.int8())),
    (pa.array([{"a": "x"}], pa.struct([("a", pa.large_string())])), pa.struct([("a", pa.string())])),
]


@pytest.mark.parametrize(("column", "kind"), STORED, ids=lambda x: str(getattr(x, "type", x)))
def test_an_incoming_type_is_stored_as(column: pa.Array, kind: pa.DataType) -> None:
    table = normalized(pa.table({"f": column}))
    assert table.schema.field("f").type == kind
    assert table.column("f").to_pylist() == column.cast(kind).to_pylist()


def test_what_parquet_cannot_hold_is_stored_as_json() -> None:
    empty = pa.array([{}, None], pa.struct([]))
    big = pa.array([decimal.Decimal(10) ** 60], pa.decimal256(70, 0))
    wide = pa.array([decimal.Decimal(12300)], pa.decimal128(38, -2))
    assert normalized(pa.table({"f": wide})).to_pylist() == [{"f": '{"lake:decimal":"12300"}'}]
    assert normalized(pa.table({"f": empty})).to_pylist() == [{"f": "{}"}, {"f": None}]
    assert normalized(pa.table({"f": big})).to_pylist() == [{"f": '{"lake:decimal":"1' + "0" * 60 + '"}'}]


@pytest.mark.parametrize(
    ("values", "wide"),
    [([2**53, -(2**53)], False), ([2**53 + 1], True), ([-(2**53) - 1], True), ([None], False)],
)
def test_integers_beyond_a_double_are_marked(values: list[Any], wide: bool) -> None:
    assert is_wide(normalized(pa.table({"f": pa.array(values, pa.int64())})).schema.field("f")) == wide


def test_foreign_metadata_is_left_out() -> None:
    table = pa.table(
        {"f": [1]}, schema=pa.schema([pa.field("f", pa.int64(), metadata={"a": "b"})], {"c": "d"})
    )
    assert normalized(table).schema.equals(pa.schema([("f", pa.int64())]), check_metadata=True)


# ---------------------------------------------------------------- reading as the united schema


def read_as(value: Any, kind: pa.DataType, target: pa.Field) -> Any:
    table = pa.table({"f": pa.array([value, None], kind)})
    return cast_table(table, pa.schema([target]), what="object").to_pylist()[0]["f"]


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (7, pa.int64(), "7"),
        (2**64 - 1, pa.uint64(), "18446744073709551615"),
        (1.0, pa.float64(), "1.0"),
        (0.1, pa.float64(), "0.1"),
        (float("nan"), pa.float64(), '{"lake:number":"NaN"}'),
        (True, pa.bool_(), "true"),
        ("plain", pa.string(), '"plain"'),
        ('a"b\\\n\u00e9', pa.string(), '"a\\"b\\\\\\n\u00e9"'),
        (b"\x00\xff", pa.binary(), '{"lake:bytes":"AP8="}'),
        (dt.date(2020, 1, 2), pa.date32(), '{"lake:date":"2020-01-02"}'),
        (
            dt.datetime(2020, 1, 2, 3, 4, 5, 600),
            pa.timestamp("us"),
            '{"lake:timestamp":"2020-01-02T03:04:05.0006"}',
        ),
        (
            dt.datetime(2020, 1, 2, 3, 4, 5, tzinfo=dt.UTC),
            pa.timestamp("us", "UTC"),
            '{"lake:timestamp":"2020-01-02T03:04:05Z"}',
        ),
        (decimal.Decimal("1.50"), pa.decimal128(9, 2), '{"lake:decimal":"1.50"}'),
        ([1, None], pa.list_(pa.int64()), "[1,null]"),
        ({"a": 1, "b": None}, pa.struct([("a", pa.int64()), ("b", pa.int64())]), '{"a":1}'),
        ([("k", 1)], pa.map_(pa.string(), pa.int64()), '{"lake:map":[["k",1]]}'),
    ],
    ids=lambda x: repr(x) if isinstance(x, str) else str(x),
)
def test_a_value_becomes_the_json_that_reads_back_as_it(
    value: Any, kind: pa.DataType, text: str | None
) -> None:
    assert read_as(value, kind, JSON) == text
    assert text is None or json.loads(text) is not None


def test_json_is_not_quoted_again() -> None:
    column = pa.chunked_array([['{"a":1}', None]])
    assert typed(column, JSON).to_pylist() == ['{"a":1}', None]


def test_an_absent_field_is_null_and_others_keep_their_values() -> None:
    table = pa.table({"a": pa.array([1, 2], pa.int8())})
    schema = pa.schema([("b", pa.string()), ("a", pa.float64())])
    assert cast_table(table, schema, what="x").to_pylist() == [{"b": None, "a": 1.0}, {"b": None, "a": 2.0}]
    assert cast_table(table, pa.schema([]), what="x").num_rows == 2


def test_tables_of_several_schemas_are_mixed_in_any_order_and_absent_fields_are_null() -> None:
    first = pa.table({"a": pa.array([1, 2], pa.int8()), "b": ["x", None]})
    second = pa.table({"c": [{"d": 1.5}], "a": pa.array([3], pa.int64())})
    third = pa.table({"b": ["y", "z"]})
    schema = unite_schemas([first.schema, second.schema, third.schema, pa.schema([("e", pa.int64())])])
    mixed = mixed_table([first, second, third], schema, np.array([4, 0, 2, 3, 1]), what="test")
    assert mixed.schema.equals(schema)
    assert mixed.to_pylist() == [
        {"a": None, "b": "z", "c": None, "e": None},
        {"a": 1, "b": "x", "c": None, "e": None},
        {"a": 3, "b": None, "c": {"d": 1.5}, "e": None},
        {"a": None, "b": "y", "c": None, "e": None},
        {"a": 2, "b": None, "c": None, "e": None},
    ]


def test_fields_that_most_tables_lack_take_no_memory_in_each_of_them() -> None:
    tables = [pa.table({"k": [n], f"f{n}": [n]}) for n in range(300)]
    schema = unite_schemas(table.schema for table in tables)
    usual, other = pa.default_memory_pool(), pa.system_memory_pool()
    before = other.bytes_allocated()
    pa.set_memory_pool(other)
    try:
        mixed = mixed_table(tables, schema, np.arange(300), what="test")
    finally:
        pa.set_memory_pool(usual)
    assert mixed.column("f7").to_pylist() == [n if n == 7 else None for n in range(300)]
    assert other.max_memory() - before < 16 * 300 * 300


def test_records_and_lists_are_read_in_a_wider_shape_also_when_sliced() -> None:
    kind = pa.struct([("x", pa.int8()), ("l", pa.list_(pa.int8()))])
    wider = pa.field("f", pa.struct([("l", pa.list_(pa.float64())), ("x", pa.int64()), ("new", pa.string())]))
    rows = [{"x": 1, "l": [1, None]}, None, {"x": None, "l": None}, {"x": 4, "l": []}]
    table = pa.table({"f": pa.array(rows, kind)}).slice(1)
    assert cast_table(table, pa.schema([wider]), what="x").to_pylist() == [
        {"f": None},
        {"f": {"l": None, "x": None, "new": None}},
        {"f": {"l": [], "x": 4, "new": None}},
    ]


def test_a_nested_field_whose_kinds_differ_is_json_inside_its_record() -> None:
    schema = unite_schemas(
        [
            pa.schema([("f", pa.struct([("x", pa.int64())]))]),
            pa.schema([("f", pa.struct([("x", pa.string())]))]),
        ]
    )
    numbers = cast_table(pa.table({"f": [{"x": 1}]}), schema, what="x")
    strings = cast_table(pa.table({"f": [{"x": "1"}]}), schema, what="x")
    both = pa.concat_tables([numbers, strings])
    assert json_lines(both).to_pylist() == ['{"f":{"x":1}}', '{"f":{"x":"1"}}']


def test_a_value_that_does_not_fit_is_corrupt_and_names_object_field_and_types() -> None:
    with pytest.raises(Corrupt, match=r"OBJECT: field 'f' of type bigint cannot be read as tinyint"):
        cast_table(pa.table({"f": [1000]}), pa.schema([("f", pa.int8())]), what="OBJECT")


def test_a_record_is_printed_in_schema_order_without_its_nulls() -> None:
    table = pa.table({"b": [1, None], 'a"': ["x", None], "c": pa.nulls(2)})
    assert json_lines(table).to_pylist() == ['{"b":1,"a\\"":"x"}', "{}"]
    assert json_lines(table.select([])).to_pylist() == ["{}", "{}"]


# ---------------------------------------------------------------- names of types


@pytest.mark.parametrize(
    "word",
    [
        "string",
        "bigint",
        "timestamp",
        "timestamp_ntz",
        "timestamp_ns",
        "date",
        "boolean",
        "binary",
        "decimal(9,2)",
        "json",
    ],
)
def test_a_type_is_shown_as_it_is_declared(word: str) -> None:
    assert show_type(declared_field("f", word.upper())) == word


def test_nested_types_are_shown_with_their_parts() -> None:
    kind = pa.struct([pa.field("a", pa.list_(pa.int64())), pa.field("b", pa.string(), metadata=JSON_MARK)])
    assert show_type(pa.field("f", kind)) == "struct<a: list<bigint>, b: json>"


@pytest.mark.parametrize(
    "word", ["", "text", "decimal", "decimal(0,0)", "decimal(39,1)", "decimal(3,4)", "list<int>"]
)
def test_a_type_that_cannot_be_declared(word: str) -> None:
    with pytest.raises(InvalidInput, match="'f'"):
        declared_field("f", word)


def test_times_beyond_nanoseconds_become_json_beside_nanoseconds() -> None:
    far = normalized(pa.table({"t": pa.array([dt.datetime(3000, 1, 1)], pa.timestamp("ms"))}))
    near = normalized(pa.table({"t": pa.array([dt.datetime(2000, 1, 1)], pa.timestamp("ms"))}))
    fine = normalized(pa.table({"t": pa.array([1], pa.timestamp("ns"))}))
    assert is_json(unite_schemas([far.schema, fine.schema]).field("t"))
    assert unite_schemas([near.schema, fine.schema]).field("t").type == pa.timestamp("ns")
    assert unite_schemas([far.schema, near.schema]).field("t").type == pa.timestamp("ms")


def test_a_duration_that_a_finer_unit_does_not_hold_stays_as_it_is_or_becomes_json() -> None:
    for unit, ticks in (("s", 10**10), ("ms", 10**13), ("us", 10**16)):
        far, near = (
            normalized(pa.table({"t": pa.array([value, None], pa.duration(unit))})) for value in (ticks, 5)
        )
        fine = normalized(pa.table({"t": pa.array([1], pa.duration("ns"))}))
        assert is_wide(far.schema.field("t"))
        assert is_json(unite_schemas([far.schema, fine.schema]).field("t"))
        assert unite_schemas([far.schema, near.schema]).field("t").type == pa.duration(unit)
        united = unite_schemas([near.schema, fine.schema])
        assert united.field("t").type == pa.duration("ns")
        lines = json_lines(cast_table(near, united, what="x")).to_pylist()
        assert lines == json_lines(near).to_pylist()


def test_times_of_two_units_unite_at_any_depth_without_losing_a_digit() -> None:
    pairs = [(pa.time32("ms"), pa.time64("ns")), (pa.duration("ms"), pa.duration("us"))]
    pairs += [(pa.timestamp("ms"), pa.timestamp("us"))]
    for coarse, fine in pairs:
        for wrap in (
            lambda kind: pa.list_(kind),
            lambda kind: pa.struct([("x", kind)]),
            lambda kind: pa.map_(pa.string(), kind),
            lambda kind: pa.map_(kind, pa.int64()),
        ):
            tables = []
            for kind in (coarse, fine):
                value = pa.array([1], pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)[0]
                shape = wrap(kind)
                if pa.types.is_list(shape):
                    made: Any = [value]
                elif pa.types.is_struct(shape):
                    made = {"x": value}
                else:
                    made = [("k", value)] if pa.types.is_string(shape.key_type) else [(value, 1)]
                tables.append(normalized(pa.table({"f": pa.array([made, None], shape)})))
            united = unite_schemas([t.schema for t in tables])
            assert united.field("f").type == wrap(fine)
            for table in tables:
                assert json_lines(cast_table(table, united, what="x")).equals(json_lines(table))
