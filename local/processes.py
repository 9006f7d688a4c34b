"""Launches keepers, recognizes our own processes again, and stops them.

A process is identified by its id, the tick of its start and the boot of the machine, because the system reuses
ids. Processes that are not identified this way never get a signal.

A keeper (local/keeper.py) ends its own service.  Only if a keeper was killed, its survivors are searched: the
processes of this user that have the service's mark in their environment, or that are in the keeper's session and
are younger than it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import psutil

from local import keeper
from local.errors import LocalError

MARK = "LAKE_LOCAL_SERVICE"
"""The environment variable by which the processes of a service are recognized."""
TICK = 0.1
LAST_RESORT_SECONDS = 5.0


class ProcessIdentity(msgspec.Struct, frozen=True):
    """Identifies a process, also against a later one with the same id."""

    pid: int
    started: int
    boot: str


def identify(pid: int, *, proc: Path = Path("/proc")) -> ProcessIdentity | None:
    """The identity of a living process; None if it does not exist or is a zombie."""
    try:
        stat = (proc / str(pid) / "stat").read_text()
        boot = (proc / "sys" / "kernel" / "random" / "boot_id").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # "pid (name) state ...": the name may hold anything, so fields are counted after its last parenthesis.
    fields = stat.rpartition(")")[2].split()
    state, started = fields[0], int(fields[19])
    return None if state in {"Z", "X"} else ProcessIdentity(pid=pid, started=started, boot=boot)


def is_alive(identity: ProcessIdentity) -> bool:
    """Whether exactly this process still runs."""
    return identify(identity.pid) == identity


def launch(
    command: Sequence[str], *, environ: Mapping[str, str], mark: str, log: Path, folder: Path, detached: bool
) -> tuple[subprocess.Popen[bytes], ProcessIdentity]:
    """Starts the command below a keeper, in its own session, with its output in `log`.

    Unless `detached`, the service ends when the calling process ends, however that happens.
    """
    parent = [] if detached else ["--parent", str(os.getpid())]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", keeper.__name__, *parent, "--", *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**environ, MARK: mark},
            cwd=folder,
            start_new_session=True,
        )
    identity = identify(process.pid)
    if identity is None:
        raise LocalError(f"the keeper of {command[0]} ended at once; see {log}")
    return process, identity


def find(mark: str) -> ProcessIdentity | None:
    """The keeper with this mark, for the case that its record was lost."""
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark and keeper.__name__ in process.cmdline():
                return identify(process.pid)
        except psutil.Error:
            continue  # it ended while it was looked at, or is not ours to look at
    return None


def survivors(identity: ProcessIdentity, *, mark: str) -> list[psutil.Process]:
    """The processes that a killed keeper left behind."""
    if (now := identify(identity.pid)) is not None and now != identity:
        session = None  # the id is another process's now, and so may be a session of that number
    else:
        session = identity.pid
    left = []
    for process in psutil.process_iter():
        try:
            other = identify(process.pid)
            if other is None or other.pid == os.getpid() or process.uids().effective != os.geteuid():
                continue
            in_session = session is not None and os.getsid(process.pid) == session
            is_younger = other.boot == identity.boot and other.started >= identity.started
            if (in_session and is_younger) or process.environ().get(MARK) == mark:
                left.append(process)
        except (psutil.Error, OSError):
            continue  # it ended while it was looked at, or is not ours to look at
    return left


def listens(identity: ProcessIdentity, port: int) -> bool:
    """Whether one of the service's own processes listens on the port."""
    try:
        below = psutil.Process(identity.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return False
    for process in below:
        try:
            connections = process.net_connections("tcp")
        except psutil.Error:
            continue  # it ended while it was looked at
        if any(c.status == psutil.CONN_LISTEN and c.laddr.port == port for c in connections):
            return True
    return False


def stop(identity: ProcessIdentity, *, mark: str, child: subprocess.Popen[bytes] | None = None) -> None:
    """Ends a service and everything below it; returns when nothing is left."""
    if is_alive(identity):
        os.kill(identity.pid, signal.SIGTERM)
        _await_end(identity, child, keeper.LONGEST_STOP + LAST_RESORT_SECONDS)
    if is_alive(identity):  # a keeper that is stopped or stuck: its tree is ended without it
        os.kill(identity.pid, signal.SIGKILL)
        _await_end(identity, child, LAST_RESORT_SECONDS)
    for number in (signal.SIGTERM, signal.SIGKILL):
        left = survivors(identity, mark=mark)
        for process in left:
            try:
                process.send_signal(number)
            except psutil.Error:
                continue  # it ended meanwhile
        left_of(left, seconds=LAST_RESORT_SECONDS)
    left = survivors(identity, mark=mark)
    if left:
        raise LocalError(
            f"processes {', '.join(str(p.pid) for p in left)} of {mark} did not end after SIGKILL; end them by hand"
        )


def left_of(processes: Sequence[psutil.Process], *, seconds: float) -> list[psutil.Process]:
    """Waits at most so many seconds for the processes to end; returns those that have not ended.

    Linux 6.15 and newer report "no such file" for a process that is just ending, which psutil 7 does not
    expect.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            return list(psutil.wait_procs(processes, timeout=max(0.0, deadline - time.monotonic()))[1])
        except FileNotFoundError:
            if time.monotonic() > deadline:
                raise
            time.sleep(TICK)


def _await_end(identity: ProcessIdentity, child: subprocess.Popen[bytes] | None, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while is_alive(identity) and time.monotonic() < deadline:
        time.sleep(TICK)
    if child is not None:
        child.poll()
