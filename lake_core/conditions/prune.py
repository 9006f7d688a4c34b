"""Decides by an object's statistics whether some of its records, or all, can fulfil a condition.

Each comparison gives the set of answers (false, null, true) that a record within the bounds may have; `and`,
`or` and `not` combine these sets.  A set may be too large, because bounds may be shortened and fields may
depend on each other.  It is never too small: without statistics it has all three answers.  Called when a scan
or a job chooses objects.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable
from functools import reduce
from itertools import product

import pyarrow as pa

from lake_core.conditions.classwise import NULL_VALUE, among
from lake_core.conditions.fields import find_field
from lake_core.keys.encoding import encode_value, key_class
from lake_core.records import Column
from lake_core.records.conditions import OPS, And, Called, Compare, Condition, In, IsNull, Not, Or, Unless

FALSE, NULL, TRUE = 0, 1, 2
"""The three answers, numbered so that `and` of several answers is the least of them, and `or` the greatest."""

_Truths = frozenset[int]
_ANY: _Truths = frozenset({FALSE, NULL, TRUE})
_NAN = encode_value(math.nan)


def may_hold(condition: Condition, schema: pa.Schema, columns: Iterable[Column], *, records: int) -> bool:
    """Whether some record may match the condition.  `schema`, `columns` and `records` describe a whole object;
    the answer holds for any part of it too."""
    return TRUE in _truths(condition, schema, tuple(columns), records)


def must_hold(condition: Condition, schema: pa.Schema, columns: Iterable[Column], *, records: int) -> bool:
    """Whether every record certainly matches the condition; arguments as for `may_hold`."""
    return _truths(condition, schema, tuple(columns), records) == {TRUE}


def _truths(condition: Condition, schema: pa.Schema, columns: tuple[Column, ...], records: int) -> _Truths:
    match condition:
        case And(of):
            return reduce(_least, (_truths(member, schema, columns, records) for member in of))
        case Or(of):
            return reduce(_greatest, (_truths(member, schema, columns, records) for member in of))
        case Not(of):
            return frozenset(TRUE - truth for truth in _truths(of, schema, columns, records))
        case Called():
            return _ANY
        case Unless(of):
            truths = _truths(of, schema, columns, records)
            return frozenset(FALSE if truth == TRUE else TRUE for truth in truths)
        case _:
            return _leaf(condition, schema, columns, records)


def _least(a: _Truths, b: _Truths) -> _Truths:
    return frozenset(min(pair) for pair in product(a, b))


def _greatest(a: _Truths, b: _Truths) -> _Truths:
    return frozenset(max(pair) for pair in product(a, b))


def _leaf(
    leaf: Compare | In | IsNull, schema: pa.Schema, columns: tuple[Column, ...], records: int
) -> _Truths:
    field, _ = find_field(schema, leaf.field)
    column = next((c for c in columns if c.name == leaf.field[0]), None)
    if field is None or (column is not None and column.nulls >= records):
        return frozenset({TRUE if isinstance(leaf, IsNull) else NULL})
    own = column if len(leaf.field) == 1 else None  # inside of records nothing is known
    if isinstance(leaf, IsNull):
        return frozenset({FALSE}) if own and not own.nulls else frozenset({FALSE, TRUE})
    if own is None or own.low is None or own.high is None:
        return _ANY  # JSON, records and lists have no bounds
    leaf_among = among(leaf, key_class(field.type))
    if leaf_among is None:
        return frozenset({NULL})
    # no bound holds NaN, and any column of doubles may
    high = _NAN if pa.types.is_floating(field.type) else own.high
    truths = _within(leaf_among, own.low, high)
    return truths | {NULL} if own.nulls else truths


def _within(leaf: Compare | In | bool, low: bytes, high: bytes) -> _Truths:
    """Returns the answers for values from `low` to `high` (both inclusive), of the class that the leaf compares
    with."""
    if isinstance(leaf, bool):
        return frozenset({TRUE if leaf else FALSE})
    last = leaf.value if isinstance(leaf, Compare) else leaf.values[-1]
    if last[0] != low[0]:
        return _ANY  # bounds of another class than the schema's tell nothing
    return _compared(leaf, low, high) if isinstance(leaf, Compare) else _one_of(leaf.values, low, high)


def _compared(leaf: Compare, low: bytes, high: bytes) -> _Truths:
    """Returns the answers of a comparison for values within [low, high] (both inclusive)."""
    below, equal, above = low < leaf.value, low <= leaf.value <= high, leaf.value < high
    signs = [sign for sign, possible in ((-1, below), (0, equal), (1, above)) if possible]
    return frozenset(TRUE if OPS[leaf.op](sign, 0) else FALSE for sign in signs)


def _one_of(values: tuple[bytes, ...], low: bytes, high: bytes) -> _Truths:
    """Returns the answers of `in` for values within [low, high] (both inclusive); `values` are sorted."""
    at = bisect_left(values, low)
    if at == len(values) or values[at] > high:
        truths = {FALSE}
    else:
        truths = {TRUE} if low == high else {FALSE, TRUE}
    return frozenset(NULL if truth == FALSE and values[0] == NULL_VALUE else truth for truth in truths)
