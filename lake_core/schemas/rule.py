"""The kind of a pool as a rule for records of equal keys, and its text form.

`parse_aggregates("bytes=sum,last_seen=max")` -> {"bytes": "sum", "last_seen": "max"}.  A field of an aggregate pool
without a function keeps its last value.
"""

from __future__ import annotations

import decimal
from collections.abc import Iterable, Mapping

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lake_core.errors import InvalidInput
from lake_core.keys import PoolKey
from lake_core.naming import PARQUET
from lake_core.phrases import choices
from lake_core.records.pools import PoolConfig
from lake_core.schemas.hidden import DELETED
from lake_core.values.types import SUM_MARK, WIDE_MARK, is_json, show_type

KINDS = ("append", "upsert", "aggregate")
FUNCTIONS = ("sum", "min", "max", "count", "first", "last", "any_value")
DEFAULT = "last"


class Rule(msgspec.Struct, frozen=True):
    """A pool's kind (listed in the package's docstring), and the functions of an aggregate pool's fields."""

    kind: str = "append"
    aggregates: tuple[tuple[str, str], ...] = ()

    @property
    def compared(self) -> tuple[str, ...]:
        """Fields whose values are compared or added, and so must be of one class in all records."""
        return tuple(name for name, function in self.aggregates if function in ("sum", "min", "max"))

    @property
    def keeps_all(self) -> bool:
        """Whether records of equal keys stay side by side."""
        return self.kind == "append"

    def keeps_rows(self, formats: Iterable[str]) -> bool:
        """Whether records in one of these formats are as they came (`hidden.ROW`); aggregated ones never are."""
        return self.kind != "aggregate" and any(format != PARQUET for format in formats)

    def function(self, name: str) -> str:
        """The function that combines a field outside of the key."""
        return dict(self.aggregates).get(name, DEFAULT)


APPEND = Rule()


def rule_of(config: PoolConfig, sub_pool: str = "") -> Rule:
    """The rule of a pool as it is declared; the sub-pools keep all records, "" is the pool itself."""
    return APPEND if sub_pool else Rule(config.kind, tuple(sorted(config.aggregates.items())))


def parse_aggregates(text: str) -> dict[str, str]:
    """`FIELD=FN,...`; raises InvalidInput naming the part that is wrong."""
    aggregates: dict[str, str] = {}
    for part in text.split(",") if text else []:
        name, equals, function = part.strip().rpartition("=")
        name = name.strip()
        if not equals or not name:
            raise InvalidInput(f"aggregate {part.strip()!r}: write FIELD=FN, such as bytes=sum")
        if name in aggregates:
            raise InvalidInput(f"aggregate {name!r} is named twice; give each field one function")
        aggregates[name] = function.strip().lower()
    return aggregates


def check_rule(kind: str, aggregates: Mapping[str, str], key: PoolKey) -> None:
    """Raises InvalidInput for an unknown kind or function, and for a function on a key field."""
    if kind not in KINDS:
        raise InvalidInput(f"unknown kind {kind!r}: use {choices(KINDS)}")
    if aggregates and kind != "aggregate":
        raise InvalidInput(f"aggregates are for pools of kind aggregate (got kind {kind}); choose that kind")
    for name, function in aggregates.items():
        if function not in FUNCTIONS:
            raise InvalidInput(f"aggregate {name}={function}: use {choices(FUNCTIONS)}")
        if name in key.names:
            raise InvalidInput(
                f"aggregate {name}={function}: {name!r} is a field of the key; name another field"
            )


def check_type(field: pa.Field, *, kind: str, function: str) -> None:
    """Raises InvalidInput for a type that the field's part in a pool of the kind excludes."""
    if kind == "upsert" and field.name == DELETED and not pa.types.is_boolean(field.type):
        raise InvalidInput(
            f"field {DELETED!r} is of type {show_type(field)}; in an upsert pool it must be a boolean (delete "
            "marker)"
        )
    if function == "sum":
        _check_summed(field)
    elif function in ("min", "max"):
        _check_ordered(field, function)


ROOM_DIGITS = 12
"""Digits of a sum that are left for the number of records: 10^12 of the largest values of a key do not overflow
(decision 53)."""

SUM_DIGITS = 38
"""Digits of a sum of integers or decimals."""


def prepared(table: pa.Table, rule: Rule, key: PoolKey) -> pa.Table:
    """Records of a load as the pool stores them: counted fields begin with 1, sums get room to grow.

    Raises InvalidInput if a field's type does not suit its function, a value leaves no room for sums, or a delete
    marker is not a boolean.
    """
    if rule.kind == "upsert":
        return _with_markers(table)
    if rule.kind != "aggregate":
        return table
    columns, fields = [], []
    for field, column in zip(table.schema, table.columns, strict=True):
        function = "" if field.name in key.names else rule.function(field.name)
        if function == "count":
            column = pa.repeat(pa.scalar(1, pa.int64()), table.num_rows)
            field = pa.field(field.name, pa.int64())
        elif function == "sum" and not pa.types.is_null(field.type):
            field, column = _with_room(field, column)
        elif function in ("min", "max"):
            _check_ordered(field, function)
        columns.append(column)
        fields.append(field)
    for name, function in rule.aggregates:
        if function == "count" and name not in table.schema.names:
            columns.append(pa.repeat(pa.scalar(1, pa.int64()), table.num_rows))
            fields.append(pa.field(name, pa.int64()))
    return pa.table(columns, schema=pa.schema(fields))


def _with_markers(table: pa.Table) -> pa.Table:
    index = table.schema.get_field_index(DELETED)
    if index < 0 or pa.types.is_boolean(table.schema.types[index]):
        return table
    if pa.types.is_null(table.schema.types[index]):  # a null type has no room for delete markers
        return table.set_column(index, DELETED, table.column(index).cast(pa.bool_()))
    kind = show_type(table.schema.field(index))
    raise InvalidInput(
        f"field {DELETED!r} is of type {kind}; in an upsert pool it must be a boolean (delete marker)"
    )


def _with_room(field: pa.Field, column: pa.ChunkedArray) -> tuple[pa.Field, pa.ChunkedArray]:
    """A summed field as it is stored: exact numbers as decimals of 38 digits, others as doubles."""
    kind = field.type
    if pa.types.is_floating(kind):
        return pa.field(field.name, pa.float64(), metadata=SUM_MARK), column.cast(pa.float64())
    _check_summed(field)
    values = column.cast(pa.decimal128(SUM_DIGITS, kind.scale if pa.types.is_decimal(kind) else 0))
    bounds = pc.min_max(values).as_py()
    largest = max((abs(v) for v in bounds.values() if v is not None), default=0)
    if largest >= _room(values.type):
        raise InvalidInput(f"field {field.name!r}: {largest} {_NO_ROOM}")
    wide = largest > 2**53
    mark = SUM_MARK | (WIDE_MARK if wide else {})
    return pa.field(field.name, values.type, metadata=mark), values


def _room(kind: pa.Decimal128Type) -> decimal.Decimal:
    """The limit (exclusive) of values of the type; digits behind the point count too."""
    return decimal.Decimal(1).scaleb(SUM_DIGITS - ROOM_DIGITS - kind.scale)


_NO_ROOM = (
    f"has more than {SUM_DIGITS - ROOM_DIGITS} digits, so a sum of such values may need more than {SUM_DIGITS}; "
    "load it as a double (type.FIELD=double)"
)


def uncombinable(field: pa.Field, column: pa.ChunkedArray, function: str) -> dict[int, str]:
    """For each row that the function cannot combine: why.  Most columns have no such row."""
    if pa.types.is_null(field.type) or function not in ("sum", "min", "max"):
        return {}
    try:
        check_type(field, kind="aggregate", function=function)
    except InvalidInput:
        why = (
            "is not a number, so it has no sum"
            if function == "sum"
            else f"has no order, so it has no {function}"
        )
        return {
            row: f"{_cut(column[row])} {why}" for row in pc.indices_nonzero(column.is_valid()).to_pylist()
        }
    if (
        function == "sum"
        and pa.types.is_decimal(field.type)
        and field.type.precision > SUM_DIGITS - ROOM_DIGITS
    ):
        limit = pa.scalar(_room(field.type), pa.decimal128(SUM_DIGITS, field.type.scale))
        beyond = pc.greater_equal(pc.abs(column.cast(limit.type)), limit)
        return {row: f"{column[row]} {_NO_ROOM}" for row in pc.indices_nonzero(beyond).to_pylist()}
    return {}


def _cut(value: pa.Scalar) -> str:
    text = repr(value.as_py())
    return text if len(text) <= 60 else text[:57] + "..."


def _check_summed(field: pa.Field) -> None:
    kind = field.type
    numbers = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if is_json(field) or not numbers:
        raise InvalidInput(
            f"field {field.name!r} is of type {show_type(field)}, and only numbers have a sum; convert it, or use "
            "another function"
        )


def _check_ordered(field: pa.Field, function: str) -> None:
    if is_json(field) or pa.types.is_nested(field.type):
        raise InvalidInput(
            f"field {field.name!r} is of type {show_type(field)}, which has no order and so no {function}; "
            "convert it, or use another function"
        )
