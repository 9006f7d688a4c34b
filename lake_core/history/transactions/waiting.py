"""How long a writer waits for the decision of a transaction over pools, and how often it checks."""

from __future__ import annotations

from dataclasses import dataclass, field

from lake_core.journal import Retry

MOST_WAITING = 600.0
"""Seconds for which a writer waits for decisions, in one commit. A living owner decides within a few requests, and
a dead one is aborted after its lease of 30 s. An owner that itself waits for other transactions takes longer."""

ASK_EVERY = 5.0
"""Seconds between two checks of the owner's lease; each is a put and a listing."""


@dataclass
class DecisionWait:
    """How long one commit has waited for a decision; times are those of `retry.clock`, in seconds."""

    retry: Retry
    attempt: int = 0
    begun: float = field(init=False)
    asked: float = field(init=False)

    def __post_init__(self) -> None:
        self.begun = self.asked = self.retry.clock()

    def asks(self) -> bool:
        """Whether it is time to check if the transaction's owner is alive.  The first check comes after some
        seconds, because nearly all owners are."""
        now = self.retry.clock()
        if now - self.asked < ASK_EVERY:
            return False
        self.asked = now
        return True

    def is_over(self) -> bool:
        """Whether the commit has waited too long."""
        return self.retry.clock() - self.begun > MOST_WAITING

    def pause(self) -> None:
        """Sleeps a little, longer each time."""
        self.retry.pause(self.attempt)
        self.attempt += 1
