"""The settings `compact.*` of a pool as a policy."""

from __future__ import annotations

from log_lake.compaction.policy import CompactionPolicy
from log_lake.settings import Settings


def policy_of(settings: Settings) -> CompactionPolicy:
    """The policy from a pool's settings `compact.*`."""
    return CompactionPolicy(
        strategy=settings["compact.strategy"],
        target_size=settings["compact.target_size"],
        max_inputs=settings["compact.max_inputs"],
        max_bytes=settings["compact.max_bytes"],
        depth=settings["compact.depth"],
        ratio=settings["compact.ratio"],
        window=settings["compact.window"],
    )
