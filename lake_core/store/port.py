"""The operations of a store, and the guarantees that the lake relies on.

- `create` is a create-only put: if several callers create one name, at most one gets YES, and readers see all of
  the bytes or no object.  The answer can be lost: then it is UNKNOWN, and the caller reads back.
- `put` overwrites and guarantees nothing about races: for hints only.
- `get` and `list` see every create that was answered before they began.
- Names are relative to the store's root, with `/` between folders.  A name that is absolute, or has an empty part,
  `.` or `..`, could lead out of the lake: every store refuses it (`check_name`).

A store is safe to use from several threads.  Every failure below the port raises `Unavailable` (`failures`), also
in reads and writes of open files.  The one exception is FileNotFoundError of `open_input`, and of reads of what it
opened: the store itself said that it does not have the object.  `get` gives None for the same answer alone.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import BinaryIO, NamedTuple, Protocol

import pyarrow as pa

from lake_core.errors import Corrupt


def is_inside(name: str) -> bool:
    """Whether an object may have this name: parts between `/` that are not empty, `.` or `..`; no zero byte."""
    return "\0" not in name and _OUTSIDE.isdisjoint(name.split("/"))


_OUTSIDE = frozenset(("", ".", ".."))


def check_name(name: str) -> None:
    """Raises Corrupt for a name that no object can have: a stored thing that gives it is not the lake's."""
    if not is_inside(name):
        raise Corrupt(
            f"{name!r}: no object of a lake has such a name, which could lead out of the lake; nothing was read, "
            "written or deleted. What names it is damaged or was not written by the lake: lake fsck says more"
        )


def check_prefix(prefix: str) -> None:
    """Raises Corrupt for a folder in which no object can be; "" is the root."""
    if prefix and not is_inside(prefix.removesuffix("/")):
        check_name(prefix)


def check_size(where: str, size: int, *, most: int) -> None:
    """Raises Corrupt if an object with so many bytes would be read whole: no valid object of its kind is as
    large."""
    if size > most:
        raise Corrupt(f"{where}: {size:,} bytes; such an object has at most {most:,}")


class Created(enum.Enum):
    """The result of a create-only put; a lost race is an ordinary result, not an exception."""

    YES = "yes"
    EXISTS = "exists"
    UNKNOWN = "unknown"


class ObjectInfo(NamedTuple):
    """A listed object: its name, its size in bytes, and when it was written, in seconds since 1970.

    `modified` is from the store's own clock, in seconds or finer.  Ages of objects are differences of two such
    times, so that no clock of a writer decides them.  `tag` (S3's ETag, Google's generation) differs between
    two objects that had one name and different bytes; it is empty if the store gives none.
    """

    name: str
    size: int
    modified: float
    tag: str = ""


class Store(Protocol):
    """A store of named, immutable bytes."""

    @property
    def uri(self) -> str:
        """The address of the store's root, as a user writes it."""

    @property
    def lists_from_name(self) -> bool:
        """Whether `list` with `after` is one cheap request, however many objects come before that name."""

    def get(self, name: str) -> bytes | None:
        """Returns all bytes of the object; None if it does not exist.

        Raises Corrupt if it has more than `naming.most_bytes`: its writer chooses its size, and each process
        that reads it would need as much memory.
        """

    def get_listed(self, info: ObjectInfo) -> bytes | None:
        """Returns all bytes of the object that was listed; None if it was deleted, or if another object has its
        name.  Returns None, without a request, if it was listed without a tag."""

    def create(self, name: str, data: bytes) -> Created:
        """Creates the object if it does not exist; YES means that it is durable.  `data` is never empty.
        Raises Unavailable if nothing was written, NoCreate if the store does not support such a request."""

    def put(self, name: str, data: bytes, *, durable: bool = False) -> None:
        """Writes or overwrites a hint.  With `durable` it survives a crash of the machine once this returns."""

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        """Yields the objects below the folder `prefix` with names greater than `after`, by name."""

    def delete(self, name: str) -> None:
        """Deletes the object; does nothing if it does not exist."""

    def delete_all(self, names: Sequence[str]) -> None:
        """Deletes the objects, many in a request if the store can; names that do not exist are skipped.  Raises
        Unavailable if some may remain.  The others are deleted, and a repeated call deletes the rest."""

    def open_input(self, name: str, *, size: int | None = None) -> pa.NativeFile:
        """Opens the object for reading at any position; `size` in bytes, if the caller knows it.

        Raises FileNotFoundError if it does not exist.  On a server, with a known size, the first read raises it
        instead.
        """

    def local_path(self, name: str) -> str | None:
        """Returns the path of the object's file; None if the store's objects are not files of this machine."""

    def open_output(self, name: str) -> AbstractContextManager[BinaryIO]:
        """Opens a new object for writing, under a name that no other writer uses.  It appears, whole and
        durable, when the block ends, and not at all if the block raises."""
