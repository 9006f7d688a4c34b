"""The files that a command reads, and the progress that it shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from lake_core.store import Address
from log_lake.cli.progress import shown_reading
from log_lake.loading.source_files import SourceFile
from log_lake.loading.sources import find_files
from log_lake.settings import Settings


def files_to_read(
    patterns: list[str],
    pool: Mapping[str, str],
    options: Mapping[str, str],
    *,
    access: Address | None = None,
) -> list[SourceFile]:
    """The files that the patterns name, of those that the pool's settings and the options choose.

    `access` is the address of the lake.
    """
    settings = Settings({**pool, **options})
    return find_files(patterns, include=settings["include"], exclude=settings["exclude"], access=access)


def shown_progress(
    files: list[SourceFile], what: str
) -> AbstractContextManager[Callable[[str, float], None]]:
    """A bar on a terminal: bytes read of all bytes, rate, time left."""
    return shown_reading({file.uri: float(file.size) for file in files}, what)
