"""What to delete: a range and perhaps a condition, checked against the pool, and whether that is there at all."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow.compute as pc

from lake_core.combine import Rule
from lake_core.conditions import check, holds, key_range_of, parse, top_level
from lake_core.errors import InvalidInput
from lake_core.history import PoolState
from lake_core.history.rebase import still_covered
from lake_core.history.tombstone import newer_than_all
from lake_core.keys import KeyRange, PoolKey
from lake_core.reading.plan import plan_scan, united_schema
from lake_core.reading.scan import scan
from lake_core.records import AddTombstone
from lake_core.records.conditions import Condition
from lake_core.store import Store

MAX_RECORDS_READ = 65_536
"""Records that are read to find out whether there is anything to delete; where more would be needed, it is deleted
unseen, since a tombstone that covers nothing does no harm."""

MAX_OBJECTS_OPENED = 1_024
"""An object that is opened counts as so many records more; it takes about as long."""


@dataclass(frozen=True)
class DeleteSpec:
    """A range that is not empty, and a checked condition; the range is as narrow as the condition makes it.

    `sub`: the sub-pool whose records are meant, "" for the pool itself.
    """

    key_range: KeyRange
    condition: Condition | None
    sub_pool: str = ""

    def tombstone(self, name: str, *, reason: str, replaces: bool = False) -> AddTombstone:
        """The action that says so."""
        return AddTombstone(
            name,
            self.key_range.low,
            self.key_range.high,
            self.condition,
            reason,
            replaces,
            sub_pool=self.sub_pool,
        )


def check_delete(
    state: PoolState,
    *,
    branch: str,
    key: PoolKey,
    rule: Rule,
    key_range: KeyRange,
    where: str | Condition | None,
    narrow: bool,
    sub_pool: str = "",
) -> DeleteSpec | None:
    """The erasure; None where nothing can fulfil the condition.  With `narrow` the condition narrows the range.

    Raises InvalidInput for an empty range, for a condition that does not fit the pool's fields, and in aggregate
    pools for one that names another field than the key's: a value there is what all records of the key make.
    """
    if key_range.empty:
        raise InvalidInput("the key range is empty: its end does not come after its beginning")
    if where is None:
        return DeleteSpec(key_range, None, sub_pool)
    schema = united_schema(state, branch=branch, sub_pool=sub_pool)
    if narrow and not schema.names:  # nothing was ever loaded: there are no fields to check, and no records
        if isinstance(where, str):
            parse(where)
        return None
    unfit = {}
    if rule.kind == "aggregate":
        why = (
            "is combined from many records; in an aggregate pool a condition may name fields of the key only"
        )
        unfit = {name: why for name in schema.names if name not in key.names}
    condition = check(where, schema, unfit=unfit)
    narrowed = key_range.intersect(key_range_of(condition, key)) if narrow else key_range
    return None if narrowed.empty else DeleteSpec(narrowed, condition, sub_pool)


def may_delete(
    state: PoolState, spec: DeleteSpec, store: Store, *, pool: str, branch: str, key: PoolKey, rule: Rule
) -> bool:
    """Whether there may be a visible record to delete; False only where that is sure.

    Statistics decide first; then so many records are read.  Raises ObjectMissing, Corrupt, Unavailable.
    """
    key_range, condition = spec.key_range, spec.condition
    candidates = still_covered(
        state, state.branches[branch], newer_than_all("", key_range, condition, sub_pool=spec.sub_pool)
    )
    if not candidates:
        return False
    columns = list(top_level(condition)) if condition is not None else key.names[:1]
    known = set(united_schema(state, branch=branch, sub_pool=spec.sub_pool).names)
    plan = plan_scan(
        state,
        branch=branch,
        key=key,
        key_range=key_range,
        sub_pool=spec.sub_pool,
        columns=[name for name in columns if name in known],
        rule=rule,
    )
    # what is kept need not be merged to be found; else whether a record is seen depends on all of its key
    alone = [(r,) for r in candidates] if rule.keeps_all else [plan.references]
    looked_at = 0
    for references in alone:
        looked_at += MAX_OBJECTS_OPENED * len(references)
        if looked_at > MAX_RECORDS_READ:
            return True
        part = replace(
            plan, references=references, limits=replace(plan.limits, max_batch_rows=MAX_RECORDS_READ // 8)
        )
        for table in scan(part, store, pool_id=pool):
            if condition is None or pc.any(holds(condition, table)).as_py():
                return True
            looked_at += table.num_rows
            if looked_at >= MAX_RECORDS_READ:
                return True
    return False
