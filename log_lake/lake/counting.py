"""Counts the records that readers see, or that a delete matches.  It uses the state if that suffices, and
otherwise reads a limited number of records.

Called by deletes and replaces, which record the number in their transaction; by the commands `show` and
`erase`; and by the web view.
"""

from __future__ import annotations

from lake_core.errors import LakeError
from lake_core.keys import KeyRange
from lake_core.keys.ranges import EVERYTHING
from lake_core.records import AddTombstone, RemoveReference, Transaction
from lake_core.records.conditions import Condition
from lake_core.schemas.hidden import user_fields
from log_lake.lake.delete_spec import DeleteSpec
from log_lake.lake.line import Line
from log_lake.lake.view import View
from log_lake.reading.age_off import newer_than_all
from log_lake.reading.live import LiveCount, hidden_count, live_count
from log_lake.reading.revision import Revision

LOOKED_AT = 100_000
"""The most records that a command reads to count records, which takes about a second."""

METADATA = "removed"
"""The metadata in which the writer of a transaction records how many records it removed, unless the user gave
metadata of that name."""


def records_seen(view: View, *, looked_at: int = LOOKED_AT) -> LiveCount:
    """Returns how many records readers of the view see.  The number comes from the state, or for a small pool from
    reading its records."""
    live = live_count(view)
    if live.is_exact or live.stored > looked_at:
        return live
    try:
        tables = view.scan(columns=_narrowest(view))
        return LiveCount(sum(table.num_rows for table in tables), True, live.stored)
    except LakeError:  # what keeps the records from being read keeps nothing else from being shown
        return live


def records_matching(
    view: View,
    *,
    key_range: KeyRange = EVERYTHING,
    where: str | Condition | None = None,
    looked_at: int = LOOKED_AT,
) -> LiveCount:
    """Returns how many of the records that readers see are in the range and fulfil the condition.

    The result's `stored` counts all records of the objects that may have such records, by their statistics.  If
    that is more than `looked_at`, the number is only an upper bound.

    Raises InvalidInput, ObjectVacuumed, ObjectMissing, Corrupt, Unavailable.
    """
    plan = view.plan(key_range=key_range, where=where, columns=_narrowest(view))
    stored = sum(reference.records for reference in plan.references)
    if stored > looked_at:
        return LiveCount(stored, False, stored)
    return LiveCount(sum(table.num_rows for table in view.run(plan)), True, stored)


def records_met(view: View, key_range: KeyRange, where: str | Condition | None) -> int | None:
    """Returns how many records of the view a delete of this range and condition matches; None if counting would
    take long.

    Also returns None if the records cannot be read; the delete that follows will report why.
    """
    try:
        met = records_matching(view, key_range=key_range, where=where)
    except LakeError:
        return None
    return met.records if met.is_exact else None


def _narrowest(view: View) -> list[str]:
    """Returns the one field that a count reads: the first key field, otherwise the first field; none if there are
    no fields."""
    names = user_fields(view.schema).names
    return [name for name in view.key.names if name in names][:1] or names[:1]


def removed_by(branch: Line, revision: Revision, spec: DeleteSpec, *, looks: bool) -> LiveCount | None:
    """Returns how many visible records of a revision a delete will remove; None if the state cannot be read.

    The state gives the exact number if the delete covers whole objects of an append pool.  Otherwise it gives
    an upper bound; with `looks`, the records are counted instead if at most `LOOKED_AT` must be read.
    """
    try:
        delete = newer_than_all("", spec.key_range, spec.condition, sub_pool=spec.sub_pool)
        hidden = hidden_count(revision, delete)
    except LakeError:  # the delete itself says why the state cannot be read
        return None
    if hidden.is_exact or not looks:
        return hidden
    values = (revision.config, revision.version, revision.branch, revision.state, revision.now)
    view = View(*values, revision.sub_pool, revision.limits, store=branch.store, history=branch.history)
    where = None if spec.condition is None else revision.names.shown_condition(spec.condition)
    met = records_met(view, spec.key_range, where)
    return hidden if met is None else LiveCount(met, True, hidden.stored)


def removed_metadata(removed: LiveCount | None) -> dict[str, str]:
    """Returns the metadata that record how many records a transaction removed; empty if the number is not
    known."""
    return {METADATA: str(removed.records)} if removed is not None and removed.is_exact else {}


def removed_records(transaction: Transaction) -> int | None:
    """Returns how many records a transaction removed, as its writer counted; None if it removes none, or recorded
    no number."""
    if not any(isinstance(action, AddTombstone | RemoveReference) for action in transaction.actions):
        return None
    text = transaction.metadata.get(METADATA, "")
    return int(text) if text.isascii() and text.isdigit() else None
