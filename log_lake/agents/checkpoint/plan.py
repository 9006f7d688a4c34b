"""Decides when a journal needs a checkpoint, and which entries a purge keeps; pure.

A checkpoint is due after `entries` new entries, or when the oldest entry after the last checkpoint is `age`
seconds old.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from lake_core.phrases import counted, human_duration
from log_lake.settings import Settings
from log_lake.settings.setting_types import DURATION, count
from log_lake.settings.settings import Setting, keeps_less

SETTINGS = {
    "checkpoint.entries": Setting(count(1), "500", "write a checkpoint after this many transactions"),
    "checkpoint.age": Setting(
        DURATION, "1d", "also write a checkpoint when the oldest transaction after the last one is this old"
    ),
    "history.keep": Setting(
        DURATION,
        "30d",
        "keep this much history: purge transactions that are older",
        keeps_less("history.keep"),
    ),
}


@dataclass(frozen=True)
class CheckpointPolicy:
    """When a checkpoint is due (after `entries` new entries, or after `age` seconds), and how many seconds of
    history a purge keeps."""

    entries: int
    age: float
    keep_seconds: float


def policy_of(settings: Settings) -> CheckpointPolicy:
    """Returns the policy that the settings `checkpoint.*` and `history.keep` describe."""
    return CheckpointPolicy(
        settings["checkpoint.entries"], settings["checkpoint.age"], settings["history.keep"]
    )


@dataclass(frozen=True)
class JournalTail:
    """The entries of a journal after its last checkpoint; `is_full`: there are as many as the policy allows.

    `first_time` is when the first of them was written, in seconds since 1970; None if there are no such
    entries.
    """

    first_time: float | None
    is_full: bool


def why_due(tail: JournalTail, policy: CheckpointPolicy, *, now: float) -> str | None:
    """Returns why a checkpoint should be written now; None if it should not."""
    if tail.is_full:
        return f"{counted(policy.entries, 'entry', 'entries')} or more since the last checkpoint"
    if tail.first_time is not None and now - tail.first_time >= policy.age:
        return f"the oldest entry since the last checkpoint is {human_duration(now - tail.first_time)} old"
    return None


def due_at(tail: JournalTail, policy: CheckpointPolicy) -> float:
    """Returns when the first entry after the last checkpoint will be as old as the policy allows, in seconds since
    1970; infinity if there are no such entries."""
    return math.inf if tail.first_time is None else tail.first_time + policy.age
