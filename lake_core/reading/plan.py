"""Which references a scan must open, and what shape its records have: pure.

References are clipped to the range asked for.  The united schema is that of all schemas of the (sub-)pool in
the snapshot, not only of the references left, so that a narrow scan has the same columns as a wide one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from lake_core.combine import APPEND, Rule
from lake_core.combine.hidden import DELETED
from lake_core.conditions import check, key_range_of, may_hold
from lake_core.errors import InvalidInput
from lake_core.history import PoolState, Reference
from lake_core.history.tombstone import Tombstone
from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.ranges import EVERYTHING
from lake_core.objects.schema import unite_schemas
from lake_core.reading.limits import LIMITS, Limits
from lake_core.records.conditions import Condition


@dataclass(frozen=True)
class ScanPlan:
    """References in order of their low bound; `columns` in the order asked for; `depth` bounds the merge.

    `rule` says what becomes of equal keys.  `tombstones` are those that may cover records of the references,
    `schemas` what is known of the fields of each.  Of the result only what fulfils `where` is wanted.
    """

    references: tuple[Reference, ...]
    key_range: KeyRange
    key: PoolKey
    schema: pa.Schema
    columns: tuple[str, ...]
    depth: int
    limits: Limits = LIMITS
    rule: Rule = APPEND
    tombstones: tuple[Tombstone, ...] = ()
    schemas: Mapping[str, pa.Schema] = field(default_factory=dict)
    where: Condition | None = None

    @property
    def records(self) -> int:
        """Records in the references chosen: an upper bound of what the scan gives."""
        return sum(r.records for r in self.references)


def plan_scan(
    state: PoolState,
    *,
    branch: str,
    key: PoolKey,
    key_range: KeyRange = EVERYTHING,
    sub_pool: str = "",
    columns: list[str] | None = None,
    rule: Rule = APPEND,
    where: str | Condition | None = None,
    more: Sequence[Tombstone] = (),
    limits: Limits = LIMITS,
) -> ScanPlan:
    """`more` tombstones apply than the branch has; `limits` bound the merge.

    Raises InvalidInput for an unknown column, an empty range, or a condition that does not fit the fields.
    """
    if key_range.empty:
        raise InvalidInput("the key range is empty: its end does not come after its beginning")
    held = state.branches[branch]
    snapshot = held.snapshot
    schema = united_schema(state, branch=branch, sub_pool=sub_pool)
    if columns is None:
        columns = [name for name in schema.names if not (name == DELETED and rule.kind == "upsert")]
    known = set(schema.names)
    unknown = [c for c in columns if c not in known]
    if unknown:
        raise InvalidInput(
            f"column {unknown[0]!r} does not exist; there are: {', '.join(schema.names) or 'none'}"
        )
    if len(set(columns)) < len(columns):
        twice = next(name for name in columns if columns.count(name) > 1)
        raise InvalidInput(f"column {twice!r} is named twice; name each column once")
    schemas = {id: state.schema(id) for id in snapshot.schemas(sub_pool)}
    condition = None if where is None else check(where, schema)
    if condition is not None:
        key_range = key_range.intersect(key_range_of(condition, key))
    found = snapshot.find(key_range, sub_pool=sub_pool) if not key_range.empty else []
    if condition is not None and rule.keeps_all:
        found = [r for r in found if may_hold(condition, schemas[r.schema], r.columns, records=r.records)]
    references = tuple(found)
    reaching = [
        t
        for t in (*held.tombstones.values(), *more)
        if t.sub_pool == sub_pool and t.key_range.overlaps(key_range)
    ]
    return ScanPlan(
        references=references,
        key_range=key_range,
        key=key,
        schema=schema,
        columns=tuple(columns),
        depth=overlap_depth(references),
        limits=limits,
        rule=rule,
        tombstones=tuple(sorted(reaching, key=lambda t: t.seq)),
        schemas=schemas,
        where=condition,
    )


def united_schema(state: PoolState, *, branch: str, sub_pool: str) -> pa.Schema:
    """The schema of all records that the branch's (sub-)pool holds, in the order the schemas came."""
    return unite_schemas(state.schema(id) for id in state.branches[branch].snapshot.schemas(sub_pool))


def overlap_depth(references: tuple[Reference, ...]) -> int:
    """The most references that hold one key."""
    edges = sorted(edge for r in references for edge in ((r.low, 1), (r.high, -1)))
    depth = deepest = 0
    for _, step in edges:  # at equal bounds the end (-1) comes first: ranges are half-open
        depth += step
        deepest = max(deepest, depth)
    return deepest


def overlapping(references: tuple[Reference, ...]) -> int:
    """How many references share a key with another."""
    ordered = sorted(references, key=lambda r: r.low)
    shared: set[int] = set()
    reach, reaching = b"", -1  # the furthest end so far, and whose it is
    for i, reference in enumerate(ordered):
        if reaching >= 0 and reference.low < reach:
            shared |= {reaching, i}
        if reference.high > reach:
            reach, reaching = reference.high, i
    return len(shared)
