"""Runs the `lake` command on a terminal of its own, to see what it shows there, and what it asks."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from dataclasses import dataclass

ROWS = 40


@dataclass(frozen=True)
class Shown:
    """What was on the terminal when the command had ended, and the command's status."""

    status: int
    text: str

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()


def on_terminal(*words: str, columns: int = 80, typed: str = "") -> Shown:
    """Runs a command on a terminal with so many columns; `typed` is what its user types."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
    environ = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    with subprocess.Popen(
        [sys.executable, "-m", "log_lake.cli.main", *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environ,
        close_fds=True,
    ) as process:
        os.close(theirs)
        os.write(ours, typed.encode())
        read = b""
        while True:  # bounded by the command's end
            try:
                some = os.read(ours, 65_536)
            except OSError:  # Linux says so where the other end is closed
                break
            if not some:
                break
            read += some
        status = process.wait(600)
    os.close(ours)
    return Shown(status, read.decode().replace("\r\n", "\n"))
