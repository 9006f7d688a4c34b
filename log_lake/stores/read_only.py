"""A store that a process may only read: `LAKE_READ_ONLY=1` (docs/command.md).

It wraps every store that `open_store` opens, and refuses each change before any request is sent.  Writes that a
reader does not need, such as its lease, are skipped (decision 171).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, BinaryIO

import pyarrow as pa

from lake_core.errors import Denied, InvalidInput
from lake_core.store.port import Created, ObjectInfo, Store

VARIABLE = "LAKE_READ_ONLY"


class ReadOnlyStore:
    """The store `behind`, which is read and never changed.  Each method that would change it raises Denied."""

    def __init__(self, behind: Store) -> None:
        self.behind = behind

    @property
    def uri(self) -> str:
        return self.behind.uri

    @property
    def options(self) -> dict[str, Any]:
        """The arguments that `open_store` needs beside the URI (`address`)."""
        return dict(getattr(self.behind, "options", {}))

    @property
    def lists_from_name(self) -> bool:
        return self.behind.lists_from_name

    def get(self, name: str) -> bytes | None:
        return self.behind.get(name)

    def get_listed(self, info: ObjectInfo) -> bytes | None:
        return self.behind.get_listed(info)

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        return self.behind.list(prefix, after=after)

    def open_input(self, name: str, *, size: int | None = None) -> pa.NativeFile:
        return self.behind.open_input(name, size=size)

    def local_path(self, name: str) -> str | None:
        return self.behind.local_path(name)

    def create(self, name: str, data: bytes) -> Created:
        raise self._denied(name)

    def put(self, name: str, data: bytes, *, durable: bool = False) -> None:
        raise self._denied(name)

    def delete(self, name: str) -> None:
        raise self._denied(name)

    def delete_all(self, names: Sequence[str]) -> None:
        if names:
            raise self._denied(names[0])

    def open_output(self, name: str) -> AbstractContextManager[BinaryIO]:
        raise self._denied(name)

    def _denied(self, name: str) -> Denied:
        return Denied(
            f"{self.uri}/{name}: not changed, because {VARIABLE} is set; unset it to change the lake"
        )


def is_read_only() -> bool:
    """Whether the environment says that this process may only read.  Raises InvalidInput for another word."""
    text = os.environ.get(VARIABLE, "").strip().lower()
    if text not in ("", "0", "1", "true", "false"):
        raise InvalidInput(f"{VARIABLE}={text}: use 1 or 0")
    return text in ("1", "true")
