"""Runs the whole suite as two pytest processes at once, one for each core of a small machine: `make test`.

    python -m tests.support.side_by_side [FOLDER]

The one takes the folders that need Airflow and Spark, the other all the rest; so a new folder is never left out.
Airflow comes before Spark: its tests look for processes that were left behind, and Spark keeps one until it ends.

A line is printed when a part ends, or as soon as a test fails.  What a process says at its end is printed in one
piece.  The exit status is that of the first process that failed, and 0 if none did.  Interrupted, it ends both.
"""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

ENGINES = ("airflow", "spark")
"""Folders of the first process, in this order."""

OPTIONS = ("-q", "-p", "tests.support.parts", "-o", "console_output_style=classic")
AT_ONCE = re.compile(r"\w[\w/]* +\d+ (?:\w+, \d+ )*\w+ +\d+ s$|failed: |error: ")
"""Lines of `tests.support.parts`; all others are the summary."""
BEGUN = re.compile(r"\w[\w/]* *$")
"""The begin of a part's line, which a failure has cut off; the whole line follows."""


def halves(tests: str) -> list[list[str]]:
    """The arguments of the two processes."""
    engines = [f"{tests}/{name}" for name in ENGINES if Path(tests, name).is_dir()]
    return [engines, [tests, *(f"--ignore={folder}" for folder in engines)]]


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


def run(commands: Sequence[Sequence[str]]) -> int:
    """Run the commands at once; the status of the first that failed, in their order."""
    printing = threading.Lock()
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for command in commands
    ]
    relays = [threading.Thread(target=relay, args=(process, printing)) for process in processes]
    try:
        for thread in relays:
            thread.start()
        for thread in relays:
            thread.join()
    finally:
        for process in processes:
            if process.poll() is None:
                process.terminate()
                process.wait()
    return next((process.returncode for process in processes if process.returncode), 0)


def main(tests: str = "tests") -> int:
    return run([[sys.executable, "-m", "pytest", *OPTIONS, *half] for half in halves(tests) if half])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
