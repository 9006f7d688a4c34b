"""Finds the key range that holds every record for which a condition can be true.

The condition gives an interval for each field of the key: `and` intersects intervals, `or` spans them, and `not`
is moved down to the comparisons.  The low bound of the range joins the least values of the leading fields, up to
and including the first exclusive one; the high bound is made the same way.  So `day = d and dep_time > 900`
narrows a key `day,dep_time` in both fields.

A key field has one class in all records of a pool, and `classwise` narrows a comparison to it.  If the records
do not show the class yet, only `is null` narrows: a stored range must not select less than its condition.

An interval lies between two cuts.  A cut is a pair: the bytes of a value in the key's direction, and 0 (before
all keys that begin with them) or 1 (after these keys).  No value's bytes begin another's, so cuts compare as
pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import pyarrow as pa

from lake_core.conditions.classwise import NULL_VALUE, among
from lake_core.keys import KeyField, KeyRange, PoolKey
from lake_core.keys.encoding import AFTER, decode_value, encode_value, key_class
from lake_core.records.conditions import And, Called, Compare, Condition, In, IsNull, Not, Or, Unless
from lake_core.values.numbers import Op

NOTHING = KeyRange(b"", b"")

FieldCut = tuple[bytes, int]
"""A pair: the bytes of a value, and 0 for the place before all keys that begin with them, or 1 for the place after
these keys."""
_MIRRORED: dict[Op, Op] = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OPPOSITE: dict[Op, Op] = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


@dataclass(frozen=True)
class FieldInterval:
    """The values of a field that lie between two cuts (`FieldCut`), which are places between values in their
    order."""

    low: FieldCut
    high: FieldCut

    @property
    def empty(self) -> bool:
        """Whether no value lies in the interval."""
        return self.low >= self.high

    def intersect(self, other: FieldInterval) -> FieldInterval:
        """Returns the values that lie in both intervals."""
        return FieldInterval(max(self.low, other.low), min(self.high, other.high))

    def united(self, other: FieldInterval) -> FieldInterval:
        """Returns the smallest interval that holds the values of both."""
        if self.empty or other.empty:
            return other if self.empty else self
        return FieldInterval(min(self.low, other.low), max(self.high, other.high))


_BEGIN: FieldCut = (b"", 0)
_END: FieldCut = (AFTER, 0)
ALL = FieldInterval(_BEGIN, _END)
"""The interval of all values, and of null."""
_NONE = FieldInterval(_END, _BEGIN)
_NULLS = FieldInterval((NULL_VALUE, 0), (NULL_VALUE, 1))
_VALUES = FieldInterval((NULL_VALUE, 1), _END)
"""All values except null, which comes first in either direction."""


def key_range_of(condition: Condition, key: PoolKey, schema: pa.Schema) -> KeyRange:
    """Returns the smallest key range that this module finds for records of the schema.  It is empty if no key can
    match."""
    of_fields = [_OfField(field, _class(schema, field.name)) for field in key.fields]
    intervals = [_interval(condition, field, negated=False) for field in of_fields]
    if any(interval.empty for interval in intervals):
        return NOTHING
    return KeyRange(_low(intervals), _high(intervals))


def interval_of(condition: Condition, field: KeyField, kind: str) -> FieldInterval:
    """Returns the interval of a key field in all records for which the condition is true; `kind` is the field's
    class."""
    return _interval(condition, _OfField(field, kind), negated=False)


def _low(intervals: list[FieldInterval]) -> bytes:
    low = b""
    for interval in intervals:
        value, after = interval.low
        low += value + AFTER * after
        if after or interval.low == _BEGIN:
            break
    return low


def _high(intervals: list[FieldInterval]) -> bytes | None:
    high = b""
    for interval in intervals:
        value, after = interval.high
        high += value
        if not after:
            return None if high == AFTER else high
    return high + AFTER if high else None


def _class(schema: pa.Schema, name: str) -> str:
    return key_class(schema.field(name).type) if name in schema.names else "null"


@dataclass(frozen=True)
class _OfField:
    """A field of the key and its class; the class is "null" if no record shows it."""

    field: KeyField
    kind: str


def _interval(condition: Condition, of_field: _OfField, *, negated: bool) -> FieldInterval:
    """Returns the interval of the field in all keys for which the condition is true; if `negated`, for which it is
    false."""
    match condition:
        case And(of) | Or(of):
            parts = [_interval(member, of_field, negated=negated) for member in of]
            joined = isinstance(condition, And) != negated
            return reduce(FieldInterval.intersect if joined else FieldInterval.united, parts)
        case Not(of):
            return _interval(of, of_field, negated=not negated)
        case Called():
            return ALL
        case Unless(of):
            return _interval(of, of_field, negated=False) if negated else ALL
        case Compare() | In() | IsNull() if condition.field != (of_field.field.name,):
            return ALL
        case IsNull():
            return _VALUES if negated else _NULLS
        case Compare() | In() if of_field.kind == "null":
            return ALL
        case Compare() | In():
            return _compared_within(among(condition, of_field.kind), of_field.field, negated=negated)


def _compared_within(leaf: Compare | In | bool | None, field: KeyField, *, negated: bool) -> FieldInterval:
    """Returns the interval of a comparison for values of the field's class (`classwise.among`)."""
    match leaf:
        case None:
            return _NONE
        case bool():
            return _VALUES if leaf != negated else _NONE
        case In(_, values):
            return _among(values, field, negated=negated)
        case Compare(_, op, value):
            return _compared(_OPPOSITE[op] if negated else op, value, field)


def _among(values: tuple[bytes, ...], field: KeyField, *, negated: bool) -> FieldInterval:
    if negated:
        return _NONE if values[0] == NULL_VALUE else _VALUES
    return reduce(FieldInterval.united, (_compared("=", value, field) for value in values))


def _compared(op: Op, value: bytes, field: KeyField) -> FieldInterval:
    if value == NULL_VALUE:
        return _NONE
    if field.descending:
        value = encode_value(decode_value(value), descending=True)
        op = _MIRRORED[op]
    before, after = (value, 0), (value, 1)
    interval = {
        "=": FieldInterval(before, after),
        "!=": ALL,
        "<": FieldInterval(_BEGIN, before),
        "<=": FieldInterval(_BEGIN, after),
        ">": FieldInterval(after, _END),
        ">=": FieldInterval(before, _END),
    }[op]
    return interval.intersect(_VALUES)
