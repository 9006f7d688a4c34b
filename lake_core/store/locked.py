"""Creating an object once where the store has no create-only put: whoever holds the lock of the name looks, writes.

`LockedStore` puts a lock in front of any store (`open_store` does so where one is named); `locks` has the locks.
All writers of a lake must use the same lock; readers need none.

1. Under the lock of a name: what exists exists; what does not is written.  The store is still asked to create only
   (a store that can is then safe even from a writer without the lock, and one that cannot ignores it), unless it
   refuses that request.
2. A write whose answer was lost is repeated with the same bytes under the same lock until the store says what is
   there: a copy of it that arrives late changes nothing then.
3. The lock is checked before each write and when it is given back.  If it was lost meanwhile, the outcome is
   UNKNOWN, never YES.

What a lock cannot do: a writer that loses it between its check and the arrival of its write (the lock's server
fails over just then), or whose write arrives after it gave up repeating, may overwrite.  A store with create-only
put has no such moment; take one where there is a choice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import BinaryIO, NoReturn, Protocol

import pyarrow as pa

from lake_core.errors import InvalidInput, NoCreate, Unavailable
from lake_core.store.port import Created, ObjectInfo, Store

_WRITES = 3

Check = Callable[[], None]
"""Raises Unavailable where the lock is not held any more."""


class Lock(Protocol):
    """Mutual exclusion by name, between all threads, processes and machines that name the same lock."""

    @property
    def kind(self) -> str:
        """What the lake's head says of it: `file`, `postgresql`."""

    def hold(self, name: str) -> AbstractContextManager[Check]:
        """Hold the lock of `name` within the block.

        Raises Unavailable where it cannot be had within a bounded time, and at the end of the block where it was
        lost on the way.
        """


class NoLock:
    """Stands where a lock is needed and this program was given none: reading works, creating is refused."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def hold(self, name: str) -> NoReturn:
        raise InvalidInput(
            f"{name}: this lake was made with a lock ({self.kind}); "
            "set LAKE_LOCK to the one that all its writers use"
        )


class LockedStore:
    """A store whose `create` holds the lock of the name."""

    def __init__(self, store: Store, lock: Lock) -> None:
        self._store, self.lock = store, lock

    @property
    def uri(self) -> str:
        return self._store.uri

    @property
    def lists_from_name(self) -> bool:
        return self._store.lists_from_name

    def get(self, name: str) -> bytes | None:
        return self._store.get(name)

    def create(self, name: str, data: bytes) -> Created:
        created: Created | None = None
        try:
            with self.lock.hold(f"{self.uri}/{name}") as check:
                created = self._create_alone(name, data, check)
        except Unavailable:
            if created is None:  # nothing was sent
                raise
            return created if created is Created.EXISTS else Created.UNKNOWN
        return created

    def _create_alone(self, name: str, data: bytes, check: Check) -> Created:
        """Look and write, while nobody else does.  Raises Unavailable only where nothing was sent."""
        sent = False
        for _ in range(_WRITES):
            try:
                there = self._store.get(name)
                ours = sent and there == data
                if ours and self._store.local_path(name) is None:
                    return Created.YES
                if there is not None and not ours:
                    return Created.EXISTS
                check()
                created = self._write(name, data)  # also ours in a folder, which shows what is not durable
            except Unavailable:
                if not sent:
                    raise
                continue
            if created is not Created.UNKNOWN:
                return Created.YES if ours else created
            sent = True
        return Created.UNKNOWN

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

    def put(self, name: str, data: bytes) -> None:
        self._store.put(name, data)

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        return self._store.list(prefix, after=after)

    def delete(self, name: str) -> None:
        self._store.delete(name)

    def local_path(self, name: str) -> str | None:
        return self._store.local_path(name)

    def open_input(self, name: str) -> pa.NativeFile:
        return self._store.open_input(name)

    def open_output(self, name: str) -> AbstractContextManager[BinaryIO]:
        return self._store.open_output(name)
