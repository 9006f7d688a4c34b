"""A store whose requests can be scripted, so that a race or a lost answer happens exactly where a test says.

    store.on("create", entry, before=other_writer)          somebody is faster by one request
    store.on("create", entry, answer=lost)                  the write happens, its answer does not arrive
    store.on("create", entry, instead=lost)                 the request itself does not arrive
    store.on("get", entry, instead=unavailable, times=3)    the next three reads fail

A rule is used for one request unless `times` says more. A request for which there is no rule goes to the store
behind. `requests` lists all requests.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa

from lake_core.errors import Unavailable
from lake_core.store import Created, ObjectInfo, Store
from log_lake.stores.memory import MemoryStore

ALWAYS = 1_000_000


def lost(*_: Any) -> Created:
    """Returns the answer of a create whose answer was lost."""
    return Created.UNKNOWN


def unavailable(*_: Any) -> Any:
    """Raises Unavailable, like a store that refuses."""
    raise Unavailable("the store refuses for now")


def raising(error: BaseException) -> Callable[..., Any]:
    """Returns a function that raises this error whenever it is called."""

    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


def one_by_one(ask: Callable[[Any], Any], each: Sequence[Any]) -> list[Any]:
    """In place of `Journal.fetch`, which asks at the same time: for tests that count requests, or stop at one."""
    return [ask(one) for one in each]


@dataclass
class _Rule:
    request: str
    name: str
    before: Callable[[], object] | None
    instead: Callable[[], Any] | None
    answer: Callable[[Any], Any] | None
    times: int


class StoreInFront:
    """A store in front of another one. Every request goes through `ask`, which a subclass may change."""

    behind: Store

    def ask(self, request: str, name: str, call: Callable[[], Any]) -> Any:
        """Returns the answer of a request: that of the store behind, unless a subclass decides otherwise."""
        return call()

    @property
    def uri(self) -> str:
        return self.behind.uri

    @property
    def lists_from_name(self) -> bool:
        return self.behind.lists_from_name

    def get(self, name: str) -> bytes | None:
        return self.ask("get", name, lambda: self.behind.get(name))

    def get_listed(self, info: ObjectInfo) -> bytes | None:
        return self.ask("get", info.name, lambda: self.behind.get_listed(info))

    def create(self, name: str, data: bytes) -> Created:
        return self.ask("create", name, lambda: self.behind.create(name, data))

    def put(self, name: str, data: bytes, *, durable: bool = False) -> None:
        self.ask("put", name, lambda: self.behind.put(name, data, durable=durable))

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        return self.ask("list", prefix, lambda: self.behind.list(prefix, after=after))

    def delete(self, name: str) -> None:
        self.ask("delete", name, lambda: self.behind.delete(name))

    def delete_all(self, names: Sequence[str]) -> None:
        self.ask("delete_all", names[0] if names else "", lambda: self.behind.delete_all(names))

    def local_path(self, name: str) -> str | None:
        return None

    def open_input(self, name: str, *, size: int | None = None) -> pa.NativeFile:
        return self.ask("open_input", name, lambda: self.behind.open_input(name, size=size))

    def open_output(self, name: str) -> AbstractContextManager[BinaryIO]:
        return self.ask("open_output", name, lambda: self.behind.open_output(name))


class ScriptedStore(StoreInFront):
    """A store in front of another one that does what its rules say."""

    def __init__(self, behind: Store | None = None) -> None:
        self.behind: Store = behind or MemoryStore("memory://scripted")
        self.requests: list[tuple[str, str]] = []
        self._rules: list[_Rule] = []

    def on(
        self,
        request: str,
        name: str,
        *,
        before: Callable[[], object] | None = None,
        instead: Callable[[], Any] | None = None,
        answer: Callable[[Any], Any] | None = None,
        times: int = 1,
    ) -> None:
        """Adds a rule: what happens at the next `times` requests of this kind for names that end like this."""
        self._rules.append(_Rule(request, name, before, instead, answer, times))

    def forget(self) -> None:
        """Removes all rules."""
        self._rules.clear()

    def asked(self, request: str, name: str = "") -> int:
        """Returns how often the request was made for names that end like this."""
        return sum(1 for r, n in self.requests if r == request and n.endswith(name))

    def ask(self, request: str, name: str, call: Callable[[], Any]) -> Any:
        self.requests.append((request, name))
        for rule in self._rules:
            if rule.times and rule.request == request and name.endswith(rule.name):
                rule.times -= 1
                if rule.before is not None:
                    rule.before()
                result = call() if rule.instead is None else rule.instead()
                return result if rule.answer is None else rule.answer(result)
        return call()


def opened(name: str, data: Callable[[], bytes | None]) -> pa.NativeFile:
    """Opens a file that is read in place, as on an object store: once it is deleted, reads fail."""
    return pa.PythonFile(_InPlace(name, data), mode="r")


class _InPlace(io.RawIOBase):
    def __init__(self, name: str, data: Callable[[], bytes | None]) -> None:
        self._name, self._data, self._at = name, data, 0
        self._size = len(self._there())

    def _there(self) -> bytes:
        data = self._data()
        if data is None:
            raise FileNotFoundError(self._name)
        return data

    def read(self, size: int = -1) -> bytes:
        begin, end = self._at, self._size if size < 0 else min(self._at + size, self._size)
        self._at = end
        return self._there()[begin:end]

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True


class InPlaceStore(MemoryStore):
    """A store in memory whose open files are read in place."""

    def local_path(self, name: str) -> str | None:
        return None

    def open_input(self, name: str, *, size: int | None = None) -> pa.NativeFile:
        return opened(name, lambda: self.get(name))
