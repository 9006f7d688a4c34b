"""Builds the condition that selects the records of given keys, and no others.

For a key of one field it is a set of values.  For a key of several fields, keys that share their first fields
are grouped, and so are values that have the same keys below them: the more regular the keys, the fewer
comparisons. Every scan evaluates the condition on every record until the tombstone is applied, and until then
the pool's state holds the condition.  So the numbers of keys and comparisons are limited.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import pyarrow as pa

from lake_core.conditions.classwise import NULL_VALUE
from lake_core.errors import InvalidInput
from lake_core.keys import PoolKey
from lake_core.keys.encoding import encode_value, from_array
from lake_core.phrases import counted
from lake_core.records.conditions import And, Compare, Condition, In, IsNull, Or

MAX_KEYS = 10_000
"""The most keys that a condition may name.  They are one look-up in a set, and take about 150 kB in the pool's
state."""

MAX_COMPARISONS = 200
"""The most comparisons of a condition on keys of several fields.  Each costs a pass over the records."""

_ADVICE = (
    "name fewer at a time, delete by a range or a condition, or use an upsert pool, which takes any number"
)

_Keys = frozenset[tuple[bytes, ...]]


def of_keys(keys: pa.Table, key: PoolKey) -> Condition | None:
    """Returns the condition for the keys in the table's key columns; None if it has no key.

    Other columns are ignored.  Raises InvalidInput as `check_keys` does, and for too many keys.
    """
    check_keys(keys, key)
    return of_values(keys, key.names)


def of_values(values: pa.Table, names: Sequence[str]) -> Condition | None:
    """Returns the condition that the fields `names` have the values of some row of the table; None without rows.

    Raises InvalidInput for too many rows.
    """
    columns = [[encode_value(value) for value in from_array(values.column(name))] for name in names]
    named: _Keys = frozenset(zip(*columns, strict=True))
    if not named:
        return None
    if len(named) > MAX_KEYS:
        raise too_many_keys()
    condition, comparisons = _alternatives(tuple(names), named)
    if len(names) > 1 and comparisons > MAX_COMPARISONS:
        raise InvalidInput(
            f"{counted(len(named), 'key')} of {len(names)} fields need {comparisons:,} comparisons, and at "
            f"most {MAX_COMPARISONS} can be made; {_ADVICE}"
        )
    return condition


def check_keys(keys: pa.Table, key: PoolKey) -> None:
    """Raises InvalidInput if a key field is missing or occurs twice, or if the first key field is null in a
    record."""
    if missing := [name for name in key.names if name not in keys.schema.names]:
        raise InvalidInput(
            f"the keys have no column {missing[0]!r}; there are: {', '.join(keys.schema.names) or 'none'}. Each "
            f"key needs all fields of the pool's key ({key})"
        )
    if twice := [name for name in key.names if keys.schema.names.count(name) > 1]:
        raise InvalidInput(f"the keys have the column {twice[0]!r} more than once; name each field once")
    if nulls := keys.column(key.names[0]).null_count:
        raise InvalidInput(
            f"{counted(nulls, 'key')} without {key.names[0]!r} (null): no record of the pool has such a key; leave "
            "them out"
        )


def too_many_keys() -> InvalidInput:
    """Returns the error for more than `MAX_KEYS` keys."""
    return InvalidInput(f"more than {MAX_KEYS:,} keys; {_ADVICE}")


def _alternatives(names: tuple[str, ...], keys: _Keys) -> tuple[Condition, int]:
    """Returns the condition for keys of these fields, and how many comparisons it makes."""
    if len(names) == 1:
        return _among(names[0], {value for (value,) in keys})
    below: dict[bytes, set[tuple[bytes, ...]]] = defaultdict(set)
    for first, *rest in keys:
        below[first].add(tuple(rest))
    firsts: dict[_Keys, set[bytes]] = defaultdict(set)
    for first, rests in below.items():
        firsts[frozenset(rests)].add(first)
    conditions, total = [], 0
    for shared, values in sorted(firsts.items(), key=lambda item: min(item[1])):
        leading, leading_comparisons = _among(names[0], values)
        following, following_comparisons = _alternatives(names[1:], shared)
        conditions.append(And((leading, following)))
        total += leading_comparisons + following_comparisons
    return (conditions[0] if len(conditions) == 1 else Or(tuple(conditions))), total


def _among(name: str, values: set[bytes]) -> tuple[Condition, int]:
    some = tuple(sorted(values - {NULL_VALUE}))
    parts: list[Condition] = [IsNull((name,))] if NULL_VALUE in values else []
    if some:
        parts.append(In((name,), some) if len(some) > 1 else Compare((name,), "=", some[0]))
    return (parts[0] if len(parts) == 1 else Or(tuple(parts))), len(parts)
