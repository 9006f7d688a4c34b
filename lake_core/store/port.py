"""What the lake needs of a store, and what it may believe.

- `create` is put-if-missing: of any number of callers for one name at most one hears YES, and readers see
  all of the bytes or no object.  The answer can be lost: then it is UNKNOWN, and the caller reads back.
- `put` overwrites and promises nothing about races: for hints only.
- `get` and `list` see every create that was answered before they began.
- Names are relative to the store's root, with `/` between folders.

A store is safe to use from several threads.  Errors: `Unavailable` for all that fails below the port (`failures`),
but for FileNotFoundError of `open_input`; also in reads and writes of open files.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import BinaryIO, NamedTuple, Protocol

import pyarrow as pa


class Created(enum.Enum):
    """What became of a put-if-missing: an ordinary result, not an exception."""

    YES = "yes"
    EXISTS = "exists"
    UNKNOWN = "unknown"


class ObjectInfo(NamedTuple):
    """A listed object: its name, its size in bytes."""

    name: str
    size: int


class Store(Protocol):
    """A place that keeps named, immutable bytes."""

    @property
    def uri(self) -> str:
        """The root, as a user would write it."""

    @property
    def lists_from_name(self) -> bool:
        """Whether `list` with `after` is one cheap request, however many objects come before that name."""

    def get(self, name: str) -> bytes | None:
        """All bytes of the object, None where there is none."""

    def create(self, name: str, data: bytes) -> Created:
        """Put-if-missing; durable when it says YES.  `data` is never empty.

        Raises Unavailable where nothing was written, NoCreate where the store refuses such a request for good.
        """

    def put(self, name: str, data: bytes) -> None:
        """Write or overwrite a hint."""

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        """Objects below the folder `prefix`, by name, those with names greater than `after`."""

    def delete(self, name: str) -> None:
        """Remove the object; nothing happens where there is none."""

    def open_input(self, name: str) -> pa.NativeFile:
        """Read at random positions; raises FileNotFoundError where there is none."""

    def local_path(self, name: str) -> str | None:
        """The file of the object, where the store's objects are files of this machine."""

    def open_output(self, name: str) -> AbstractContextManager[BinaryIO]:
        """Write a new object under a name nobody else uses; it appears, whole and durable, when the block
        ends, and never where the block raised."""
