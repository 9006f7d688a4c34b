"""Wraps any store, so that it raises only the errors of the port, and refuses names that lead out of it.

`Lake` wraps every store in it.  Our own stores already raise only these errors.  A user's own store, or a bug
in a library, may raise others.  They must not reach the caller, least of all after an entry was written.  If a
create fails with an error that the port does not define, it may have acted: the outcome is UNKNOWN.

Each store has its own messages for a denial, and some name neither the object nor the missing right. The guard
adds both.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, BinaryIO, cast

import pyarrow as pa

from lake_core.errors import Denied, LakeError
from lake_core.store.meter import DELETES, LISTS, READS, RECEIVED, SENT, WRITES, Meter, own_meter
from lake_core.store.port import Created, ObjectInfo, Store, check_name, check_prefix
from log_lake.stores.failures import FailingAsUnavailable, GuardedFile
from log_lake.stores.ranges import RangedFile
from log_lake.stores.read_only import ReadOnlyStore

log = logging.getLogger(__name__)

READ, LIST = "read it, and to list the lake", "list it"
CREATE, WRITE, DELETE = "create it", "write it", "delete it"
"""Rights that a process may lack (docs/trust.md).

Stores deny reading a missing object to a process that may not list, so that it does not learn that the name is
free.
"""


class _Naming(FailingAsUnavailable):
    """Like its base class, but if the error is a denial, adds which right the process lacks (`right`; "" if the
    text already says so)."""

    __slots__ = ("_right",)

    def __init__(self, uri: str, name: str, right: str) -> None:
        super().__init__(uri, name)
        self._right = right

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            super().__exit__(kind, error, trace)
        except Denied as denial:
            raise self._named(denial) from error
        if isinstance(error, Denied) and self._right:
            raise self._named(error) from error

    def _named(self, denial: Denied) -> Denied:
        text = str(denial)
        return Denied(
            f"{text}; grant this process the right to {self._right} (docs/trust.md)" if self._right else text
        )


class _Output(GuardedFile):
    """A file that is being written; `size` counts its bytes."""

    size = 0

    def write(self, data: Any) -> int:
        written = super().write(data)
        self.size += written
        return written

    def _failing(self) -> FailingAsUnavailable:
        return _Naming(self._uri, self._name, CREATE)


class GuardedStore:
    """The store `behind`, with only the errors of the port.

    `meter` counts requests.  If the store behind counts none itself, the meter counts the calls of the port. An
    opened file then counts as one request for all of its bytes, because the system reads it, not the lake.
    """

    def __init__(self, behind: Store) -> None:
        self.behind = behind
        own = own_meter(behind)
        self.meter = own or Meter()
        self._counted = None if own else self.meter
        self._uri = behind.uri
        self._refuses_itself = isinstance(behind, ReadOnlyStore)

    @property
    def uri(self) -> str:
        return self._uri

    @property
    def options(self) -> dict[str, Any]:
        """The arguments that `open_store` needs beside the URI (`address`)."""
        return dict(getattr(self.behind, "options", {}))

    @property
    def lists_from_name(self) -> bool:
        return self.behind.lists_from_name

    def get(self, name: str) -> bytes | None:
        check_name(name)
        with self._failing(name, READ):
            data = self.behind.get(name)
        self._count(READS, len(data or b""), RECEIVED)
        return data

    def get_listed(self, info: ObjectInfo) -> bytes | None:
        check_name(info.name)
        with self._failing(info.name, READ):
            data = self.behind.get_listed(info)
        if info.tag:
            self._count(READS, len(data or b""), RECEIVED)
        return data

    def create(self, name: str, data: bytes) -> Created:
        check_name(name)
        self._count(WRITES, len(data), SENT)
        try:
            return self.behind.create(name, data)
        except Denied:
            with self._failing(name, CREATE):
                raise
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
        self._count(WRITES, len(data), SENT)
        with self._failing(name, WRITE):
            if durable:
                self.behind.put(name, data, durable=True)
            else:
                self.behind.put(name, data)

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        check_prefix(prefix)
        self._count(LISTS)
        with self._failing(prefix, LIST):
            yield from self.behind.list(prefix, after=after)

    def delete(self, name: str) -> None:
        check_name(name)
        self._count(DELETES)
        with self._failing(name, DELETE):
            self.behind.delete(name)

    def delete_all(self, names: Sequence[str]) -> None:
        for name in names:
            check_name(name)
            self._count(DELETES)
        with self._failing(f"{len(names)} objects", DELETE):
            self.behind.delete_all(names)

    def local_path(self, name: str) -> str | None:
        check_name(name)
        return self.behind.local_path(name)

    def open_input(self, name: str, *, size: int | None = None) -> pa.NativeFile:
        check_name(name)
        with self._failing(name, READ):
            file = self.behind.open_input(name, size=size)
        if isinstance(file, RangedFile):  # it sends requests only when it is read
            file.fail_in(lambda: self._failing(name, READ))
        elif self._counted is not None:
            self._count(READS, file.size() if size is None else size, RECEIVED)
        return file

    @contextlib.contextmanager
    def open_output(self, name: str) -> Iterator[BinaryIO]:
        check_name(name)
        with self._failing(name, CREATE):
            output = self.behind.open_output(name)
            file = output.__enter__()
        guarding = _Output(file, self.uri, name)
        try:
            yield cast(BinaryIO, guarding)
        except BaseException as error:
            with contextlib.suppress(Exception):  # the caller's error is the one to report
                output.__exit__(type(error), error, error.__traceback__)
            raise
        with self._failing(name, CREATE):
            output.__exit__(None, None, None)
        self._count(WRITES, guarding.size, SENT)

    def _count(self, kind: int, size: int = 0, direction: int = RECEIVED) -> None:
        if self._counted is not None:
            self._counted.request(kind, size, direction)

    def _failing(self, name: str, right: str) -> contextlib.AbstractContextManager[None]:
        return _Naming(self._uri, name, "" if self._refuses_itself and right not in (READ, LIST) else right)


def guarded(store: Store) -> GuardedStore:
    """Returns the store behind a guard; a guarded store is returned unchanged."""
    return store if isinstance(store, GuardedStore) else GuardedStore(store)
