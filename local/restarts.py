"""How often a component that ends by itself is started again; pure."""

from __future__ import annotations

from collections.abc import Sequence

MOST = 5
"""Restarts of one component within `WINDOW`.  SQLite that answers "database is locked" on a busy machine ends a
scheduler once in a while; what ends it each time does so within seconds, and is not cured by a restart."""
WINDOW = 3_600.0
"""Seconds."""
PAUSES = (1.0, 5.0, 15.0, 30.0, 60.0)
"""Seconds before each restart within the window: a machine that is too busy needs time, not more processes."""


def pause_before(ends: Sequence[float], *, now: float) -> float | None:
    """Seconds to wait before a component that ended at these times, the last one now, is started again.

    None if it ended too often: then it is not started again.
    """
    recent = sum(now - end < WINDOW for end in ends)
    return None if recent > MOST else PAUSES[max(recent, 1) - 1]
