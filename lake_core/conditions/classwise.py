"""Decides what a comparison means for values of one class (number, text, date, ...); pure. No other module decides
this.

A record's own class decides how a condition is read.  A value of that class is compared directly.  Numbers and
decimals compare by the text of a double (`values.numbers`).  The condition's value may also be stored as read
in other classes (`Compare.readings`); then the reading of the record's class is compared.  Other classes do not
compare: the answer is null.

Called by `evaluate` for the class of a column, by `mixed` for the class of each value in JSON, by `prune` for
the class of an object's bounds, and by `keyrange` for the class of a key field.
"""

from __future__ import annotations

from functools import lru_cache

from lake_core.keys.encoding import class_of, decode_value, encode_value
from lake_core.records.conditions import Compare, In
from lake_core.values.numbers import Op, as_class

NULL_VALUE = encode_value(None)


CACHED = 1 << 14
"""Comparisons whose answers are cached: those of the tombstones of many pools.  If a scan had more tombstones than
this, every answer would be computed again for every object and every batch."""

CACHED_SETS = 1 << 8
"""Answers of `in` that are cached; each may hold many values."""


def among(leaf: Compare | In, kind: str) -> Compare | In | bool | None:
    """Returns the comparison for values of the class `kind`, with only the values of that class in it.

    A bool is the answer for every value except null.  None means that the answer is null for all, because no
    value of the comparison is of the class.  Answers are cached, because a scan asks at every batch.
    """
    return _of_one(leaf, kind) if isinstance(leaf, Compare) else _of_set(leaf, kind)


def _own(leaf: Compare | In, kind: str) -> list[bytes]:
    return [data for data in leaf.readings if class_of(decode_value(data)) == kind]


@lru_cache(maxsize=CACHED)
def _of_one(leaf: Compare, kind: str) -> Compare | bool | None:
    own = _own(leaf, kind)
    comparison = (leaf.op, own[0]) if own else _compared(leaf.op, leaf.value, kind)
    return Compare(leaf.field, *comparison) if isinstance(comparison, tuple) else comparison


@lru_cache(maxsize=CACHED_SETS)
def _of_set(leaf: In, kind: str) -> In | bool | None:
    own = _own(leaf, kind)
    equal = [_compared("=", data, kind) for data in leaf.values if data != NULL_VALUE]
    with_null = leaf.values[0] == NULL_VALUE
    values = {*own, *(answer[1] for answer in equal if isinstance(answer, tuple))}
    if values:
        return In(leaf.field, tuple(sorted(values | {NULL_VALUE} if with_null else values)))
    return None if with_null or all(answer is None for answer in equal) else False


@lru_cache(maxsize=CACHED)
def _compared(op: Op, data: bytes, kind: str) -> tuple[Op, bytes] | bool | None:
    value = decode_value(data)
    comparison = None if value is None else as_class(op, value, kind)
    return (comparison[0], encode_value(comparison[1])) if isinstance(comparison, tuple) else comparison
