"""Fewer conditions in place of many of which one must hold: tests for equality become one look into a set.

A hundred deletes of single values cost a hundred comparisons a record, or one look-up.  Only values of one kind
are put together, since `in` compares values of one kind.  What is no test for equality stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from lake_core.keys.encoding import class_of, decode_value, encode_value
from lake_core.records.conditions import Compare, Condition, In, Or, Path

_NULL_VALUE = encode_value(None)


def alternatives(conditions: Sequence[Condition]) -> tuple[Condition, ...]:
    """Conditions of which at least one is true of just the records of which one of those given is."""
    sets: dict[tuple[Path, str], set[bytes]] = {}
    others: dict[Condition, None] = {}
    for condition in _spread(conditions):
        if isinstance(condition, Compare) and condition.op == "=":
            values: tuple[bytes, ...] = (condition.value,)
        elif isinstance(condition, In):
            values = condition.values
        else:
            others[condition] = None
            continue
        for value in values:
            if value != _NULL_VALUE:  # nothing is equal to null
                kind = class_of(decode_value(value))
                sets.setdefault((condition.field, kind), set()).add(value)
    united = [In(field, tuple(sorted(values))) for (field, _), values in sets.items()]
    return (*united, *others)


def _spread(conditions: Sequence[Condition]) -> list[Condition]:
    """The members of `or` instead of it."""
    found: list[Condition] = []
    for condition in conditions:
        found += _spread(condition.of) if isinstance(condition, Or) else [condition]
    return found
