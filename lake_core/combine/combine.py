"""Records of equal keys become what the pool's kind says: one entrance for tables, one for streams."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from lake_core.combine.aggregate import aggregate
from lake_core.combine.groups import whole_keys
from lake_core.combine.newest import newest
from lake_core.combine.rule import Rule
from lake_core.keys import PoolKey


def combine(table: pa.Table, key: PoolKey, rule: Rule) -> pa.Table:
    """A table sorted by key and age, in which every key is whole; raises InvalidInput (sums that do not fit)."""
    match rule.kind:
        case "upsert":
            return newest(table, key)
        case "aggregate":
            return aggregate(table, key, rule)
    return table


def combine_stream(tables: Iterable[pa.Table], key: PoolKey, rule: Rule) -> Iterator[pa.Table]:
    """A stream of tables sorted by key and age."""
    if rule.keeps_all:
        yield from tables
    else:
        yield from whole_keys(tables, key, lambda table: combine(table, key, rule))
