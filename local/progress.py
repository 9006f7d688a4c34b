"""Shows progress on standard error while services start and stop: a live line for each service, or plain lines.

On a terminal: a spinner with the seconds so far.  Elsewhere (a log, a pipe): one line when a step begins and
one when it ends.
"""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn


class Display(Protocol):
    """Shows progress; use it as a context manager around a step."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def begin(self, name: str, doing: str) -> None: ...
    def tell(self, name: str, doing: str) -> None: ...
    def end(self, name: str, done: str) -> None: ...
    def note(self, text: str) -> None: ...


class Lines:
    """Shows plain lines."""

    def __init__(self, *, silent: bool = False) -> None:
        self._silent = silent
        self._begun: dict[str, float] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def begin(self, name: str, doing: str) -> None:
        self._begun[name] = time.monotonic()
        self.note(f"{name}: {doing}")

    def tell(self, name: str, doing: str) -> None:
        """Does nothing: progress within a step is for live lines only."""

    def end(self, name: str, done: str) -> None:
        gone = time.monotonic() - self._begun.get(name, time.monotonic())
        self.note(f"{name}: {done} ({gone:.0f} s)")

    def note(self, text: str) -> None:
        if not self._silent:
            print(text, file=sys.stderr, flush=True)


class Live:
    """Shows lines that move, on a terminal."""

    def __init__(self, console: Console) -> None:
        text = TextColumn("{task.description}", markup=False)
        columns = (SpinnerColumn(finished_text="✓"), text, TimeElapsedColumn())
        # Results go to standard output meanwhile: they are left where they are.
        self._progress = Progress(*columns, console=console, redirect_stdout=False, redirect_stderr=False)
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def begin(self, name: str, doing: str) -> None:
        self._tasks[name] = self._progress.add_task(f"{name}: {doing}", total=1)

    def tell(self, name: str, doing: str) -> None:
        self._progress.update(self._tasks[name], description=f"{name}: {doing}")

    def end(self, name: str, done: str) -> None:
        self._progress.update(self._tasks[name], description=f"{name}: {done}", completed=1)

    def note(self, text: str) -> None:
        self._progress.console.print(text, markup=False, highlight=False)


def display(*, silent: bool = False) -> Display:
    """The display that suits standard error: live on a terminal, otherwise plain."""
    console = Console(stderr=True)
    return Live(console) if console.is_terminal and not silent else Lines(silent=silent)
