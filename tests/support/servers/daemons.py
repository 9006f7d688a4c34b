"""Starts servers for tests on loopback, in a temporary folder, from programs that Debian packages.

The rules: a program that is already there is used. Otherwise it is installed with apt, but only if the run asks
for the server, and as root. If it cannot be had, the test is skipped, with the reason. If a server does not
start, that is an error that shows its log. Every wait has a limit. A server is ended by its process id, and it
dies with the run if the run is killed (`setpriv --pdeathsig`).
"""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

INSTALL_SECONDS = {"update": 45.0, "download": 120.0, "install": 90.0}
COMMAND_SECONDS = 600.0
START_SECONDS = 600.0
STOP_SECONDS = 10.0
_TAIL = 2000


def programs(names: Sequence[str], *, packages: Sequence[str], where: str = "") -> dict[str, str]:
    """Returns the paths of programs. Installs `packages` if one is missing; skips the test if that is not
    possible."""
    found = _find(names, where)
    if len(found) < len(names):
        missing = ", ".join(name for name in names if name not in found)
        if os.geteuid() != 0 or shutil.which("apt-get") is None:
            pytest.skip(f"no {missing} here, and only root can apt-get install {' '.join(packages)}")
        _install(packages, missing)
        found = _find(names, where)
        assert len(found) == len(names), f"{' '.join(packages)} installed, and still not all of {names}"
    return found


def _find(names: Sequence[str], where: str) -> dict[str, str]:
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/bin", *sorted(glob.glob(where))])
    found = {name: shutil.which(name, path=path) for name in names}
    return {name: program for name, program in found.items() if program}


def _install(packages: Sequence[str], missing: str) -> None:
    # RUNLEVEL=1 keeps the packages from starting services of their own
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    apt = [
        "apt-get",
        "-o",
        "Acquire::Retries=2",
        "-o",
        "Acquire::http::Timeout=20",
        "-o",
        "DPkg::Lock::Timeout=60",
    ]
    install = [*apt, "install", "--yes", "--no-install-recommends", *packages]
    for step, command in {
        "update": [*apt, "update"],
        "download": [*install, "--download-only"],  # apart: this may be cut off, and the next not
        "install": install,
    }.items():
        try:
            done = subprocess.run(
                command,
                env=environment,
                capture_output=True,
                text=True,
                timeout=INSTALL_SECONDS[step],
                check=False,
            )
            problem = done.stderr.strip()[-_TAIL:] if done.returncode else ""
        except subprocess.TimeoutExpired:
            problem = f"no end after {INSTALL_SECONDS[step]:.0f} s"
        if problem and step != "update":  # old lists may do
            pytest.skip(f"no {missing} here, and apt-get cannot {step} {' '.join(packages)}: {problem}")


def free_port() -> int:
    """Returns a port of loopback that is free now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def accepts(port: int) -> bool:
    """Whether a process listens on a port of loopback."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def run(
    *command: str | Path,
    within: float = COMMAND_SECONDS,
    user: str = "",
    environ: Mapping[str, str] | None = None,
) -> str:
    """Runs a command that ends by itself, and returns what it prints; if it fails, the error shows its
    messages."""
    done = subprocess.run(
        [*(_as(user) if user else []), *map(str, command)],
        capture_output=True,
        text=True,
        timeout=within,
        check=False,
        stdin=subprocess.DEVNULL,
        env=None if environ is None else dict(environ),
    )
    if done.returncode:
        raise RuntimeError(
            f"{command[0]} ended with {done.returncode}: {(done.stderr or done.stdout)[-_TAIL:]}"
        )
    return done.stdout


@contextlib.contextmanager
def daemon(
    *command: str | Path,
    log: Path,
    ready: Callable[[], bool],
    user: str = "",
    within: float = START_SECONDS,
    end: signal.Signals = signal.SIGTERM,
    environ: Mapping[str, str] | None = None,
) -> Iterator[None]:
    """Runs a server as a process of its own while the block runs, which begins when the server is ready."""
    prefix = _as(user) if user else []
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*prefix, "setpriv", "--pdeathsig", "KILL", *map(str, command)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=None if environ is None else dict(environ),
        )
    try:
        deadline = time.monotonic() + within
        while not ready():
            if process.poll() is not None or time.monotonic() > deadline:
                state = "did not come up" if process.poll() is None else f"ended with {process.returncode}"
                raise RuntimeError(f"{command[0]} {state}: {log.read_text(errors='replace')[-_TAIL:]}")
            time.sleep(0.05)  # between two looks; what decides is `ready`
        yield
    finally:
        process.send_signal(end)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP_SECONDS)


def _as(user: str) -> list[str]:
    return ["setpriv", "--reuid", user, "--regid", user, "--init-groups"]
