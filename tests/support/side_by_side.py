"""Runs the whole suite as several pytest processes, one more at a time than the machine has cores: `make test`.

    python -m tests.support.side_by_side [FOLDER] [--seconds N] [--at-once N]

A process has a group of folders or files.  Groups begin in the order of `GROUPS`, the longest first; when one
ends, the next begins.  Tests on Airflow wait for it most of their time, so one process more than there are
cores keeps the cores at work (decision 210).

With LAKE_TEST_PART, as in CI, the first line says which slow tests run, and why (`tests.support.rotation`).  A
line is printed when a part ends, as soon as a test fails, and at least each minute.  What a process says at its
end is printed in one piece.  The exit status is that of the first group that failed, and 0 if every group ended
with 0.  A group that was never begun, or whose output could not be read to its end, counts as failed. If the
program is interrupted or terminated, or after `--seconds`, it ends all groups.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from tests.support.rotation import LAST, Choice, chosen

OWN_AIRFLOW = (
    "airflow/test_approval.py",
    "airflow/test_dags.py",
    "airflow/test_given_by_a_run.py",
    "airflow/test_groups.py",
    "airflow/test_groups_in_dags.py",
    "airflow/test_lineage.py",
    "airflow/test_operators.py",
    "airflow/test_provider.py",
    "airflow/test_stale_outcome.py",
    "airflow/test_transaction_group.py",
    "airflow/test_trigger.py",
    "airflow/view",
)
"""Tests that need no scheduler of Airflow, so they need not wait for those that share one."""

HALF_OF_UNIT = ("unit/agents", "unit/history", "unit/journal", "unit/lake", "unit/objects", "unit/rights")
"""About half of the unit tests.  As one process they would run long after the others have ended, on one core."""

GROUPS = (
    ("unit",),
    ("spark",),
    (),
    ("airflow",),
    ("cli", "docs", "formats", "golden"),
    HALF_OF_UNIT,
    ("local", *OWN_AIRFLOW),
)
"""The folders and files of each process. () stands for all tests that are in no other group, so no new folder is
left out."""

OPTIONS = ("-q", "-p", "tests.support.parts", "-o", "console_output_style=classic")
AT_ONCE = re.compile(r"\w[\w/]* +\d+ (?:\w+, \d+ )*\w+ +\d+ s$|failed: |error: |still: ")
"""A pattern of the lines of `tests.support.parts`, which are printed at once; other lines belong to the
summary."""
BEGUN = re.compile(r"\w[\w/]* *$")
"""A pattern of the beginning of a part's line that a failure has interrupted; the whole line follows later."""
LATE = 124
"""The exit status if the time of `--seconds` is over, the same as that of coreutils' `timeout`."""
UNKNOWN = 1
"""The exit status of a group that was not begun, or did not end."""
GRACE = 60.0
"""How many seconds a terminated process has to end its servers."""


def groups(tests: str, choice: Choice | None = None) -> list[list[str]]:
    """The arguments of each process, in the order in which they begin."""
    named = [[f"{tests}/{name}" for name in group if Path(tests, name).exists()] for group in GROUPS]
    runs_last = choice is not None and choice.runs(f"tests/{LAST}/") and Path(tests, LAST).exists()
    containers = [f"{tests}/{LAST}"] if runs_last else []
    everywhere = [path for group in named for path in group] + containers
    asked: list[list[str]] = [containers] if containers else []
    for group, paths in zip(GROUPS, named, strict=True):
        below = [tests] if not group else paths
        others = [path for path in everywhere if path not in below]
        left_out = [path for path in others if any(path.startswith(f"{folder}/") for folder in below)]
        if below:
            asked.append([*below, *(f"--ignore={path}" for path in left_out)])
    return asked


@dataclass(eq=False)
class Runs:
    """The processes that run and those that wait, under one lock."""

    waiting: deque[tuple[int, Sequence[str]]]
    statuses: list[int]
    """The status of each command, in their order; `UNKNOWN` until it has ended."""
    running: list[subprocess.Popen[str]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    printing: threading.Lock = field(default_factory=threading.Lock)

    def work(self) -> None:
        """Runs one command after the other, until none waits."""
        while (begun := self.begin()) is not None:
            number, process = begun
            relay(process, self.printing)
            with self.lock:
                self.running.remove(process)
                self.statuses[number] = process.returncode

    def begin(self) -> tuple[int, subprocess.Popen[str]] | None:
        """Starts the next command that can be begun. Returns its number and its process; None if none waits."""
        with self.lock:
            while self.waiting:
                number, command = self.waiting.popleft()
                try:
                    process = subprocess.Popen(
                        command,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT,
                        text=True,
                        errors="backslashreplace",
                    )
                except OSError as error:
                    print(f"cannot begin {shlex.join(command)}: {error}", file=sys.stderr, flush=True)
                    continue
                self.running.append(process)
                return number, process
        return None

    def end(self) -> None:
        """Starts no other command. Terminates what runs, and kills what takes longer than `GRACE`."""
        with self.lock:
            self.waiting.clear()
            running = [process for process in self.running if process.poll() is None]
        for process in running:
            process.terminate()
        for process in running:
            try:
                process.wait(GRACE)
            except subprocess.TimeoutExpired:
                process.kill()


def relay(process: subprocess.Popen[str], printing: threading.Lock) -> None:
    """Prints what the process says: lines of parts at once, the rest when it has ended."""
    assert process.stdout is not None
    held: list[str] = []
    for line in process.stdout:
        if AT_ONCE.match(line):
            with printing:
                print(line, end="", flush=True)
        elif held or (line.strip() and not BEGUN.match(line)):
            held.append(line)
    process.wait()
    with printing:
        print("".join(held), end="", flush=True)


def run(commands: Sequence[Sequence[str]], *, seconds: float, at_once: int) -> int:
    """Runs the commands. Returns the status of the first in their order that failed; `LATE` after `seconds`.

    A command that was not run to its end counts as failed, with `UNKNOWN`.
    """
    deadline = time.monotonic() + seconds
    runs = Runs(deque(enumerate(commands)), [UNKNOWN] * len(commands))
    workers = [threading.Thread(target=runs.work) for _ in range(min(at_once, len(commands)))]
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(max(deadline - time.monotonic(), 0))
        late = any(worker.is_alive() for worker in workers)
    finally:
        runs.end()
    for worker in workers:
        worker.join(GRACE)
    if late:
        print(f"stopped after {seconds:.0f} s (TEST_SECONDS sets the bound)", file=sys.stderr)
        return LATE
    return next((status for status in runs.statuses if status), 0)


def terminated(signal_number: int, frame: FrameType | None) -> None:
    sys.exit(128 + signal_number)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="side_by_side", allow_abbrev=False)
    parser.add_argument("folder", nargs="?", default="tests")
    parser.add_argument("--seconds", type=float, default=5_400.0)
    parser.add_argument("--at-once", type=int, default=(os.cpu_count() or 1) + 1)
    args = parser.parse_args(words)
    if args.at_once < 1:
        parser.error(f"--at-once={args.at_once}: how many processes run at once is at least 1")
    signal.signal(signal.SIGTERM, terminated)
    try:
        choice = chosen(os.environ)
    except ValueError as error:
        parser.error(str(error))
    if choice is not None:
        print(choice.said, flush=True)
    commands = [[sys.executable, "-m", "pytest", *OPTIONS, *group] for group in groups(args.folder, choice)]
    return run(commands, seconds=args.seconds, at_once=args.at_once)


if __name__ == "__main__":
    sys.exit(main())
