"""Creates an object at most once on a store without create-only put: under a lock of the object's name.

`LockedStore` puts a lock in front of any store (`open_store` does so if the user names one); `locks` has the
locks.  All writers of a lake must use the same lock; readers need none.

1. The writer that holds the lock of a name checks whether the object exists, and writes it if not.  It still
   asks the store to create only, unless the store refuses such a request: a store that can is then safe even
   from a writer without the lock, and one that cannot ignores it.
2. If the answer of a write is lost, the writer repeats it with the same bytes under the same lock until the
   store returns the object.  A copy of the write that arrives late then changes nothing.
3. The writer checks the lock before each write, and reads its bytes back after it, under the lock: if other
   bytes are there, it lost.  It checks the lock again when it releases it.  If it lost the lock meanwhile, the
   outcome is UNKNOWN, never YES.

Limits of a lock: a writer may overwrite an object in two cases.  In the first, it loses the lock between its
check and the arrival of its write, because the lock's server fails over or cuts the connection at that moment.
In the second, its write arrives after it stopped repeating.  If another writer has read its own bytes back by
then, its acknowledged entry is lost.  The next entry names the lost one's checksum, so the pool is Corrupt.  A
store with create-only put has no such moment; prefer one.  `lake init` warns about a store without it
(`lake_core.store.probe.creates_once`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, BinaryIO, NoReturn, Protocol

import pyarrow as pa

from lake_core.errors import InvalidInput, NoCreate, Unavailable
from lake_core.store.port import Created, ObjectInfo, Store

log = logging.getLogger(__name__)

_WRITES = 3
"""How often a writer sends the same bytes; after that the outcome is unknown."""

LockCheck = Callable[[], None]
"""A function that raises Unavailable if the lock was lost."""


class Lock(Protocol):
    """Mutual exclusion by name, between all threads, processes and machines that name the same lock."""

    @property
    def kind(self) -> str:
        """The kind of lock, as `lake.json` records it: `file`, `postgresql`."""

    def hold(self, name: str) -> AbstractContextManager[LockCheck]:
        """Holds the lock of `name` within the block.

        Raises Unavailable if another writer holds it for too long, and at the end of the block if it was lost.
        """


class NoLock:
    """The lock of a lake that needs one, in a program that was given none. Reading works, and creating is
    refused."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def hold(self, name: str) -> NoReturn:
        raise InvalidInput(
            f"{name}: this lake needs a lock ({self.kind}) for writing; set LAKE_LOCK to the lock that all its "
            "writers use"
        )


class LockedStore:
    """A store whose `create` holds the lock of the name."""

    def __init__(self, store: Store, lock: Lock, *, lock_address: str = "") -> None:
        self._store, self.lock = store, lock
        self.lock_address = lock_address  # empty if the variable LAKE_LOCK named it: workers have their own

    @property
    def behind(self) -> Store:
        """The store that is used under the lock."""
        return self._store

    @property
    def uri(self) -> str:
        return self._store.uri

    @property
    def options(self) -> dict[str, Any]:
        """The arguments that `open_store` needs beside the URI to open the store behind the same lock
        (`address`)."""
        lock = {"lock": self.lock_address} if self.lock_address else {}
        return {**getattr(self._store, "options", {}), **lock}

    @property
    def lists_from_name(self) -> bool:
        return self._store.lists_from_name

    def get(self, name: str) -> bytes | None:
        return self._store.get(name)

    def get_listed(self, info: ObjectInfo) -> bytes | None:
        return self._store.get_listed(info)

    def create(self, name: str, data: bytes) -> Created:
        created: Created | None = None
        try:
            with self.lock.hold(f"{self.uri}/{name}") as check:
                created = self._create_alone(name, data, check)
        except Unavailable as error:
            if created is None:  # nothing was sent
                raise
            log.info("%s/%s: lost the lock after the write: %s", self.uri, name, error)
            return created if created is Created.EXISTS else Created.UNKNOWN
        return created

    def _create_alone(self, name: str, data: bytes, check: LockCheck) -> Created:
        """Checks whether the object exists, and writes it, while no other writer does.  Raises Unavailable only if
        nothing was sent."""
        sent = False
        for _ in range(_WRITES):
            try:
                stored = self._store.get(name)
                ours = sent and stored == data
                if ours and self._store.local_path(name) is None:
                    return Created.YES
                if stored is not None and not ours:
                    return Created.EXISTS
                check()
                created = self._write(name, data)  # our own bytes in a folder too: they may not be durable
            except Unavailable:
                if not sent:
                    raise
                continue
            if created is Created.YES and not ours and self._store.local_path(name) is None:
                created = self._read_back(name, data)
            if created is not Created.UNKNOWN:
                return Created.YES if ours else created
            sent = True
        return Created.UNKNOWN

    def _read_back(self, name: str, data: bytes) -> Created:
        """Whether our bytes are stored after the write: a writer that lost the lock may have written others."""
        try:
            stored = self._store.get(name)
        except Unavailable:
            return Created.UNKNOWN
        if stored is None:
            return Created.UNKNOWN
        return Created.YES if stored == data else Created.EXISTS

    def _write(self, name: str, data: bytes) -> Created:
        try:
            return self._store.create(name, data)
        except NoCreate:
            pass
        try:
            with self._store.open_output(name) as file:
                file.write(data)
        except Unavailable:
            return Created.UNKNOWN
        return Created.YES

    def put(self, name: str, data: bytes, *, durable: bool = False) -> None:
        self._store.put(name, data, durable=durable)

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        return self._store.list(prefix, after=after)

    def delete(self, name: str) -> None:
        self._store.delete(name)

    def delete_all(self, names: Sequence[str]) -> None:
        self._store.delete_all(names)

    def local_path(self, name: str) -> str | None:
        return self._store.local_path(name)

    def open_input(self, name: str, *, size: int | None = None) -> pa.NativeFile:
        return self._store.open_input(name, size=size)

    def open_output(self, name: str) -> AbstractContextManager[BinaryIO]:
        return self._store.open_output(name)
