"""Which pools an agent leaves alone for now, and why; pure.

A paused pool (`agents=paused`) is left alone by every agent.  Hours (`upkeep.window`) bind the agents that only
rearrange or remove what is there: compact, checkpoint, tombstones, retention.  Ingest and intervals bring data that
a user waits for, and an erasure has a date by which it must be done; they work at any hour.

Only what begins is bound: work that began within the hours is finished.  Commands and programs ask nothing of this.
Called by `finding`, for the first task of every agent.
"""

from __future__ import annotations

from log_lake.agents.roster import Purpose, names_of
from log_lake.settings import Settings

BOUND_BY_HOURS = names_of(Purpose.UPKEEP)
"""The agents that `upkeep.window` binds."""


def why_put_off(settings: Settings, *, agent: str, now: float) -> str | None:
    """Why the agent leaves a pool of these settings alone at the time `now`; None if it may begin.

    Raises InvalidInput if a setting cannot be read.
    """
    if settings["agents"] == "paused":
        return "agents=paused"
    hours = settings["upkeep.window"] if agent in BOUND_BY_HOURS else None
    if hours is not None and not hours.is_open(now):
        return f"it is outside of upkeep.window ({hours})"
    return None
