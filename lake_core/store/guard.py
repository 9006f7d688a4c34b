"""A store that keeps the port's word on errors for whatever store stands behind it.

`Lake` puts it in front of every store.  Our own stores fail as the port says; of another's, and of a library's bug,
nothing may come out raw, above all not after an entry was written.  A create that failed in a way the port does not
know may have acted: UNKNOWN.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import BinaryIO, cast

import pyarrow as pa

from lake_core.errors import LakeError
from lake_core.store.failures import GuardedFile, failing_as_unavailable
from lake_core.store.port import Created, ObjectInfo, Store


class GuardedStore:
    """`behind`, whose failures are those of the port."""

    def __init__(self, behind: Store) -> None:
        self.behind = behind

    @property
    def uri(self) -> str:
        return self.behind.uri

    @property
    def lists_from_name(self) -> bool:
        return self.behind.lists_from_name

    def get(self, name: str) -> bytes | None:
        with self._failing(name):
            return self.behind.get(name)

    def create(self, name: str, data: bytes) -> Created:
        try:
            return self.behind.create(name, data)
        except LakeError:
            raise
        except Exception:  # of no class that says whether it acted
            return Created.UNKNOWN

    def put(self, name: str, data: bytes) -> None:
        with self._failing(name):
            self.behind.put(name, data)

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        with self._failing(prefix):
            yield from self.behind.list(prefix, after=after)

    def delete(self, name: str) -> None:
        with self._failing(name):
            self.behind.delete(name)

    def local_path(self, name: str) -> str | None:
        return self.behind.local_path(name)

    def open_input(self, name: str) -> pa.NativeFile:
        with self._failing(name):
            return self.behind.open_input(name)

    @contextlib.contextmanager
    def open_output(self, name: str) -> Iterator[BinaryIO]:
        with self._failing(name):
            output = self.behind.open_output(name)
            file = output.__enter__()
        try:
            yield cast(BinaryIO, GuardedFile(file, self.uri, name))
        except BaseException as error:
            with contextlib.suppress(Exception):  # the caller's error is the one to report
                output.__exit__(type(error), error, error.__traceback__)
            raise
        with self._failing(name):
            output.__exit__(None, None, None)

    def _failing(self, name: str) -> contextlib.AbstractContextManager[None]:
        return failing_as_unavailable(self.uri, name)


def guarded(store: Store) -> GuardedStore:
    """The store behind a guard; one is enough."""
    return store if isinstance(store, GuardedStore) else GuardedStore(store)
