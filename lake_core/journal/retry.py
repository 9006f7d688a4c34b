"""How often a writer tries, and how long it pauses.  Pauses are jittered, so that racing writers spread out."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

MAX_POLLING_WRITERS = 4
"""How many waiting writers may poll once per round trip; those behind them poll less often (decision 24)."""


FRESH = 30.0
"""Seconds for which a writer uses the state in memory as the newest; after that it reads new entries first. While
it wrote a large load, other writers may have taken the next version, and a purge may have deleted it.  An entry
that it then wrote under this version would not be in the history.  If the recent ids did not reach back that
far, no reader could distinguish it from an entry that was committed and purged.  So the bound is far below the
time in which a journal grows by as many entries and is purged (decision 286)."""

CONTENDED_FRESH = 0.25
"""The same for a writer that found entries of others when it last read or wrote: a lost race costs it five
requests, reading new entries costs one."""


@dataclass(frozen=True)
class Retry:
    """How often and how long a writer tries: `races` versions, and `repeats` requests for one version.  Pauses and
    the clock are in seconds."""

    races: int = 1000
    repeats: int = 8
    first_pause: float = 0.002
    longest_pause: float = 0.25
    longest_rest: float = 2.0
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    jitter: Callable[[], float] = random.random

    def pause(self, attempt: int) -> None:
        """Sleeps after attempt number `attempt`, from 0; twice as long each time, up to `longest_pause`."""
        self.sleep(min(self.longest_pause, self.first_pause * 2 ** min(attempt, 10)) * self.jitter())

    def rest(self, answer: float, *, before: int) -> None:
        """Sleeps while the `before` writers ahead commit; each needs a few requests of about `answer` seconds.
        Writers farther back sleep longer, because polling by many writers is what slows the store (decision 24)."""
        pause = answer * max(1.0, before / MAX_POLLING_WRITERS)
        self.sleep(min(self.longest_rest, max(self.first_pause, pause)) * (0.5 + self.jitter()))
