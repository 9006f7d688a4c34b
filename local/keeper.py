"""One process that owns a service: it starts the command, adopts the processes that lose their parent, and ends
them all.

Airflow's `standalone` and Spark sometimes leave children behind. These change their names and environments, so
one cannot tell later which processes belong to the service. The keeper is the "child subreaper" of what it
starts (Linux): if a process loses its parent, it becomes the keeper's child. So the keeper's descendants are
exactly the service.

The keeper ends the service on SIGTERM or SIGINT, when the command ends by itself, or, with `--parent PID`, when
that process is no longer its parent. It sends SIGINT to the command, then SIGTERM to all, then SIGKILL to all,
each with a bounded wait; then it ends with the command's status.

Run by `processes.launch` as `python -m local.keeper [--parent PID] -- COMMAND...`, in its own session; its
output is the service's log.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from types import FrameType

import psutil

TICK = 0.1
INTERRUPT_SECONDS = 15.0
TERMINATE_SECONDS = 6.0
KILL_SECONDS = 10.0
LONGEST_STOP = INTERRUPT_SECONDS + TERMINATE_SECONDS + KILL_SECONDS
PR_SET_CHILD_SUBREAPER = 36


@dataclass
class Ending:
    """Raised when a signal asks the keeper to end the service."""

    asked: bool = False

    def ask(self, _signal: int, _frame: FrameType | None) -> None:
        self.asked = True


def become_subreaper() -> None:
    """From now on, orphans of this process's descendants become its children."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def descendants() -> list[psutil.Process]:
    """All living processes below this one."""
    living = []
    for process in psutil.Process().children(recursive=True):
        try:
            if process.status() != psutil.STATUS_ZOMBIE:
                living.append(process)
        except psutil.NoSuchProcess:
            continue
    return living


def reap(command: int) -> int | None:
    """Collects all children that have ended; returns the command's status if the command is among them."""
    status = None
    while True:  # ends when no ended child is left
        try:
            pid, raw = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if pid == 0:
            return status
        if pid == command:
            status = os.waitstatus_to_exitcode(raw)


def _signal(processes: list[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        try:
            process.send_signal(number)
        except psutil.Error:
            continue  # it ended meanwhile


def end(command: int, status: int | None) -> int | None:
    """Ends the whole tree; returns the command's status if it could be collected."""
    if status is None:
        os.kill(command, signal.SIGINT)
        deadline = time.monotonic() + INTERRUPT_SECONDS
        while status is None and time.monotonic() < deadline:
            time.sleep(TICK)
            status = reap(command)
    for number, seconds in ((signal.SIGTERM, TERMINATE_SECONDS), (signal.SIGKILL, KILL_SECONDS)):
        deadline = time.monotonic() + seconds
        signalled: set[int] = set()
        while (left := descendants()) and time.monotonic() < deadline:
            # Once to each, those born meanwhile included: a second would cut short what the first began.
            _signal([process for process in left if process.pid not in signalled], number)
            signalled |= {process.pid for process in left}
            time.sleep(TICK)
            collected = reap(command)
            status = status if collected is None else collected
        collected = reap(command)
        status = status if collected is None else collected
    return status


def keep(argv: list[str], *, parent: int | None) -> int:
    """Runs the command until it ends, or until a signal asks to end it; returns its exit status, as a shell
    would."""
    become_subreaper()
    ending = Ending()
    # Handlers, not "ignore": the command then starts with the usual ones, even below a shell's `&`.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, ending.ask)
    try:
        # Held on to: a Popen that is let go of collects a command that has ended already, and its status.
        started = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
    except OSError as problem:
        print(f"keeper: {argv[0]} did not start: {problem}", flush=True)
        return 127
    command = started.pid
    status = None
    while status is None and not ending.asked and (parent is None or os.getppid() == parent):
        time.sleep(TICK)
        status = reap(command)
    by_itself = status is not None
    status = end(command, status)
    if by_itself and status is not None:
        return status if status >= 0 else 128 - status
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="local.keeper")
    parser.add_argument("--parent", type=int, default=None)
    parser.add_argument("command", nargs="+")
    args = parser.parse_args()
    return keep(args.command, parent=args.parent)


if __name__ == "__main__":
    sys.exit(main())
