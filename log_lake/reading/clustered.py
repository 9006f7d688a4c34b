"""Decides by the bucket that an object states (`indexes.cluster`) whether it may have a record for a condition.

It is pure.  A statement holds for the object, whatever the pool's rule is now.  So objects of an earlier rule are
left out too, and objects without a statement never are.  In pools that combine records, a bucket of a key field
counts even where references share keys: all versions of a key have the same value of that field.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache

import pyarrow as pa

from lake_core.conditions.classwise import NULL_VALUE, among
from lake_core.conditions.fields import find_field
from lake_core.keys.encoding import key_class
from lake_core.records.column import Bucket, Column
from lake_core.records.conditions import And, Compare, Condition, In, Or, Path
from lake_core.values.types import is_json
from log_lake.indexes.cluster import stated_bucket
from log_lake.indexes.hashes import number_of


def may_lie_there(
    condition: Condition,
    schema: pa.Schema,
    columns: Sequence[Column],
    *,
    among_fields: Collection[str] | None = None,
) -> bool:
    """Whether a record of an object with this schema and these statistics may fulfil the condition, by its bucket.

    `among_fields`: only a bucket of one of these fields counts; None: any.
    """
    stated = stated_bucket(columns)
    if stated is None:
        return True
    name, bucket = stated
    path = (name, *bucket.path)
    if among_fields is not None and (bucket.path or name not in among_fields):
        return True
    field, rest = find_field(schema, path)
    if field is None or rest or is_json(field):
        return True
    return _may(condition, path, bucket, key_class(field.type))


def _may(condition: Condition, path: Path, bucket: Bucket, kind: str) -> bool:
    """Whether the condition may be true in the bucket.  Recursive: the depth of conditions is limited."""
    match condition:
        case And(of):
            return all(_may(member, path, bucket, kind) for member in (*of, *equalities(of)))
        case Or(of):
            return any(_may(member, path, bucket, kind) for member in of)
        case Compare(op="=") | In() if condition.field == path:
            return bucket.number in _buckets_of(condition, kind, bucket.of)
        case _:
            return True


@lru_cache(maxsize=1 << 10)
def _buckets_of(leaf: Compare | In, kind: str, of: int) -> Collection[int]:
    """Returns the buckets in which the leaf may be true for values of the class `kind`."""
    reduced = among(leaf, kind)
    if isinstance(reduced, bool) or reduced is None:
        return range(of) if reduced else ()
    values = (reduced.value,) if isinstance(reduced, Compare) else reduced.values
    return frozenset(number_of(value) % of for value in values if value != NULL_VALUE)


def equalities(members: Sequence[Condition]) -> Iterator[Compare]:
    """Yields the comparisons `=` that two bounds make together, as DuckDB's filters have them (decision 287)."""
    lows = {(m.field, m.value) for m in members if isinstance(m, Compare) and m.op == ">=" and not m.readings}
    for member in members:
        if isinstance(member, Compare) and member.op == "<=" and (member.field, member.value) in lows:
            yield Compare(member.field, "=", member.value)
