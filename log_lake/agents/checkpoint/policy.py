"""When a journal wants a checkpoint and what a purge keeps: a pool's settings as one value."""

from __future__ import annotations

from dataclasses import dataclass

from log_lake.settings import Settings


@dataclass(frozen=True)
class CheckpointPolicy:
    """`entries` since the last checkpoint; `age` in seconds, and how many seconds a purge keeps."""

    entries: int
    age: float
    keep_seconds: float


def policy_of(settings: Settings) -> CheckpointPolicy:
    """The policy that the settings `checkpoint.*` and `history.keep` spell."""
    return CheckpointPolicy(
        settings["checkpoint.entries"], settings["checkpoint.age"], settings["history.keep"]
    )
