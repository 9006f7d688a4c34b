"""A store in this process's memory, for tests, notebooks and simulations.

Each `memory://NAME` is one store; it ends with the process.  One lock makes each call atomic, because fsspec's own
memory file system is not safe between threads.  Names are kept in order, so a listing costs what it returns.
"""

from __future__ import annotations

import contextlib
import io
import threading
import time
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import BinaryIO

import pyarrow as pa

from lake_core.naming import most_bytes
from lake_core.store.port import Created, ObjectInfo, check_name, check_prefix, check_size


class MemoryStore:
    """A store of objects in a dictionary; `clock` says when they were written, in seconds since 1970."""

    def __init__(self, uri: str = "memory://", *, clock: Callable[[], float] = time.time) -> None:
        self._uri = uri
        self._clock = clock
        self._modified: dict[str, float] = {}
        self._tags: dict[str, str] = {}
        self._writes = count()
        self._objects: dict[str, bytes] = {}
        self._names: list[str] = []
        self._lock = threading.Lock()

    @property
    def uri(self) -> str:
        return self._uri

    @property
    def lists_from_name(self) -> bool:
        return True

    def get(self, name: str) -> bytes | None:
        check_name(name)
        with self._lock:
            data = self._objects.get(name)
        if data is not None:
            check_size(f"{self._uri}/{name}", len(data), most=most_bytes(name))
        return data

    def get_listed(self, info: ObjectInfo) -> bytes | None:
        check_name(info.name)
        with self._lock:
            return (
                self._objects.get(info.name) if info.tag and self._tags.get(info.name) == info.tag else None
            )

    def create(self, name: str, data: bytes) -> Created:
        check_name(name)
        with self._lock:
            if name in self._objects:
                return Created.EXISTS
            self._set(name, data)
            return Created.YES

    def put(self, name: str, data: bytes, *, durable: bool = False) -> None:
        check_name(name)
        with self._lock:
            self._set(name, data)

    def _set(self, name: str, data: bytes) -> None:
        if name not in self._objects:
            insort(self._names, name)
        self._objects[name] = bytes(data)
        self._modified[name] = self._clock()
        self._tags[name] = str(next(self._writes))

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        check_prefix(prefix)
        folder = prefix.rstrip("/") + "/" if prefix else ""
        with self._lock:
            infos: list[ObjectInfo] = []
            names = self._names
            for at in range(max(bisect_left(names, folder), bisect_right(names, after)), len(names)):
                if not names[at].startswith(folder):
                    break
                name = names[at]
                size = len(self._objects[name])
                infos.append(ObjectInfo(name, size, self._modified[name], self._tags[name]))
        yield from infos

    def delete(self, name: str) -> None:
        check_name(name)
        with self._lock:
            if self._objects.pop(name, None) is not None:
                del self._names[bisect_left(self._names, name)]
                del self._modified[name], self._tags[name]

    def delete_all(self, names: Sequence[str]) -> None:
        for name in names:
            self.delete(name)

    def local_path(self, name: str) -> str | None:
        return None

    def open_input(self, name: str, *, size: int | None = None) -> pa.NativeFile:
        data = self.get(name)
        if data is None:
            raise FileNotFoundError(name)
        return pa.BufferReader(data)

    @contextlib.contextmanager
    def open_output(self, name: str) -> Iterator[BinaryIO]:
        check_name(name)
        buffer = io.BytesIO()
        yield buffer
        self.create(name, buffer.getvalue())


_NAMED: dict[str, MemoryStore] = {}
_NAMED_LOCK = threading.Lock()


def named(uri: str) -> MemoryStore:
    """Returns the store of this URI in this process."""
    with _NAMED_LOCK:
        return _NAMED.setdefault(uri, MemoryStore(uri))
