"""Plans reads: a reader says which byte ranges of an open object it needs next.

An object on a server fetches planned ranges side by side (`log_lake.stores.ranges`, decision 243).  A file of
this machine needs no plan, and the functions here leave it alone.  Called by the readers of checkpoints and
data objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import pyarrow as pa

REQUEST = 8 << 20
"""The most bytes per request, unless one range is longer. Memory holds the bytes of two requests."""


class Range(NamedTuple):
    """The bytes from `begin` (inclusive) to `end` (exclusive)."""

    begin: int
    end: int


@runtime_checkable
class Planned(Protocol):
    """An open object whose reads can be planned."""

    def fetch_tail(self, share: int) -> None:
        """Fetches the end of the object, or all of a small one, within `share` bytes; the next reads begin
        there."""

    def plan(self, ranges: Iterable[Range], *, share: int, keeps: bool = False) -> None:
        """Fetches these ranges next, with at most `share` bytes per request.  With `keeps`, earlier bytes stay."""

    def drop_planned(self) -> None:
        """Drops the fetched bytes, except those of the object's end if `fetch_tail` fetched them."""

    def forget(self) -> None:
        """Drops what the cache holds of the object, so that the next reader asks the store."""

    def release(self, before: int) -> None:
        """Drops the bytes before this position."""


def fetch_tail(file: pa.NativeFile, *, share: int = REQUEST) -> None:
    """Fetches the end of an object on a server; does nothing for a file of this machine."""
    if isinstance(file, Planned):
        file.fetch_tail(share)


def plan(
    file: pa.NativeFile, ranges: Callable[[], Iterable[Range]], *, share: int = REQUEST, keeps: bool = False
) -> None:
    """Plans reads of an object on a server, which keep about twice `share` bytes in memory; ignores other files."""
    if isinstance(file, Planned):
        file.plan(ranges(), share=share, keeps=keeps)


def chunk_range(column: Any) -> Range:
    """Returns the byte range in which a Parquet file stores one column of a row group, from its footer."""
    starts = (column.dictionary_page_offset, column.data_page_offset)
    begin = min(at for at in starts if at is not None)
    return Range(begin, begin + column.total_compressed_size)


def drop_planned(file: pa.NativeFile) -> None:
    """Drops the bytes of an object on a server that were fetched.  Keeps those of its end, if its end was
    fetched."""
    if isinstance(file, Planned):
        file.drop_planned()


def forget(file: pa.NativeFile) -> None:
    """Drops what a cache holds of an object on a server, because it is damaged."""
    if isinstance(file, Planned):
        file.forget()


def release(file: pa.NativeFile, before: Callable[[], int]) -> None:
    """Drops the bytes before a position of an object on a server."""
    if isinstance(file, Planned):
        file.release(before())
