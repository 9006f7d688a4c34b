"""The kind of a pool as a rule for records of equal keys, and how a user spells it.

`parse_aggregates("bytes=sum,last_seen=max")` -> {"bytes": "sum", "last_seen": "max"}.  A field of an aggregate pool
that no function is named for keeps its last value.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pyarrow as pa

from lake_core.errors import InvalidInput
from lake_core.keys import PoolKey
from lake_core.wording import choices

KINDS = ("append", "upsert", "aggregate")
FUNCTIONS = ("sum", "min", "max", "count", "first", "last", "any_value")
DEFAULT = "last"


class Rule(msgspec.Struct, frozen=True):
    """`aggregates` names a function for fields of an aggregate pool; see the package for what the kinds mean."""

    kind: str = "append"
    aggregates: tuple[tuple[str, str], ...] = ()

    @property
    def keeps_all(self) -> bool:
        """Whether records of equal keys stay side by side."""
        return self.kind == "append"

    def function(self, name: str) -> str:
        """How a field that is not of the key combines."""
        return dict(self.aggregates).get(name, DEFAULT)


APPEND = Rule()


def rule_of(kind: str, aggregates: Mapping[str, str]) -> Rule:
    """The rule of a pool as it is declared."""
    return Rule(kind, tuple(sorted(aggregates.items())))


def parse_aggregates(text: str) -> dict[str, str]:
    """`FIELD=FN,...`; raises InvalidInput naming the part that is wrong."""
    found: dict[str, str] = {}
    for part in text.split(",") if text else []:
        name, equals, function = part.strip().rpartition("=")
        name = name.strip()
        if not equals or not name:
            raise InvalidInput(f"aggregate {part.strip()!r}: write FIELD=FN")
        if name in found:
            raise InvalidInput(f"aggregate {name!r}: named twice")
        found[name] = function.strip().lower()
    return found


def check_rule(kind: str, aggregates: Mapping[str, str], key: PoolKey) -> None:
    """Raises InvalidInput for an unknown kind or function, and for a function on a key field."""
    if kind not in KINDS:
        raise InvalidInput(f"unknown kind {kind!r}: use {choices(KINDS)}")
    if aggregates and kind != "aggregate":
        raise InvalidInput(f"aggregates are for pools of kind aggregate, not {kind}")
    for name, function in aggregates.items():
        if function not in FUNCTIONS:
            raise InvalidInput(f"aggregate {name}={function}: use {choices(FUNCTIONS)}")
        if name in key.names:
            raise InvalidInput(f"aggregate {name}={function}: {name!r} is a field of the key")


def prepared(table: pa.Table, rule: Rule, key: PoolKey) -> pa.Table:
    """Records of a load as the pool stores them: counted fields begin with 1, sums get room to grow.

    Raises InvalidInput where a field's type does not go with its function.
    """
    if rule.kind != "aggregate":
        return table
    columns, fields = [], []
    for field, column in zip(table.schema, table.columns, strict=True):
        target = field if field.name in key.names else _stored(field, rule.function(field.name))
        counted = target is not field and rule.function(field.name) == "count"
        columns.append(pa.repeat(pa.scalar(1, pa.int64()), table.num_rows) if counted else column)
        fields.append(target)
    for name, function in rule.aggregates:
        if function == "count" and name not in table.schema.names:
            columns.append(pa.repeat(pa.scalar(1, pa.int64()), table.num_rows))
            fields.append(pa.field(name, pa.int64()))
    return pa.table(
        [c if c.type == f.type else c.cast(f.type) for c, f in zip(columns, fields, strict=True)],
        schema=pa.schema(fields),
    )


def _stored(field: pa.Field, function: str) -> pa.Field:
    kind = field.type
    if function == "count":
        return pa.field(field.name, pa.int64())
    if function == "sum" and not pa.types.is_null(kind):
        if pa.types.is_decimal(kind):
            return pa.field(field.name, pa.decimal128(38, kind.scale))
        if pa.types.is_floating(kind):
            return pa.field(field.name, pa.float64())
        if pa.types.is_unsigned_integer(kind) and kind.bit_width == 64:
            return pa.field(field.name, pa.uint64(), metadata=field.metadata)
        if pa.types.is_integer(kind):
            return pa.field(field.name, pa.int64(), metadata=field.metadata)
        raise InvalidInput(f"field {field.name!r}: values of type {kind} cannot be summed")
    if function in ("min", "max") and (field.metadata or pa.types.is_nested(kind)) and not _is_number(kind):
        raise InvalidInput(f"field {field.name!r}: values of type {kind} have no {function}")
    return field


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_timestamp(kind))
