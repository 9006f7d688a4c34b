"""Runs the whole suite as two pytest processes at once, one for each core of a small machine: `make test`.

    python -m tests.support.side_by_side [FOLDER] [--seconds N]

The one takes the folders that need Airflow and Spark; the other takes all the rest, so no new folder is left out.
Airflow comes before Spark: its tests look for processes that were left behind, and Spark keeps one until it ends.

A line is printed when a part ends, as soon as a test fails, and at least each minute.  What a process says at its
end is printed in one piece.  The exit status is that of the first process that failed, and 0 if none did.
Interrupted, terminated, or after `--seconds`, it ends both.
"""

from __future__ import annotations

import argparse
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

FIRST = ("airflow", "local", "spark")
"""Folders of the first process, in this order; both processes take about as long."""

OPTIONS = ("-q", "-p", "tests.support.parts", "-o", "console_output_style=classic")
AT_ONCE = re.compile(r"\w[\w/]* +\d+ (?:\w+, \d+ )*\w+ +\d+ s$|failed: |error: |still: ")
"""Lines of `tests.support.parts`; all others are the summary."""
BEGUN = re.compile(r"\w[\w/]* *$")
"""The begin of a part's line, which a failure has cut off; the whole line follows."""
LATE = 124
"""The exit status after `--seconds`, as that of coreutils' `timeout`."""
GRACE = 60.0
"""Seconds in which a process that was terminated ends its servers."""


def halves(tests: str) -> list[list[str]]:
    """The arguments of the two processes."""
    first = [f"{tests}/{name}" for name in FIRST if Path(tests, name).is_dir()]
    return [first, [tests, *(f"--ignore={folder}" for folder in first)]]


def relay(process: subprocess.Popen[str], printing: threading.Lock) -> None:
    """Print what the process says: lines of parts at once, the rest when it has ended."""
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


def end(processes: Sequence[subprocess.Popen[str]]) -> None:
    """Terminate what still runs; kill what takes longer than `GRACE` to end its servers."""
    running = [process for process in processes if process.poll() is None]
    for process in running:
        process.terminate()
    for process in running:
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()


def run(commands: Sequence[Sequence[str]], *, seconds: float) -> int:
    """Run the commands at once; the status of the first that failed, in their order, `LATE` after `seconds`."""
    printing = threading.Lock()
    deadline = time.monotonic() + seconds
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for command in commands
    ]
    relays = [threading.Thread(target=relay, args=(process, printing)) for process in processes]
    try:
        for thread in relays:
            thread.start()
        for thread in relays:
            thread.join(max(deadline - time.monotonic(), 0))
        late = any(thread.is_alive() for thread in relays)
    finally:
        end(processes)
    for thread in relays:
        thread.join(GRACE)
    if late:
        print(f"stopped after {seconds:.0f} s (TEST_SECONDS sets the bound)", file=sys.stderr)
        return LATE
    return next((process.returncode for process in processes if process.returncode), 0)


def terminated(signal_number: int, frame: FrameType | None) -> None:
    sys.exit(128 + signal_number)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="side_by_side", allow_abbrev=False)
    parser.add_argument("folder", nargs="?", default="tests")
    parser.add_argument("--seconds", type=float, default=5_400.0)
    args = parser.parse_args(words)
    signal.signal(signal.SIGTERM, terminated)
    commands = [[sys.executable, "-m", "pytest", *OPTIONS, *half] for half in halves(args.folder) if half]
    return run(commands, seconds=args.seconds)


if __name__ == "__main__":
    sys.exit(main())
