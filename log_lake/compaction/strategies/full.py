"""Full: all that overlaps becomes one run.

For a pool that rests, or once after a bulk load: every byte that overlaps another is rewritten each time.
"""

from __future__ import annotations

from log_lake.compaction.planner import Planner


def full(planner: Planner) -> None:
    """Bring all references into one run."""
    planner.settle(planner.references, "all into one run")
