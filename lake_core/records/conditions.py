"""Conditions on records, which tombstones and scans use: their stored form.

A condition is true, false or null for a record, by SQL's logic.  A value is stored in the encoding of keys,
ascending (`keys.encoding`): exact for every type, canonical, and comparable as bytes with the bounds of objects
and of key ranges.  A field is a path: the exact name of a field of the pool, then names of fields inside records.

A field may hold values of several classes: as JSON, on another branch, or after a later load.  `readings` are the
value of a comparison as values of other classes (the text '2026-01-31' as a date, as a timestamp, ...).  A record
whose value has such a class is compared with the reading.  So a condition always means the same for a record,
whatever class the field had when it was written (decision 29).  A tombstone of an older program may lack readings
and hold the value of the field's class instead; its meaning stays the same.

`lake_core.conditions` compares conditions with statistics of objects; `log_lake.where` parses conditions, checks
them against a schema, and evaluates them over records.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from lake_core.errors import InvalidInput
from lake_core.keys.encoding import (
    FIRST_SECOND,
    LAST_SECOND,
    NAIVE,
    TIME,
    ZONED,
    Instant,
    Value,
    decode_value,
)
from lake_core.values.numbers import Op

DEEPEST = 50
"""The most levels of a condition, and the most names in a path."""

Path = tuple[str, ...]

OPS: dict[Op, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class And(msgspec.Struct, frozen=True, tag="and"):
    """A condition that is true if all of its members (at least two) are true."""

    of: tuple[Condition, ...]

    def __post_init__(self) -> None:
        _check_members(self.of)


class Or(msgspec.Struct, frozen=True, tag="or"):
    """A condition that is true if at least one of its members (at least two) is true."""

    of: tuple[Condition, ...]

    def __post_init__(self) -> None:
        _check_members(self.of)


class Not(msgspec.Struct, frozen=True, tag="not"):
    """The negation of a condition; null stays null."""

    of: Condition

    def __post_init__(self) -> None:
        _check_depth((self.of,))


class Unless(msgspec.Struct, frozen=True, tag="unless"):
    """False if a condition is true, otherwise true (also if the condition is null).  Only filters are such
    conditions; none is stored."""

    of: Condition

    def __post_init__(self) -> None:
        _check_depth((self.of,))


class Called(msgspec.Struct, frozen=True, tag="called"):
    """True if a function of an installed package keeps a record with these values of the fields; none is stored.

    The function gets each field under the name that readers see (`names`), in the type that the pool declares
    (`types`, as users write them).
    """

    function: str
    version: int
    fields: tuple[str, ...]
    names: tuple[str, ...]
    types: tuple[str, ...]


class Compare(msgspec.Struct, frozen=True, tag="compare", omit_defaults=True):
    """Compares the field with an encoded value; null if one of them is null.  `readings`: the value as values
    of other classes, at most one for each class; a record of such a class is compared with it."""

    field: Path
    op: Op
    value: bytes
    readings: tuple[bytes, ...] = ()

    def __post_init__(self) -> None:
        _check_path(self.field)
        check_value(self.value)
        _check_values(self.readings)
        if self.op not in OPS:
            raise InvalidInput(f"condition: {self.op!r} is not a comparison; use one of {', '.join(OPS)}")


class In(msgspec.Struct, frozen=True, tag="in", omit_defaults=True):
    """True if the field equals one of the encoded values, which are sorted and distinct; there is at least one.

    Null if the field is null, or if it equals none and one of the values is null.  `readings` are further
    values, each only for records of its own class.
    """

    field: Path
    values: tuple[bytes, ...]
    readings: tuple[bytes, ...] = ()

    def __post_init__(self) -> None:
        _check_path(self.field)
        _check_values(self.values)
        _check_values(self.readings)
        if not self.values:
            raise InvalidInput("condition: `in` needs at least one value")


class IsNull(msgspec.Struct, frozen=True, tag="is_null"):
    """True if the field is null or absent, otherwise false; never null."""

    field: Path

    def __post_init__(self) -> None:
        _check_path(self.field)


Condition = And | Or | Not | Unless | Called | Compare | In | IsNull


def members(condition: Condition) -> tuple[Condition, ...]:
    """Returns the direct members of a condition."""
    if isinstance(condition, And | Or):
        return condition.of
    return (condition.of,) if isinstance(condition, Not | Unless) else ()


def is_of_filter(condition: Condition) -> bool:
    """Whether a part of the condition is one that only filters have, so that no entry or checkpoint may hold it."""
    return isinstance(condition, Unless | Called) or any(map(is_of_filter, members(condition)))


def check_value(data: bytes) -> Value:
    """Returns the value in these bytes.  Raises InvalidInput if a condition cannot contain it."""
    value = decode_value(data)
    if isinstance(value, Instant):
        tag, seconds, _ = value
        if tag == TIME and not 0 <= seconds < 86_400:
            raise InvalidInput(
                f"condition: a time of day of {seconds} s; it must be at least 0 s and less than 24 h"
            )
        if tag in (NAIVE, ZONED) and not FIRST_SECOND <= seconds <= LAST_SECOND:
            raise InvalidInput(
                f"condition: a timestamp of {seconds} s; it must lie in the years 1 to 9999 (inclusive)"
            )
    return value


def _check_values(values: tuple[bytes, ...]) -> None:
    for value in values:
        check_value(value)
    if not all(a < b for a, b in itertools.pairwise(values)):
        raise InvalidInput("condition: values must be sorted and distinct")


def _check_path(path: Path) -> None:
    if not 1 <= len(path) <= DEEPEST:
        raise InvalidInput(f"condition: a field of {len(path)} names; it has 1 to {DEEPEST} (inclusive)")


def _check_members(of: tuple[Condition, ...]) -> None:
    if len(of) < 2:
        raise InvalidInput("condition: `and` and `or` join at least two conditions")
    _check_depth(of)


def _check_depth(of: Iterable[Condition]) -> None:
    level = list(of)
    depth = 1
    while level:  # bounded: members are made first, so each is within the limit
        depth += 1
        if depth > DEEPEST:
            raise InvalidInput(f"condition: nested more than {DEEPEST} levels deep")
        level = [member for condition in level for member in members(condition)]
