"""Joins the equality tests of many alternatives into one look-up in a set.

Without this, a hundred deletes of single values would cost a hundred comparisons a record.  Other conditions
stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from lake_core.conditions.classwise import NULL_VALUE
from lake_core.records.conditions import Compare, Condition, In, Or, Path


def alternatives(conditions: Sequence[Condition]) -> tuple[Condition, ...]:
    """Fewer conditions that match the same records: a record matches one of them exactly if it matches one of
    the given."""
    sets: dict[Path, tuple[set[bytes], set[bytes]]] = {}
    others: dict[Condition, None] = {}
    for condition in _spread(conditions):
        if isinstance(condition, Compare) and condition.op == "=":
            values: tuple[bytes, ...] = (condition.value,)
        elif isinstance(condition, In):
            values = condition.values
        else:
            others[condition] = None
            continue
        if some := set(values) - {NULL_VALUE}:  # nothing is equal to null
            pair = sets.setdefault(condition.field, (set(), set()))
            pair[0].update(some)
            pair[1].update(condition.readings)
    united = [
        In(field, tuple(sorted(values)), tuple(sorted(readings)))
        for field, (values, readings) in sets.items()
    ]
    return (*united, *others)


def _spread(conditions: Sequence[Condition]) -> list[Condition]:
    """The members of an `or`, otherwise the condition itself."""
    parts: list[Condition] = []
    for condition in conditions:
        parts += _spread(condition.of) if isinstance(condition, Or) else [condition]
    return parts
