"""Checks what to delete: a key range and perhaps a condition; and whether any record matches."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from lake_core.conditions import top_level
from lake_core.history import History
from lake_core.keys import KeyRange, PoolKey
from lake_core.records import AddTombstone
from lake_core.records.conditions import Condition
from lake_core.schemas import Rule
from lake_core.schemas.schema import unite_schemas
from lake_core.store import Store
from log_lake.presence.absence import planning_again
from log_lake.reading.age_off import newer_than_all
from log_lake.reading.indexed import asked
from log_lake.reading.plan import plan_scan
from log_lake.reading.revision import Revision
from log_lake.reading.scan import scan
from log_lake.texts.keytext import check_range
from log_lake.where import check, parse
from log_lake.where.keyrange import key_range_of

MAX_RECORDS_READ = 65_536
"""How many records to read while checking whether anything matches.  Beyond that, write the tombstone without
knowing; one that covers nothing is harmless."""

MAX_OBJECTS_OPENED = 1_024
"""Opening an object counts as reading this many records, since it takes about as long."""


@dataclass(frozen=True)
class DeleteSpec:
    """What to delete: a key range that is not empty, and a checked condition, which may have narrowed the range.

    `sub_pool`: the sub-pool whose records to delete, "" for the pool itself.
    """

    key_range: KeyRange
    condition: Condition | None
    sub_pool: str = ""

    def tombstone(self, name: str, *, reason: str, replaces: bool = False) -> AddTombstone:
        """Returns the action that deletes the records.  `name` identifies the tombstone; `replaces`: it belongs to
        a replace."""
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
    revision: Revision,
    *,
    key_range: KeyRange,
    where: str | Condition | None,
    narrow: bool,
    brought: pa.Schema | None = None,
) -> DeleteSpec | None:
    """Checks a range and a condition, and returns them; None if no record can fulfil the condition.

    With `narrow` the condition narrows the range.  It may name the fields of the revision, and the fields that
    new records bring (`brought`).  In aggregate pools it may name fields of the key only, since the value of
    any other field is combined from all records of the key.

    `where` names fields as readers see them, and the result has stored names.  Raises InvalidInput for an empty
    range, and for a condition that does not fit the fields.
    """
    check_range(key_range, revision.key)
    if where is None:
        return DeleteSpec(key_range, None, revision.sub_pool)
    schema = revision.schema if brought is None else unite_schemas([revision.schema, brought])
    names = revision.names
    if narrow and not schema.names:  # nothing was ever loaded: there are no fields to check, and no records
        if isinstance(where, str):
            parse(where)
        return None
    condition = check(where, schema, unfit=unfit_fields(revision.rule, revision.key, schema))
    narrowed = key_range.intersect(key_range_of(condition, revision.key, schema)) if narrow else key_range
    stored = names.stored_condition(condition)
    return None if narrowed.empty else DeleteSpec(narrowed, stored, revision.sub_pool)


def unfit_fields(rule: Rule, key: PoolKey, schema: pa.Schema) -> dict[str, str]:
    """Returns the fields that a condition on stored records may not name, each with the reason."""
    if rule.kind != "aggregate":
        return {}
    why = (
        "this field is combined from many records; in an aggregate pool a condition may name key fields only"
    )
    return {name: why for name in schema.names if name not in key.names}


def may_delete(revision: Revision, spec: DeleteSpec, history: History, store: Store) -> bool:
    """Whether the revision may have a record to delete; False only if it certainly has none.

    Statistics decide first; then at most `MAX_RECORDS_READ` records are read.  A record that a filter
    of the pool hides counts, because it would come back if the setting changed.  Raises PlanAgain if another
    process removed an object of the revision, and ObjectMissing, Corrupt, Unavailable.
    """
    with planning_again(history):
        return _may_delete(revision, spec, store)


def _may_delete(revision: Revision, spec: DeleteSpec, store: Store) -> bool:
    key_range, condition = spec.key_range, spec.condition
    candidates = revision.may_hide(newer_than_all("", key_range, condition, sub_pool=spec.sub_pool))
    if not candidates:
        return False
    if condition is not None:
        absent = asked(condition, candidates, revision, store).absent
        if not (candidates := [r for r in candidates if r.object not in absent]):
            return False
    columns = list(top_level(condition)) if condition is not None else revision.key.names[:1]
    shown = {revision.names.of_stored(name) for name in columns}
    plan = plan_scan(
        revision,
        key_range=key_range,
        columns=[name for name in revision.schema.names if name in shown],
        filtered=False,
    )
    # the condition is checked, or an expiry's, which compares a field with values of several classes
    plan = replace(plan, where=condition, limits=replace(plan.limits, max_batch_rows=MAX_RECORDS_READ // 8))
    # append pools need no merge; otherwise the other records of the key decide whether a record is live
    alone = [(r,) for r in candidates] if revision.rule.keeps_all else [plan.references]
    looked = _Looked()
    try:
        for references in alone:
            looked.open(len(references))
            part = replace(plan, references=references)
            if any(scan(part, store, pool_id=revision.config.id, reads=looked.read)):
                return True
    except _LookedEnough:
        return True
    return False


class _LookedEnough(Exception):
    """Raised when a search has read as many records as it may, and none matched."""


@dataclass
class _Looked:
    """Counts how much a search for matching records has read. Raises _LookedEnough beyond the limit, because a
    tombstone costs less."""

    records: int = 0

    def open(self, objects: int) -> None:
        self.records += MAX_OBJECTS_OPENED * objects
        if self.records > MAX_RECORDS_READ:
            raise _LookedEnough

    def read(self, records: int) -> None:
        if self.records >= MAX_RECORDS_READ:
            raise _LookedEnough
        self.records += records
