"""Runs `lake` commands as processes, which are forked from one that has imported everything.

A command that imports everything itself needs a second of processor time before its first request, and a drill
runs hundreds.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path

PRELOADED = ["tests.support.kills.lost_answers.everything"]


@dataclass(frozen=True)
class Ended:
    """How a process ended; the status is None if it was killed."""

    words: tuple[str, ...]
    status: int | None
    out: str
    err: str
    seconds: float


@dataclass(frozen=True)
class Running:
    """A command that was started."""

    words: tuple[str, ...]
    process: ForkServerProcess
    output: Path
    begun: float

    def kill(self) -> None:
        """Kills it (SIGKILL), unless it has ended."""
        with contextlib.suppress(ValueError):  # closed: its companion's request was to kill it
            self.process.kill()

    def end(self, *, longest: float) -> Ended:
        """Waits until it has ended. Raises AssertionError if that takes longer than `longest` seconds."""
        self.process.join(longest)
        is_hanging = self.process.exitcode is None
        if is_hanging:
            with contextlib.suppress(ProcessLookupError):  # it ended just now
                os.kill(self.process.pid or 0, signal.SIGABRT)  # faulthandler shows where it waits
            self.process.join(10)
            self.process.kill()
            self.process.join()
        out, err = (self.output.with_suffix(end).read_text() for end in (".out", ".err"))
        assert not is_hanging, f"{self.words}: no end after {longest} s: {err}"
        code = self.process.exitcode
        seconds = time.monotonic() - self.begun
        self.process.close()
        return Ended(self.words, None if code == -signal.SIGKILL else code, out, err, seconds)


class Commands:
    """Starts commands in an environment."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self._folder, self._environ = folder, dict(environ)
        self._number = 0
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(PRELOADED)

    def start(self, *words: str) -> Running:
        """Starts the command as a process."""
        self._number += 1
        output = self._folder / f"command-{self._number}"
        process = self._context.Process(target=_command, args=(words, self._environ, output))
        process.start()
        return Running(words, process, output, time.monotonic())


def _command(words: Sequence[str], environ: Mapping[str, str], output: Path) -> None:
    """Runs in the child: the program `lake` with these words."""
    import faulthandler

    from log_lake.cli.main import main

    for stream, end in ((sys.stdout, ".out"), (sys.stderr, ".err")):
        file = os.open(output.with_suffix(end), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, stream.fileno())
    os.environ.update(environ)
    faulthandler.enable(sys.__stderr__ or sys.stderr)
    sys.argv = ["lake", *words]
    sys.exit(main())
