"""One piece of work in a fresh process: how long, how many records, how much memory.

`run(NAME, "benchmarks.zeek:lake_load", FILE...)` calls the function there and gives a `Measure`.
Imports and sessions are outside of the timing: the function times its own work with `timed`.  Memory is
the peak of the process and, for Spark, of its children together, sampled.
"""

from __future__ import annotations

import importlib
import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psutil

SECONDS = 1800


@dataclass(frozen=True)
class Measure:
    """`seconds` of work on `records`, with at most `peak` bytes resident in all its processes."""

    name: str
    seconds: float
    records: int
    peak: int
    note: str = ""


@contextmanager
def timed() -> Iterator[dict[str, Any]]:
    """Gives the answer of the work, which has the seconds of the block when it has ended."""
    answer: dict[str, Any] = {}
    begun = time.perf_counter()
    yield answer
    answer["seconds"] = time.perf_counter() - begun


def run(name: str, target: str, *arguments: str, times: int = 1) -> Measure:
    """The function `module:function` in processes of their own; the median of `times`."""
    found = [_once(target, arguments) for _ in range(times)]
    seconds = statistics.median(f["seconds"] for f in found)
    return Measure(
        name, seconds, found[0]["records"], max(f["peak"] for f in found), str(found[0].get("note", ""))
    )


def _once(target: str, arguments: tuple[str, ...]) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.measure", target, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        raise RuntimeError(f"{target} failed:\n{done.stderr}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def _watch(peak: list[int], stop: threading.Event) -> None:
    me = psutil.Process()
    ended = False
    while not ended:  # one sample more at the end
        ended = stop.wait(0.1)
        total = 0
        for process in [me, *me.children(recursive=True)]:
            try:
                total += process.memory_info().rss
            except psutil.NoSuchProcess:
                continue
        peak[0] = max(peak[0], total)


def main() -> None:
    """In the process: call, measure, print."""
    module, _, function = sys.argv[1].partition(":")
    work: Callable[..., dict[str, Any]] = getattr(importlib.import_module(module), function)
    peak, stop = [0], threading.Event()
    watcher = threading.Thread(target=_watch, args=(peak, stop), daemon=True)
    watcher.start()
    answer = work(*sys.argv[2:])
    stop.set()
    watcher.join()
    print(json.dumps(answer | {"peak": peak[0]}))


if __name__ == "__main__":
    main()
