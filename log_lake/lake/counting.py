"""How many records readers see, or a delete meets: by the state, otherwise by a bounded look.

Called by the commands `show`, `delete`, `drop` and `erase`.
"""

from __future__ import annotations

from lake_core.errors import LakeError
from lake_core.keys import KeyRange
from log_lake.lake.pool import Pool
from log_lake.lake.view import View
from log_lake.reading.live import LiveCount, live_count

LOOKED_AT = 100_000
"""Records that a command reads to count some of them, at most; a second's work."""


def records_seen(view: View) -> LiveCount:
    """How many records readers see: by the state, otherwise by a look at a small pool."""
    live = live_count(view)
    if live.is_exact or live.stored > LOOKED_AT:
        return live
    try:
        tables = view.run(view.plan(columns=list(view.key.names[:1]) or view.schema.names[:1]))
        return LiveCount(sum(table.num_rows for table in tables), True, live.stored)
    except LakeError:  # what keeps the records from being read keeps nothing else from being shown
        return live


def records_met(view: View, key_range: KeyRange, where: str | None) -> int | None:
    """How many records of the view a delete of this range and condition meets; None if a look would be long.

    None also if they cannot be read: then the delete itself says why.
    """
    try:
        plan = view.plan(
            key_range=key_range, where=where, columns=list(view.key.names[:1]) or view.schema.names[:1]
        )
        if sum(reference.records for reference in plan.references) > LOOKED_AT:
            return None
        return sum(table.num_rows for table in view.run(plan))
    except LakeError:
        return None


def found_by(pool: Pool, version: int, *, branch: str) -> View | None:
    """The branch as the transaction of `version` found it; None if it began the branch, or cannot be read."""
    try:
        return pool.at_version(version - 1, branch=branch) if version > 1 else None
    except LakeError:
        return None
