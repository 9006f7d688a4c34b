"""What to delete: a range and perhaps a condition, checked against the pool, and whether that is there at all."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow.compute as pc

from lake_core.combine import Rule
from lake_core.commits import PoolState
from lake_core.commits.landing import still_covered
from lake_core.commits.tombstone import newer_than_all
from lake_core.conditions import check, holds, key_range, parse, top_level
from lake_core.errors import InvalidInput
from lake_core.keys import KeyRange, PoolKey
from lake_core.records import AddTombstone
from lake_core.records.conditions import Condition
from lake_core.scan.plan import plan_scan, united_schema
from lake_core.scan.scan import scan
from lake_core.store import Store

LOOKED_AT = 65_536
"""Records that are read to find out whether there is anything to delete; where more would be needed, it is deleted
unseen, since a tombstone that covers nothing does no harm."""

OPENED = 1_024
"""An object that is opened counts as so many records more; it takes about as long."""


@dataclass(frozen=True)
class Erasure:
    """A range that is not empty, and a checked condition; the range is as narrow as the condition makes it.

    `sub`: the sub-pool whose records are meant, "" for the pool itself.
    """

    span: KeyRange
    condition: Condition | None
    sub: str = ""

    def tombstone(self, name: str, *, reason: str, replaces: bool = False) -> AddTombstone:
        """The action that says so."""
        return AddTombstone(
            name, self.span.low, self.span.high, self.condition, reason, replaces, sub=self.sub
        )


def check_erasure(
    state: PoolState,
    *,
    branch: str,
    key: PoolKey,
    rule: Rule,
    span: KeyRange,
    where: str | Condition | None,
    narrow: bool,
    sub: str = "",
) -> Erasure | None:
    """The erasure; None where nothing can fulfil the condition.  With `narrow` the condition narrows the range.

    Raises InvalidInput for an empty range, for a condition that does not fit the pool's fields, and in aggregate
    pools for one that names another field than the key's: a value there is what all records of the key make.
    """
    if span.empty:
        raise InvalidInput("the key range is empty: its end does not come after its beginning")
    if where is None:
        return Erasure(span, None, sub)
    schema = united_schema(state, branch=branch, sub=sub)
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
    narrowed = span.intersect(key_range(condition, key)) if narrow else span
    return None if narrowed.empty else Erasure(narrowed, condition, sub)


def finds(
    state: PoolState, erasure: Erasure, store: Store, *, pool: str, branch: str, key: PoolKey, rule: Rule
) -> bool:
    """Whether there may be a visible record to delete; False only where that is sure.

    Statistics decide first; then so many records are read.  Raises ObjectMissing, Corrupt, Unavailable.
    """
    span, condition = erasure.span, erasure.condition
    candidates = still_covered(
        state, state.branches[branch], newer_than_all("", span, condition, sub=erasure.sub)
    )
    if not candidates:
        return False
    columns = list(top_level(condition)) if condition is not None else key.names[:1]
    known = set(united_schema(state, branch=branch, sub=erasure.sub).names)
    plan = plan_scan(
        state,
        branch=branch,
        key=key,
        span=span,
        sub=erasure.sub,
        columns=[name for name in columns if name in known],
        rule=rule,
    )
    # what is kept need not be merged to be found; else whether a record is seen depends on all of its key
    alone = [(r,) for r in candidates] if rule.keeps_all else [plan.references]
    looked_at = 0
    for references in alone:
        looked_at += OPENED * len(references)
        if looked_at > LOOKED_AT:
            return True
        part = replace(
            plan, references=references, limits=replace(plan.limits, max_batch_rows=LOOKED_AT // 8)
        )
        for table in scan(part, store, pool=pool):
            if condition is None or pc.any(holds(condition, table)).as_py():
                return True
            looked_at += table.num_rows
            if looked_at >= LOOKED_AT:
                return True
    return False
