"""Full: everything that overlaps becomes one run.

For a pool that no longer changes, or once after a bulk load: it rewrites every byte that overlaps another, each
time.
"""

from __future__ import annotations

from log_lake.compaction.planner import Planner


def full(planner: Planner) -> None:
    """Merges all references into one run."""
    planner.settle(planner.references, "all into one run")
