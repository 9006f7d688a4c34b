"""Kills processes of several roles at random, and starts them anew; for the other modules here."""

from __future__ import annotations

import itertools
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

LONGEST = 5
"""How many times `seconds` a run may last: a process that is killed before it has done anything tests
nothing."""


def kill_at_random(
    module: str,
    roles: Sequence[str],
    words: Callable[[str, int], Sequence[str]],
    *,
    seconds: float,
    moment: float,
    is_enough: Callable[[], bool] = lambda: True,
) -> int:
    """Runs `python -m MODULE --role ROLE WORD...` for each role. Kills one process after another, and starts
    another one in its place.

    `words(role, number)` are the arguments of the process with this number; `moment` is the average number of
    seconds between kills. On a slow machine it goes on until `is_enough` is true, for at most `LONGEST` times
    `seconds`, and kills more and more rarely. Returns the number of kills; at the end no process is running.
    Raises AssertionError if a process ended by itself.
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
