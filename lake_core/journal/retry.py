"""How often and how patiently a writer tries.  The pauses are jittered, to part the racers."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Retry:
    """`races` bounds the numbers raced for, `repeats` the requests for one number; pauses in seconds."""

    races: int = 1000
    repeats: int = 8
    first_pause: float = 0.002
    longest_pause: float = 0.25
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = random.random

    def pause(self, attempt: int) -> None:
        """Wait before attempt `attempt` + 1."""
        self.sleep(min(self.longest_pause, self.first_pause * 2 ** min(attempt, 10)) * self.jitter())
