"""How often and how patiently a writer tries.  The pauses are jittered, to part the racers."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

MAX_POLLING_WRITERS = 4
"""How many of those who wait ask the store as often as it answers; those behind them less often."""


@dataclass(frozen=True)
class Retry:
    """`races` bounds the numbers raced for, `repeats` the requests for one number; pauses and clock in seconds."""

    races: int = 1000
    repeats: int = 8
    first_pause: float = 0.002
    longest_pause: float = 0.25
    longest_rest: float = 2.0
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    jitter: Callable[[], float] = random.random

    def pause(self, attempt: int) -> None:
        """Wait before attempt `attempt` + 1."""
        self.sleep(min(self.longest_pause, self.first_pause * 2 ** min(attempt, 10)) * self.jitter())

    def rest(self, answer: float, *, before: int) -> None:
        """Wait for `before` others to do what takes a few requests each, of `answer` seconds.

        The farther back, the longer: a crowd that asks all the time is what makes a store slow.
        """
        pause = answer * max(1.0, before / MAX_POLLING_WRITERS)
        self.sleep(min(self.longest_rest, max(self.first_pause, pause)) * (0.5 + self.jitter()))
