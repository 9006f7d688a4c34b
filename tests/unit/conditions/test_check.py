"""Reading a condition for a schema: which fields and values it may name, and what it becomes."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from lake_core.conditions import And, Compare, In, IsNull, top_level
from lake_core.conditions.classwise import NULL_VALUE, among
from lake_core.conditions.fields import find_field
from lake_core.errors import InvalidInput
from lake_core.keys.encoding import Instant, encode_value, key_class
from lake_core.values.types import is_json, json_field
from log_lake.where import check, parse, show

SCHEMA = pa.schema(
    [
        pa.field("tailnum", pa.string()),
        pa.field("dep_delay", pa.int64()),
        pa.field("x", pa.float64()),
        pa.field("flag", pa.bool_()),
        pa.field("raw", pa.binary()),
        pa.field("day", pa.date32()),
        pa.field("ts", pa.timestamp("us", "UTC")),
        pa.field("local", pa.timestamp("ns")),
        pa.field("price", pa.decimal128(9, 2)),
        pa.field("never", pa.null()),
        pa.field("id.orig_h", pa.string()),
        pa.field("id", pa.struct([("orig_h", pa.int64()), ("resp_h", pa.string())])),
        pa.field("r", pa.struct([("a.b", pa.int64()), ("c", pa.struct([("d", pa.date32())]))])),
        json_field("mixed"),
        pa.field("holder", pa.struct([json_field("inner")])),
        pa.field("list", pa.list_(pa.int64())),
        pa.field("time", pa.time64("us")),
        pa.field("span", pa.duration("us")),
    ]
)
NOON = 1_769_860_800


def value_of(text: str) -> bytes:
    """The value with which a record of the field's own class is compared."""
    condition = check(text, SCHEMA)
    assert isinstance(condition, Compare)
    field, _ = find_field(SCHEMA, condition.field)
    assert field is not None
    kind = "null" if is_json(field) else key_class(field.type)
    narrowed = condition if kind == "null" or condition.value == NULL_VALUE else among(condition, kind)
    assert isinstance(narrowed, Compare)
    return narrowed.value


# ---------------------------------------------------------------- values become those of the field


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("dep_delay > 15", 15),
        ("dep_delay > 15.0", 15),
        ("dep_delay > 1.5", 1.5),
        ("x = 0.1", 0.1),
        ("x = 9007199254740993", 2**53 + 1),
        ("x = 18446744073709551616", 2.0**64),
        ("x = double 'nan'", math.nan),
        ("price = 1", Decimal(1)),
        ("price = 1.5e0", Decimal("1.5")),
        ("price = '1.005'", Decimal("1.005")),
        ("price = 99999999999999999999", Decimal("99999999999999999999")),
        ("raw = x'00ff'", b"\x00\xff"),
        ("raw = 'AP8='", b"\x00\xff"),
        ("flag = true", True),
        ("flag != false", False),
        ("day = '2026-01-31'", dt.date(2026, 1, 31)),
        ("day = date '2026-01-31'", dt.date(2026, 1, 31)),
        ("ts = '2026-01-31T12:00:00Z'", Instant((0x09, NOON, 0))),
        ("ts = '2026-01-31T13:00:00.000000001+01:00'", Instant((0x09, NOON, 1))),
        ("ts = timestamp '2026-01-31T12:00:00'", Instant((0x09, NOON, 0))),
        ("ts = '2026-01-31'", Instant((0x09, NOON - 43_200, 0))),
        ("ts = date '2026-01-31'", Instant((0x09, NOON - 43_200, 0))),
        ("local = '2026-01-31T12:00:00'", Instant((0x08, NOON, 0))),
        ("local = timestamp '2026-01-31T12:00:00Z'", Instant((0x08, NOON, 0))),
        ("time = '12:00:00.5'", Instant((0x0A, 43_200, 500_000_000))),
        ("time = time '12:00'", Instant((0x0A, 43_200, 0))),
        ("span = '-1.5s'", Instant((0x0B, -2, 500_000_000))),
        ("span = duration '2'", Instant((0x0B, 2, 0))),
        ("mixed = 1", 1),
        ("mixed = 'x'", "x"),
        ("mixed.a = 1.5", Decimal("1.5")),
        ("holder.inner = date '2026-01-31'", dt.date(2026, 1, 31)),
        ("holder.inner.x = 'x'", "x"),
        ("tailnum = '2026-01-31'", "2026-01-31"),
        ("tailnum = null", None),
        ("flag = null", None),
        ("never = 'x'", "x"),
        ("never > 1.5", Decimal("1.5")),
    ],
)
def test_a_record_is_compared_with_the_value_as_the_type_of_its_field(text: str, value: Any) -> None:
    assert value_of(text) == encode_value(value)


@pytest.mark.parametrize(
    ("value", "readings"),
    [
        ("'1'", [Decimal(1), Instant((0x0B, 1, 0))]),
        ("'AP8='", [b"\x00\xff"]),
        ("'abc'", []),
        ("date '2026-01-31'", [Instant((tag, NOON - 43_200, 0)) for tag in (0x08, 0x09)]),
        ("timestamp '2026-01-31T12:00:00Z'", [Instant((0x08, NOON, 0))]),
        ("1", []),
        ("1.5", []),
        ("true", []),
        ("null", []),
    ],
)
def test_a_value_has_its_readings_as_other_classes(value: str, readings: list[Any]) -> None:
    expected = tuple(sorted(encode_value(v) for v in readings))
    for text in (f"{field} {op}" for field in ("mixed", "never") for op in (f"= {value}", f"in ({value})")):
        condition = check(text, SCHEMA)
        assert isinstance(condition, Compare | In)
        assert condition.readings == expected
        assert check(condition, SCHEMA) == condition


EACH = pa.schema(
    [
        json_field("j"),
        pa.field("n", pa.null()),
        pa.field("s", pa.string()),
        pa.field("f", pa.float64()),
        pa.field("m", pa.decimal128(9, 2)),
        pa.field("d", pa.date32()),
        pa.field("b", pa.binary()),
        pa.field("t", pa.timestamp("us")),
        pa.field("z", pa.timestamp("ns", "UTC")),
        pa.field("w", pa.time32("s")),
    ]
)


@pytest.mark.parametrize(
    ("value", "readers"),
    [
        ("'2026-01-31'", "jnsdtz"),
        ("'1.10'", "jnsm"),
        ("'12:00:00'", "jnsw"),
        ("'AP8='", "jnsb"),
        ("0.10000000000000000005", "jnfm"),
        ("1.10", "jnfm"),
        ("12", "jnfm"),
        ("date '2026-01-31'", "jndtz"),
        ("timestamp '2026-01-31T12:00:00Z'", "jntz"),
    ],
)
def test_a_checked_comparison_is_the_same_for_a_field_of_any_type_that_reads_its_value(
    value: str, readers: str
) -> None:
    for text in (f"= {value}", f"< {value}", f"in ({value}, null)", f"not between {value} and {value}"):
        assert {stored(field, text) for field in readers} == {stored("j", text)}
        for field in set(EACH.names) - set(readers):
            with pytest.raises(InvalidInput, match=f"{field} is of type"):
                check(f"{field} {text}", EACH)


def stored(field: str, text: str) -> bytes:
    """The bytes of the checked condition, as if the field were named x."""
    checked = check(f"{field} {text}", EACH)
    return msgspec.msgpack.encode(checked).replace(b"\xa1" + field.encode(), b"\xa1x")


# ---------------------------------------------------------------- fields are found


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("id.orig_h is null", ("id.orig_h",)),
        ('"id.orig_h" is null', ("id.orig_h",)),
        ('id."orig_h" is null', ("id", "orig_h")),
        ("id.resp_h is null", ("id", "resp_h")),
        ("r.a.b is null", ("r", "a.b")),
        ("r.c.d is null", ("r", "c", "d")),
        ("r is null", ("r",)),
        ("mixed is null", ("mixed",)),
        ("list is null", ("list",)),
        ("time is null", ("time",)),
        ("holder.inner is null", ("holder", "inner")),
    ],
)
def test_a_dotted_name_is_a_field_of_that_name_or_else_a_path(text: str, path: tuple[str, ...]) -> None:
    condition = check(text, SCHEMA)
    assert condition == IsNull(path)
    assert parse(show(condition)) == condition


def test_a_name_may_have_any_number_of_dots() -> None:
    name = ".".join("a" * 1000)
    schema = pa.schema([(name, pa.int64())])
    assert check(f"{name} is null", schema) == IsNull((name,))
    with pytest.raises(InvalidInput, match="no such field"):
        check(f"{name}.b is null", schema)


def test_the_fields_it_reads_are_those_of_the_pool() -> None:
    condition = check("r.c.d is null and (x > 1 or not id.orig_h = 'a') and r.a.b = 1", SCHEMA)
    assert top_level(condition) == ("r", "x", "id.orig_h")


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("text", "word", "said"),
    [
        ("x = 1 and dep_dely > 15", "dep_dely", "no such field; perhaps dep_delay"),
        ("zzz = 1", "zzz", "no such field; there are: tailnum, dep_delay"),
        ("id.nope = 1", "id.nope", "no such field"),
        ('"id"."nope" = 1', '"id"."nope"', "no such field"),
        ('"tailnum"."x" = 1', '"tailnum"."x"', "no such field"),
        ("dep_delay > 'abc'", "'abc'", "dep_delay is of type bigint, and this is a string"),
        ("dep_delay in (1, 'abc', 2)", "'abc'", "and this is a string"),
        ("dep_delay between 1 and '2'", "'2'", "and this is a string"),
        ("dep_delay = true", "true", "and this is a boolean"),
        ("tailnum = 3", "3", "tailnum is of type string, and this is a number"),
        ("tailnum = 3.5", "3.5", "and this is a decimal"),
        ("tailnum < date '2026-01-01'", "date '2026-01-01'", "and this is a date"),
        ("flag = 1", "1", "and this is a number"),
        ("flag > false", "flag", "a boolean has no order"),
        ("flag between false and true", "flag", "a boolean has no order"),
        ("day = 'soon'", "'soon'", "not a date"),
        ("day = timestamp '2026-01-01T00:00:00'", "timestamp '2026-01-01T00:00:00'", "a timestamp"),
        ("ts = 'soon'", "'soon'", "not a timestamp"),
        ("ts > 5", "5", "and this is a number"),
        ("raw = 'xyz'", "'xyz'", "not bytes in base64"),
        ("price = 'cheap'", "'cheap'", "not a number"),
        ("price = double 'nan'", "double 'nan'", "not a number"),
        ("price = 1e300", "1e300", "more digits"),
        ("price = true", "true", "and this is a boolean"),
        ("mixed < true", "mixed", "a boolean has no order"),
        ("list = 1", "list", "of type list<bigint> can only be asked"),
        ("r = 1", "r", "name a field inside of it: r.NAME"),
        ("time = '25:00:00'", "'25:00:00'", "not a time like"),
        ("span = 'soon'", "'soon'", "not a duration in seconds"),
    ],
)
def test_what_does_not_compare_is_refused_at_its_word(text: str, word: str, said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check(text, SCHEMA)
    message = str(caught.value)
    assert message.startswith(f"condition `{text}`, column {text.index(word) + 1}, at `{word}`: ")
    assert said in message


def test_of_many_fields_an_error_lists_some() -> None:
    many = pa.schema([(f"f{n}", pa.int64()) for n in range(100)])
    with pytest.raises(InvalidInput, match=r"there are: f0, f1, .*, f19 and 80 more$"):
        check("something = 1", many)
    with pytest.raises(InvalidInput, match="there are: none"):
        check("something = 1", pa.schema([]))


def test_a_field_may_be_forbidden_with_a_reason() -> None:
    with pytest.raises(InvalidInput, match=r"column 7, at `x`: x is summed up$"):
        check("not ((x > 1))", SCHEMA, unfit={"x": "x is summed up"})
    assert check("dep_delay > 1", SCHEMA, unfit={"x": "x is summed up"})


def test_a_condition_made_by_a_program_is_checked_as_it_would_be_shown() -> None:
    wrong = And((IsNull(("x",)), Compare(("dep_delay",), "<", encode_value("abc"))))
    with pytest.raises(
        InvalidInput, match="condition `x is null and dep_delay < 'abc'`, column 27, at `'abc'`"
    ):
        check(wrong, SCHEMA)
    right = Compare(("day",), "<", encode_value("2026-01-31"))
    assert check(right, SCHEMA) == check("day < '2026-01-31'", SCHEMA)
