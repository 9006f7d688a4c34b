"""Decides whether records can be restored, or must not be, because a compaction has combined older records with
newer ones; pure.

In an append pool each record keeps its own sequence, so every record returns to its place.  In other pools a
compaction makes one record of all records of a key, with the sequence of the newest:

- Aggregate: a restored record that lies in age between the combined ones would count as older than all of them.
- Upsert: the newest record is still the newest.  But a compaction drops a delete marker if no older record is
  left under it; it would then not hide older records that are restored.
"""

from __future__ import annotations

from collections.abc import Sequence

from lake_core.history.snapshot.reference import Reference
from lake_core.history.snapshot.snapshot import Identity
from lake_core.history.state import PoolState
from lake_core.keys import KeyRange
from lake_core.records import AddObject, PutReference
from lake_core.schemas import Rule
from lake_core.schemas.hidden import DELETED
from log_lake.reverts.change import Change, last_removals


def combined_past(
    change: Change,
    later: Sequence[Change],
    newest: PoolState,
    rule: Rule,
    *,
    key_range: KeyRange,
    first: int,
    last: int,
) -> Change | None:
    """Returns the newest change that must be reverted before records with these sequences can be restored; None if
    there is none."""
    if rule.kind == "aggregate":
        return _combined(change, later, newest, key_range, first, last)
    return _dropped(change, later, newest, key_range, first) if rule.kind == "upsert" else None


def _combined(
    change: Change, later: Sequence[Change], newest: PoolState, key_range: KeyRange, first: int, last: int
) -> Change | None:
    """Returns the change that brought a reference in which older and newer records than `first` to `last` were
    combined; None if there is none.

    A reference does not say which older records were combined into it; the inputs of the compactions do.
    """
    sources: dict[Identity, dict[Identity, Reference]] = {}
    for one in later:
        inputs: dict[Identity, Reference] = {}
        for reference in one.removed:
            name = reference.object, reference.low
            inputs |= sources.get(name, {name: reference})
        for output in one.outputs:
            name = output.object, output.low
            if name not in sources and not change.before.snapshot.holds(*name):
                sources[name] = inputs
    going = {(a.object, a.low) for a in change.transaction.actions if isinstance(a, AddObject | PutReference)}
    for present in newest.branches[change.transaction.branch].snapshot.overlapping(key_range):
        name = present.object, present.low
        near = [r for r in sources.get(name, {}).values() if r.key_range.overlaps(key_range)]
        is_past = any(r.first_seq <= last for r in near) and any(r.seq >= first for r in near)
        if name not in going and len(near) > 1 and is_past:
            return _bringer(later, name)
    return None


def _bringer(later: Sequence[Change], name: Identity) -> Change | None:
    brought = (one for one in reversed(later) if name in {(o.object, o.low) for o in one.outputs})
    return next(brought, None)


def _dropped(
    change: Change, later: Sequence[Change], newest: PoolState, key_range: KeyRange, first: int
) -> Change | None:
    """Returns the change by which delete markers that are newer than sequence `first` may have been dropped; None
    if there is none."""
    for one, gone in last_removals(later, newest.branches[change.transaction.branch].snapshot):
        may_hold = [
            r
            for r in gone
            if r.seq > first and r.key_range.overlaps(key_range) and DELETED in newest.schema(r.schema).names
        ]
        if may_hold and not is_undo(one) and not _kept_markers(one):
            return one
    return None


def is_undo(change: Change) -> bool:
    """Whether the change restored the inputs of a compaction, with the records that the compaction had dropped.

    This shows in the version up to which deletes were applied: a compaction's output has a later one than its
    inputs.
    """
    outputs = [o.applied for o in change.outputs if isinstance(o, PutReference)]
    return bool(outputs) and max(outputs) < max((r.applied for r in change.removed), default=0)


def _kept_markers(change: Change) -> bool:
    """Whether a compaction certainly kept its delete markers.  It keeps them if references that it did not merge
    may have older records, which the markers hide."""
    removed: list[Reference] = change.removed
    if any(isinstance(output, PutReference) for output in change.outputs):
        return False
    if any(change.before.is_unmerged(r) for r in removed):
        return True
    names, newest = {(r.object, r.low) for r in removed}, max(r.seq for r in removed)
    return any(
        other.first_seq <= newest and (other.object, other.low) not in names
        for one in removed
        for other in change.before.snapshot.overlapping(one.key_range, sub_pool=one.sub_pool)
    )
