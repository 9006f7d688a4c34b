"""The files that a command reads, and the progress that it shows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from lake_core.catalog import Settings
from lake_core.loading.sources import find_files
from lake_core.records.source_files import SourceFile


def files_to_read(
    patterns: list[str], pool: Mapping[str, str], options: Mapping[str, str]
) -> list[SourceFile]:
    """The files that the patterns name, of those that the pool's settings and the options choose."""
    settings = Settings({**pool, **options})
    return find_files(patterns, include=settings["include"], exclude=settings["exclude"])


@contextmanager
def shown_progress(files: list[SourceFile], what: str) -> Iterator[Callable[[str, float], None]]:
    """A bar on a terminal: bytes read of all bytes, rate, time left.

    A file counts no more than its size, however often parts of it are read.
    """
    sizes = {file.uri: float(file.size) for file in files}
    total = sum(sizes.values())
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(compact=True, elapsed_when_finished=True),
        TextColumn("{task.fields[file]}"),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    ) as bar:
        task = bar.add_task(what, total=total or None, file="")
        left = dict(sizes)
        current = ""

        def advance(file: str, size: float) -> None:
            nonlocal current
            if file != current:
                bar.advance(task, left.get(current, 0.0))  # of the file before, whatever was not read of it
                left[current] = 0.0
                current = file
            counted = min(size, left.get(file, size))
            left[file] = left.get(file, counted) - counted
            bar.update(task, advance=counted, file=file.rpartition("/")[2])

        yield advance
        bar.update(task, completed=total or None, file="")
