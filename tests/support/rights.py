"""A store that allows what a role may do and denies everything else, like a bucket with a policy of these
rights."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import BinaryIO

import pyarrow as pa

from lake_core import naming
from lake_core.store import Created, ObjectInfo, Store
from local.rights import Operation
from log_lake.stores.failures import unavailable
from log_lake.stores.memory import MemoryStore

May = Callable[[Operation, str], bool]
"""A function that tells whether a process may do an operation on the object with a name; for a list the name is ""
(`local.rights`)."""


class RightsStore:
    """The store `behind`, for a process that may do only what `may` allows. `denied` lists what it tried in vain.

    As S3 and Google do, it denies reading a missing object to a process that may not list, so that no name can
    be guessed.
    """

    lists_from_name = True

    def __init__(self, behind: Store, may: May) -> None:
        self.behind, self.may = behind, may
        self.before_entries: list[
            Callable[[], object]
        ] = []  # what happens before the next entries are created
        self.used: set[tuple[Operation, str]] = set()
        self.denied: set[tuple[Operation, str]] = set()

    def elsewhere(self) -> RightsStore:
        """Returns an empty store, for a process that has the same rights there."""
        store = RightsStore(MemoryStore(), self.may)
        store.used, store.denied = self.used, self.denied
        return store

    @property
    def uri(self) -> str:
        return self.behind.uri

    def _check(self, operation: Operation, name: str) -> None:
        target = "" if operation is Operation.LIST else name
        if not self.may(operation, target):
            self.denied.add((operation, target))
            raise unavailable(self.uri, name, PermissionError("Access Denied"))
        self.used.add((operation, target))

    def _is_there(self, name: str) -> bool:
        return self.behind.get(name) is not None

    def _check_missing(self, name: str) -> None:
        if not self._is_there(name):
            self._check(Operation.LIST, name)

    def get(self, name: str) -> bytes | None:
        self._check(Operation.READ, name)
        self._check_missing(name)
        return self.behind.get(name)

    def get_listed(self, info: ObjectInfo) -> bytes | None:
        self._check(Operation.READ, info.name)
        self._check_missing(info.name)
        return self.behind.get_listed(info)

    def open_input(self, name: str, *, size: int | None = None) -> pa.NativeFile:
        self._check(Operation.READ, name)
        self._check_missing(name)
        return self.behind.open_input(name, size=size)

    def local_path(self, name: str) -> str | None:
        return None

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        self._check(Operation.LIST, prefix)
        return self.behind.list(prefix, after=after)

    def create(self, name: str, data: bytes) -> Created:
        self._check(Operation.CREATE, name)
        if self.before_entries and naming.entry_version(name) is not None:
            self.before_entries.pop()()
        return self.behind.create(name, data)

    def put(self, name: str, data: bytes, *, durable: bool = False) -> None:
        self._check(Operation.PUT, name)
        self.behind.put(name, data, durable=durable)

    def open_output(self, name: str) -> AbstractContextManager[BinaryIO]:
        self._check(Operation.CREATE, name)
        return self.behind.open_output(name)

    def delete(self, name: str) -> None:
        self._check(Operation.DELETE, name)
        self.behind.delete(name)

    def delete_all(self, names: Sequence[str]) -> None:
        for name in names:
            self.delete(name)
