"""Finds the processes that a test has started by their session, waits for them, and ends them if the test fails.

A process started with `start_new_session` is the leader of a session that all its descendants stay in, however
often they are orphaned.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

import psutil

from local.processes import left_of

Found = TypeVar("Found")
TICK = 0.005


def in_session(leader: int) -> list[psutil.Process]:
    """The living processes of the leader's session, including the leader."""
    found = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == leader and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.Error, OSError):
            continue  # it ended while it was looked at
    return found


def end_all(left: list[psutil.Process]) -> None:
    """Kills these processes, which must be the test's own."""
    for process in left:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    left_of(left, seconds=10)


def await_true(condition: Callable[[], Found], *, seconds: float, what: str) -> Found:
    """Asks the condition until its answer is true, and returns that answer; fails after so many seconds."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:.0f} s: {what}")
        time.sleep(TICK)
    return found


def python_workers(root: psutil.Process) -> list[psutil.Process]:
    """The Python workers below a Spark driver, which Spark's daemons have forked."""
    return [
        process
        for process in _below(root)
        if _runs_daemon(process) and (parent := process.parent()) is not None and _runs_daemon(parent)
    ]


def _below(root: psutil.Process) -> list[psutil.Process]:
    try:
        return root.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _runs_daemon(process: psutil.Process) -> bool:
    try:
        return "pyspark.daemon" in " ".join(process.cmdline())
    except psutil.Error:
        return False
