"""Processes of several roles, killed at random and started anew: what the runs beside this have in common."""

from __future__ import annotations

import itertools
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

LONGEST = 5
"""Times `seconds` that a run may last: a process that is killed before it has done anything shows nothing."""


def kill_at_random(
    module: str,
    roles: Sequence[str],
    words: Callable[[str, int], Sequence[str]],
    *,
    seconds: float,
    moment: float,
    is_enough: Callable[[], bool] = lambda: True,
) -> int:
    """Runs `python -m MODULE --role ROLE WORD...` for each role; kills one after another, and starts it anew.

    `words(role, number)` are those of the process started as the so-manieth; `moment` the seconds between kills,
    on average.  On a slow machine it goes on until `is_enough`, for at most `LONGEST` times `seconds`, and kills
    more and more slowly.  Gives the number of kills; none is left running.  Raises AssertionError if a process
    ended by itself.
    """
    chance = random.Random(1)
    running: list[tuple[str, subprocess.Popen[bytes]]] = []
    numbers = itertools.count(1)
    killed = 0

    def start(role: str) -> None:
        command = [sys.executable, "-m", module, "--role", role, *words(role, next(numbers))]
        running.append((role, subprocess.Popen(command)))

    def check(role: str, process: subprocess.Popen[bytes]) -> None:
        assert process.poll() is None, f"a {role} ended by itself: {process.returncode}"

    try:
        for role in roles:
            start(role)
        begun = time.monotonic()
        while (lasted := time.monotonic() - begun) < seconds or (
            lasted < LONGEST * seconds and not is_enough()
        ):
            time.sleep(moment * max(1.0, lasted / seconds) * chance.random() * 2)
            role, process = running.pop(chance.randrange(len(running)))
            check(role, process)
            process.send_signal(signal.SIGKILL)
            process.wait()
            killed += 1
            start(role)
        for role, process in running:
            check(role, process)
    finally:
        for _, process in running:
            process.kill()
            process.wait()
    return killed
