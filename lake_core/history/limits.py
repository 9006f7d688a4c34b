"""Limits of the work on a pool's history. `History` passes them to snapshots, commits and the journal."""

from __future__ import annotations

from dataclasses import dataclass

from lake_core.history.snapshot.snapshot import MIN_CHANGES
from lake_core.journal import JOURNAL_LIMITS, JournalLimits

MOST_INLINED = 16 << 20
"""The most bytes of inlined objects in all branches of a pool together; a load beyond that writes files.  Each
process that opens the pool reads and holds these bytes, and each checkpoint stores them (decision 314)."""


@dataclass(frozen=True)
class HistoryLimits:
    """The limits of snapshots, commits and the journal; the defaults are for pools of a million references and
    dozens of writers."""

    lost_races_before_request: int = 2
    """Races that a writer loses before it posts a request.  Every writer loses one now and then because its state
    is old; a request would cost more than another try (decision 24)."""

    min_changes: int = MIN_CHANGES
    """References that a snapshot changes before it merges the changes into its columns."""

    journal: JournalLimits = JOURNAL_LIMITS


HISTORY_LIMITS = HistoryLimits()
"""The default limits."""
