"""Reading several entries or requests at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")

MAX_THREADS = 16
"""Entries or requests read in parallel."""

ReadAll = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]
"""A function that calls another one with each of several arguments, and returns the answers in their order."""


def in_threads(read: Callable[[Any], Any], names: Sequence[Any]) -> list[Any]:
    """Calls `read` for each name in parallel, and returns the answers in the order of the names."""
    if len(names) < 2:
        return [read(name) for name in names]
    with ThreadPoolExecutor(min(len(names), MAX_THREADS)) as threads:
        return list(threads.map(read, names))


def while_there(entries: Iterable[T | None]) -> Iterator[T]:
    """Yields the entries up to the first missing one."""
    for entry in entries:
        if entry is None:
            return
        yield entry
