"""The progress bar that a command shows on a terminal: bytes so far and in total, rate, time left.

Without a terminal on standard error nothing is shown.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from lake_core.phrases import counted
from log_lake.loading.source_files import SourceFile

if TYPE_CHECKING:
    from rich.progress import Progress


def _bar() -> Progress:
    from rich.console import Console  # loads slowly
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(compact=True, elapsed_when_finished=True),
        TextColumn("{task.fields[note]}"),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )


def shown_progress(
    files: list[SourceFile], what: str
) -> AbstractContextManager[Callable[[str, float], None]]:
    """Returns a context that shows a bar on a terminal: bytes read of all bytes, rate, time left."""
    return shown_reading({file.uri: float(file.size) for file in files}, what)


@contextmanager
def shown_reading(sizes: Mapping[str, float], what: str) -> Iterator[Callable[[str, float], None]]:
    """Shows a bar of the bytes that were read of these files; `sizes` has their sizes by name.

    A file counts no more than its size, however often parts of it are read.
    """
    total = sum(sizes.values())
    with _bar() as bar:
        task = bar.add_task(what, total=total or None, note="")
        left = dict(sizes)
        current = ""

        def advance(file: str, size: float) -> None:
            nonlocal current
            if file != current:
                bar.advance(task, left.get(current, 0.0))  # of the file before, whatever was not read of it
                left[current] = 0.0
                current = file
            part = min(size, left.get(file, size))
            left[file] = left.get(file, part) - part
            bar.update(task, advance=part, note=file.rpartition("/")[2])

        yield advance
        bar.update(task, completed=total or None, note="")


@contextmanager
def shown_deleting(what: str, *, total: int | None) -> Iterator[Callable[[int, int], None]]:
    """Shows a bar of the bytes and objects that a vacuum deletes; `total` is in bytes, None if that is not
    known."""
    with _bar() as bar:
        task = bar.add_task(what, total=total, note="")

        def advance(objects: int, size: int) -> None:
            bar.update(task, completed=size, note=counted(objects, "object"))

        yield advance
