"""Counts the records of a revision that readers see, or that a delete would hide, from its state alone.

Objects also hold records that deletes or filters hide, and older versions of records.  References that a delete
hides completely do not count.  The number is exact if nothing else may hide or combine records, otherwise an
upper bound.  Pure; called by `lake ls`, `lake show`, and by deletes, which record their count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lake_core.history import Reference
from lake_core.history.tombstone import Tombstone
from lake_core.schemas.hidden import DELETED
from log_lake.reading.plan import overlapping
from log_lake.reading.revision import Revision


@dataclass(frozen=True)
class LiveCount:
    """How many records readers see.  `records` is that number, or an upper bound unless `is_exact`.  `stored`: how
    many records the objects hold."""

    records: int
    is_exact: bool
    stored: int

    @property
    def text(self) -> str:
        """The number of records in words."""
        return f"{self.records:,}" if self.is_exact else f"at most {self.records:,}"


def live_count(revision: Revision) -> LiveCount:
    """Returns the number of records that readers of the revision see.  Raises Corrupt, Unavailable (checkpoints
    are read)."""
    return live_count_of(revision, revision.references)


def hidden_count(revision: Revision, delete: Tombstone) -> LiveCount:
    """Returns the number of visible records that a new delete would hide; exact only in append pools.

    Raises Corrupt, Unavailable (checkpoints are read).
    """
    references = revision.may_hide(delete)
    live = live_count_of(revision, references)
    whole = all(delete.covers_all(r, revision.state.schema) for r in references)
    return replace(live, is_exact=live.is_exact and revision.rule.keeps_all and whole)


def live_count_of(revision: Revision, references: Sequence[Reference]) -> LiveCount:
    """Returns the number of visible records in these references.  For a pool that combines keys, pass all its
    references."""
    deletes = [*revision.tombstones, *revision.filters]
    visible = [r for r in references if not any(t.covers_all(r, revision.state.schema) for t in deletes)]
    names = {(r.object, r.low) for r in visible}
    hiding = any((r.object, r.low) in names for t in deletes for r in revision.may_hide(t))
    combined = not revision.rule.keeps_all and (
        overlapping(visible) > 0 or (revision.rule.kind == "upsert" and DELETED in revision.schema.names)
    )
    return LiveCount(
        sum(r.records for r in visible), not (hiding or combined), sum(r.records for r in references)
    )


def live_counts(revision: Revision) -> dict[str, LiveCount]:
    """Returns for each branch of the revision's state the number of records that its readers see.  Raises what
    `live_count` raises."""
    return {
        name: live_count(replace(revision, branch=name, sub_pool=""))
        for name in sorted(revision.state.branches)
    }
