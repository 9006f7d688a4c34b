"""Combines records with equal keys by the pool's kind: one function for tables, one for streams."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import pyarrow as pa

from lake_core.keys import PoolKey
from lake_core.schemas.rule import Rule
from log_lake.columns.arrays import Mask
from log_lake.combine.aggregate import aggregate
from log_lake.combine.groups import ends_key, whole_keys
from log_lake.combine.newest import newest


def combine(table: pa.Table, key: PoolKey, rule: Rule) -> pa.Table:
    """Returns the combined records of a table that is sorted by key and age, and has all records of each of its
    keys."""
    return table if rule.keeps_all else _combined(table, ends_key(table, key), key=key, rule=rule)


def combine_stream(tables: Iterable[pa.Table], key: PoolKey, rule: Rule) -> Iterator[pa.Table]:
    """Yields the combined records of a stream of tables that is sorted by key and age."""
    if rule.keeps_all:
        yield from tables
    else:
        yield from whole_keys(tables, key, partial(_combined, key=key, rule=rule))


def _combined(table: pa.Table, ends: Mask, *, key: PoolKey, rule: Rule) -> pa.Table:
    return newest(table, ends) if rule.kind == "upsert" else aggregate(table, ends, key=key, rule=rule)
