"""How many records readers see, or a delete meets: by the state, otherwise by a bounded look.

Called by the commands `show`, `delete`, `drop` and `erase`, and by the web view.
"""

from __future__ import annotations

from lake_core.errors import LakeError
from lake_core.keys import KeyRange
from lake_core.keys.ranges import EVERYTHING
from lake_core.schemas.hidden import user_fields
from log_lake.lake.pool import Pool
from log_lake.lake.view import View
from log_lake.reading.live import LiveCount, live_count
from log_lake.texts.keytext import RangeText

LOOKED_AT = 100_000
"""Records that a command reads to count some of them, at most; a second's work."""


def records_seen(view: View, *, looked_at: int = LOOKED_AT) -> LiveCount:
    """How many records readers see: by the state, otherwise by a look at a small pool."""
    live = live_count(view)
    if live.is_exact or live.stored > looked_at:
        return live
    try:
        tables = view.scan(columns=_narrowest(view))
        return LiveCount(sum(table.num_rows for table in tables), True, live.stored)
    except LakeError:  # what keeps the records from being read keeps nothing else from being shown
        return live


def records_matching(
    view: View, *, key_range: KeyRange = EVERYTHING, where: str | None = None, looked_at: int = LOOKED_AT
) -> LiveCount:
    """How many records of a range that fulfil a condition readers see.

    `stored` are the records of the objects that may hold such records, by their statistics; if these are more than
    `looked_at`, the number is that bound.

    Raises InvalidInput, ObjectVacuumed, ObjectMissing, Corrupt, Unavailable.
    """
    plan = view.plan(key_range=key_range, where=where, columns=_narrowest(view))
    stored = sum(reference.records for reference in plan.references)
    if stored > looked_at:
        return LiveCount(stored, False, stored)
    return LiveCount(sum(table.num_rows for table in view.run(plan)), True, stored)


def records_met(view: View, key_range: KeyRange | RangeText, where: str | None) -> int | None:
    """How many records of the view a delete of this range and condition meets; None if a look would be long.

    None also if they cannot be read: then the delete itself says why.
    """
    try:
        span = key_range if isinstance(key_range, KeyRange) else key_range.read(view.key, view.key_classes)
        met = records_matching(view, key_range=span, where=where)
    except LakeError:
        return None
    return met.records if met.is_exact else None


def _narrowest(view: View) -> list[str]:
    """One field that the records have: of the key, unless that is a path into records, or there is no key."""
    names = user_fields(view.schema).names
    return [name for name in view.key.names if name in names][:1] or names[:1]


def found_by(pool: Pool, version: int, *, branch: str) -> View | None:
    """The branch before the transaction of `version`; None if that transaction began the branch, or if the
    branch cannot be read."""
    try:
        return pool.at_version(version - 1, branch=branch) if version > 1 else None
    except LakeError:
        return None
