"""A store that raises only the errors of the port, and refuses names that lead out of it, in front of any other.

`Lake` puts it in front of every store.  Our own stores already raise only these.  A user's own store, or a bug in a
library, may raise others; they must not pass, above all not after an entry was written.  If a create fails with an
error that the port does not define, it may have acted: UNKNOWN.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, cast

import pyarrow as pa

from lake_core.errors import LakeError
from lake_core.store.failures import FailingAsUnavailable, GuardedFile
from lake_core.store.port import Created, ObjectInfo, Store, check_name, check_prefix

log = logging.getLogger(__name__)


class GuardedStore:
    """The store `behind`, with only the errors of the port."""

    def __init__(self, behind: Store) -> None:
        self.behind = behind
        self._uri = behind.uri

    @property
    def uri(self) -> str:
        return self._uri

    @property
    def options(self) -> dict[str, Any]:
        """What `open_store` needs beside the URI (`address`)."""
        return dict(getattr(self.behind, "options", {}))

    @property
    def lists_from_name(self) -> bool:
        return self.behind.lists_from_name

    def get(self, name: str) -> bytes | None:
        check_name(name)
        with self._failing(name):
            return self.behind.get(name)

    def create(self, name: str, data: bytes) -> Created:
        check_name(name)
        try:
            return self.behind.create(name, data)
        except LakeError:
            raise
        except Exception as error:  # its class does not say whether the store acted
            log.info(
                "%s/%s: outcome of the create unknown after %s: %s",
                self.uri,
                name,
                type(error).__name__,
                error,
            )
            return Created.UNKNOWN

    def put(self, name: str, data: bytes, *, durable: bool = False) -> None:
        check_name(name)
        with self._failing(name):
            if durable:
                self.behind.put(name, data, durable=True)
            else:
                self.behind.put(name, data)

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        check_prefix(prefix)
        with self._failing(prefix):
            yield from self.behind.list(prefix, after=after)

    def delete(self, name: str) -> None:
        check_name(name)
        with self._failing(name):
            self.behind.delete(name)

    def delete_all(self, names: Sequence[str]) -> None:
        for name in names:
            check_name(name)
        with self._failing(f"{len(names)} objects"):
            self.behind.delete_all(names)

    def local_path(self, name: str) -> str | None:
        check_name(name)
        return self.behind.local_path(name)

    def open_input(self, name: str) -> pa.NativeFile:
        check_name(name)
        with self._failing(name):
            return self.behind.open_input(name)

    @contextlib.contextmanager
    def open_output(self, name: str) -> Iterator[BinaryIO]:
        check_name(name)
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
        return FailingAsUnavailable(self._uri, name)


def guarded(store: Store) -> GuardedStore:
    """The store behind a guard; a guarded store is returned as it is."""
    return store if isinstance(store, GuardedStore) else GuardedStore(store)
