"""Makes random records and conditions, and evaluates conditions in plain Python, independently of the lake.

The values are those in which engines differ: NaN, -0.0, integers that no double holds, decimals with more
digits than the column has, times between the ticks of a unit or out of its reach, and empty and null values of
all types.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from functools import cache
from random import Random
from typing import Any

import pyarrow as pa

from lake_core.conditions import And, Compare, Condition, In, IsNull, Not, Or, Unless
from lake_core.keys.encoding import Instant, decode_value, encode_value, key_class
from lake_core.records.conditions import Path
from lake_core.values.types import is_json, json_field

NUMBERS: list[int | float] = [
    *(0, 1, -1, 2, 127, 128, -128, -129, 255, 2**31, 2**32 - 1, 2**32, 2**53, 2**53 + 1, -(2**53) - 1),
    *(2**63 - 1, 2**63, 2**64 - 1, -(2**63), 0.0, -0.0, 0.5, 2.5, -0.5, 0.1, 5e-324, 2.0**53, 2.0**63),
    *(
        2.0**64,
        -(2.0**63),
        1e300,
        -1e300,
        3.5e38,
        math.inf,
        -math.inf,
        math.nan,
        -math.nan,
        0.10000000149011612,
    ),
]
STRINGS = ["", "a", "A", "a'b", "ab", "a\0", "\0", "é", "\uffff", "\U0001f600", "null", "b" * 70, "x y"]
BYTES = [b"", b"\0", b"\x01", b"\x7f", b"\x80", b"\xff", b"\xff\0", b"ab"]
DATES = [
    dt.date(1, 1, 1),
    dt.date(1969, 12, 31),
    dt.date(1970, 1, 1),
    dt.date(2026, 2, 28),
    dt.date(9999, 12, 31),
]
DECIMALS = [
    *map(
        Decimal,
        ("0", "1", "-1", "0.01", "-0.01", "0.001", "1.005", "9999999.99", "9999999.991", "-9999999.99"),
    ),
    *map(Decimal, ("10000000", "-10000000", "0.0000000001", "0.00000000001", "1e30", "-1e30", "1e-38")),
    Decimal(10**28) - Decimal("1e-10"),
]
MOMENTS = [
    *(
        (0, 0),
        (0, 1),
        (0, 999),
        (0, 1000),
        (0, 1_000_000),
        (-1, 999_999_999),
        (-1, 999_999_000),
        (1, 500_000_000),
    ),
    *((1_770_000_000, 123_456_789), (1_770_000_000, 123_456_000), (1_770_000_000, 123_000_000)),
    *((9_223_372_036, 854_775_807), (9_223_372_036, 854_775_808), (-9_223_372_037, 145_224_192)),
    *((-62_135_596_800, 0), (253_402_300_799, 999_999_999), (253_402_300_799, 0), (-9_300_000_000, 0)),
]

SCHEMA = pa.schema(
    [
        pa.field("n", pa.int64()),
        pa.field("i", pa.int64()),
        pa.field("i8", pa.int8()),
        pa.field("u32", pa.uint32()),
        pa.field("u64", pa.uint64()),
        pa.field("x", pa.float64()),
        pa.field("f", pa.float32()),
        pa.field("s", pa.string()),
        pa.field("y", pa.binary()),
        pa.field("b", pa.bool_()),
        pa.field("d", pa.date32()),
        pa.field("t", pa.timestamp("us", "UTC")),
        pa.field("ms", pa.timestamp("ms")),
        pa.field("us", pa.timestamp("us")),
        pa.field("ns", pa.timestamp("ns")),
        pa.field("m", pa.decimal128(9, 2)),
        pa.field("w", pa.decimal128(38, 10)),
        pa.field("null", pa.null()),
        pa.field("a.b", pa.int32()),
        pa.field("a", pa.struct([("b", pa.string()), ("c", pa.int64())])),
        pa.field(
            "r", pa.struct([("x.y", pa.float64()), ("q", pa.struct([("t", pa.timestamp("us", "UTC"))]))])
        ),
        pa.field('q"`uo', pa.string()),
        json_field("j"),
        pa.field("l", pa.list_(pa.int64())),
        pa.field("time", pa.time64("us")),
    ]
)
"""The fields of the records; `n` is the number of the record."""

_POOLS: dict[str, list[Any]] = {
    "number": NUMBERS,
    "string": STRINGS,
    "bytes": BYTES,
    "boolean": [True, False],
    "date": DATES,
    "decimal": DECIMALS,
    "timestamp": [Instant((0x08, *moment)) for moment in MOMENTS],
    "timestamp with zone": [Instant((0x09, *moment)) for moment in MOMENTS],
}


def paths(schema: pa.Schema | pa.StructType) -> dict[Path, pa.Field]:
    """The paths of all fields, those inside of records too."""
    found: dict[Path, pa.Field] = {}
    for field in schema:
        found[(field.name,)] = field
        if pa.types.is_struct(field.type):
            found |= {(field.name, *path): inner for path, inner in paths(field.type).items()}
    return found


# --- records


def some_records(random: Random, count: int, schema: pa.Schema = SCHEMA) -> list[dict[str, Any]]:
    """Makes records with values that the schema's types can hold, some of them null."""
    return [
        {f.name: number if f.name == "n" else _value(random, f) for f in schema} for number in range(count)
    ]


def _value(random: Random, field: pa.Field) -> Any:
    kind = field.type
    if random.random() < 0.15 or pa.types.is_null(kind):
        return None
    if pa.types.is_struct(kind):
        return {f.name: _value(random, f) for f in kind}
    if is_json(field):
        return random.choice(['"a"', "1", "{}", "true"])
    if pa.types.is_list(kind):
        return [random.randint(0, 3)]
    if pa.types.is_time(kind):
        return random.randint(0, 9)
    return random.choice(_held_values(kind))


@cache
def _held_values(kind: pa.DataType) -> list[Any]:
    """Returns those of the values that the type can hold."""
    held = [_held(value, kind) for value in _POOLS[key_class(kind)]]
    return [value for value in held if value is not None]


_INSTANT_TYPES = {"ms": 10**6, "us": 10**3, "ns": 1}


def _held(value: Any, kind: pa.DataType) -> Any:
    """Returns the value in the form in which the type holds it; None if the type cannot hold it."""
    if pa.types.is_integer(kind):
        try:
            return int(value) if int(value) == value and pa.scalar(int(value), kind) else None
        except (OverflowError, ValueError, pa.ArrowInvalid):
            return None
    if pa.types.is_floating(kind):
        return pa.array([float(value)], pa.float64()).cast(kind)[0].as_py()
    if pa.types.is_decimal(kind):
        fits = abs(value) < Decimal(10) ** (kind.precision - kind.scale)
        return value if fits and value == round(value, kind.scale) else None
    if pa.types.is_timestamp(kind):
        tag, seconds, nanos = value
        ticks, rest = divmod(seconds * 10**9 + nanos, _INSTANT_TYPES[kind.unit])
        return Instant((tag, seconds, nanos - rest)) if -(2**63) <= ticks < 2**63 else None
    return value


def to_table(records: list[dict[str, Any]], schema: pa.Schema = SCHEMA) -> pa.Table:
    """The records as an Arrow table."""
    return pa.table([_array([r[f.name] for r in records], f) for f in schema], schema=schema)


def _array(values: list[Any], field: pa.Field) -> pa.Array:
    kind = field.type
    if pa.types.is_struct(kind):
        children = [_array([None if v is None else v[f.name] for v in values], f) for f in kind]
        mask = pa.array([v is None for v in values], pa.bool_())
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)
    if pa.types.is_timestamp(kind):
        unit = _INSTANT_TYPES[kind.unit]
        ticks = [None if v is None else (v[1] * 10**9 + v[2]) // unit for v in values]
        return pa.array(ticks, pa.int64()).cast(kind)
    return pa.array(values, kind)


# --- conditions


def some_condition(random: Random, fields: dict[Path, pa.Field], depth: int = 3) -> Condition:
    """Makes a typed condition, as `check` returns it."""
    kind = random.choice(["and", "or", "not", "leaf", "leaf"]) if depth else "leaf"
    if kind == "not":
        return Not(some_condition(random, fields, depth - 1))
    if kind != "leaf":
        of = tuple(some_condition(random, fields, depth - 1) for _ in range(random.randint(2, 3)))
        return And(of) if kind == "and" else Or(of)
    path = random.choice(list(fields))
    values = _comparable(fields[path])
    if not values or random.random() < 0.1:
        return IsNull(path)
    if random.random() < 0.3:
        chosen = [random.choice([*values, None]) for _ in range(random.choice([1, 2, 3, 12]))]
        return In(path, tuple(sorted({encode_value(v) for v in chosen})))
    boolean = pa.types.is_boolean(fields[path].type)
    op = random.choice(["=", "!="] if boolean else ["=", "!=", "<", "<=", ">", ">="])
    value = None if random.random() < 0.05 else random.choice(values)
    return Compare(path, op, encode_value(value))  # type: ignore[arg-type]


def _comparable(field: pa.Field) -> list[Any]:
    kind = field.type
    nested = pa.types.is_struct(kind) or pa.types.is_list(kind)
    if is_json(field) or nested or pa.types.is_time(kind):
        return []
    return [None] if pa.types.is_null(kind) else _POOLS[key_class(kind)]


# --- what a condition says of a record


def truth(condition: Condition, record: dict[str, Any]) -> bool | None:
    """Evaluates the condition for a record: true, false, or None for null."""
    match condition:
        case And(of) | Or(of):
            found = [truth(member, record) for member in of]
            decisive = isinstance(condition, Or)
            if decisive in found:
                return decisive
            return None if None in found else not decisive
        case Not(of):
            inner = truth(of, record)
            return None if inner is None else not inner
        case Unless(of):
            return truth(of, record) is not True
    assert isinstance(condition, Compare | In | IsNull)
    value: Any = record
    for name in condition.field:
        value = None if value is None else value.get(name)
    match condition:
        case IsNull():
            return value is None
        case In(_, values):
            found = [_equal(value, decode_value(other)) for other in values]
            return True if True in found else None if None in found else False
        case Compare(_, op, data):
            other = decode_value(data)
            if value is None or other is None:
                return None
            below, equal = _below(value, other), bool(_equal(value, other))
            return {
                "=": equal,
                "!=": not equal,
                "<": below,
                "<=": below or equal,
                ">": not below and not equal,
                ">=": not below,
            }[op]


def _equal(a: Any, b: Any) -> bool | None:
    if a is None or b is None:
        return None
    return a == b or (_is_nan(a) and _is_nan(b))


def _below(a: Any, b: Any) -> bool:
    if _is_nan(a) or _is_nan(b):
        return not _is_nan(a)
    if isinstance(a, str):
        return bool(a.encode() < b.encode())
    return bool(a < b)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
