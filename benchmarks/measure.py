"""Measures one piece of work in a new process: its time, its records, its memory.

`run(NAME, "benchmarks.zeek:lake_load", FILE...)` calls the function there and gives a `Measure`. Imports and
sessions are outside of the timing: the function times its own work with `timed`.  Memory is the peak of the
process and, for Spark, of its children together, sampled.  If other work runs on the machine, the seconds of
processor time say more than those of the clock.
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
    """`seconds` of work on `records`, with at most `peak` bytes resident in all its processes.

    `processor`: seconds of processor time of all its processes; 0 if they were not measured. `begins`: this
    line is the first of a group; the ratios of the group compare with it.
    """

    name: str
    seconds: float
    records: int
    peak: int
    note: str = ""
    processor: float = 0.0
    begins: bool = False


@contextmanager
def timed() -> Iterator[dict[str, Any]]:
    """Gives a dict for the answer of the work. When the block has ended, the dict also has its seconds."""
    answer: dict[str, Any] = {}
    processor, begun = processor_seconds(), time.perf_counter()
    yield answer
    answer["seconds"] = time.perf_counter() - begun
    answer["processor"] = processor_seconds() - processor


def least(work: Callable[[], object], times: int) -> dict[str, Any]:
    """Does the work several times. Returns the shortest time, and the least processor time.

    Other work on the machine only adds to both.
    """
    answers = []
    for _ in range(times):
        with timed() as answer:
            work()
        answers.append(answer)
    return {what: min(answer[what] for answer in answers) for what in ("seconds", "processor")}


def processor_seconds() -> float:
    """Processor time of this process and of all below it, with those that have ended."""
    me = psutil.Process()
    total = 0.0
    for process in [me, *me.children(recursive=True)]:
        try:
            spent = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += spent.user + spent.system + spent.children_user + spent.children_system
    return total


def run(name: str, target: str, *arguments: str, times: int = 1, python: str = sys.executable) -> Measure:
    """Runs the function `module:function` `times` times, each in a new process of the Python `python`. Returns the
    median."""
    found = [_once(python, target, arguments) for _ in range(times)]
    return Measure(
        name,
        statistics.median(f["seconds"] for f in found),
        found[0]["records"],
        max(f["peak"] for f in found),
        str(found[0].get("note", "")),
        statistics.median(f.get("processor", 0.0) for f in found),
    )


def _once(python: str, target: str, arguments: tuple[str, ...]) -> dict[str, Any]:
    command = [python, "-m", "benchmarks.measure", target, *arguments]
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
