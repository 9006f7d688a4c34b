"""Whatever a store does: what leaves the engine is an error of the lake, and nothing that was acknowledged is lost.

One request after the other of a whole working day fails, with an exception that no port knows, before it acts or
after; then the same words are said again, and the lake is looked at by a new process.
"""

from __future__ import annotations

import contextlib
import errno
import struct
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO

import pyarrow as pa
import pytest

from lake_core.errors import LakeError
from lake_core.ids import IdSource
from lake_core.journal import purge, write_state
from lake_core.journal.retry import Retry
from lake_core.store import ObjectInfo
from log_lake.lake import Lake
from log_lake.rewriting.compaction import compact
from log_lake.stores.memory import MemoryStore
from tests.support.records import an_id, fixed_ids
from tests.support.stores import StoreInFront

pytestmark = pytest.mark.usefixtures("without_warnings")


class BotoError(Exception):
    """As botocore raises them."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.response = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": 400}}


EXCEPTIONS: dict[str, Callable[[], Exception]] = {
    "EIO": lambda: OSError(errno.EIO, "input/output error"),
    "ESTALE": lambda: OSError(errno.ESTALE, "stale file handle"),
    "EACCES": lambda: PermissionError(errno.EACCES, "permission denied"),
    "EMFILE": lambda: OSError(errno.EMFILE, "too many open files"),
    "ENOSPC": lambda: OSError(errno.ENOSPC, "no space left on device"),
    "no errno": lambda: OSError("Couldn't deserialize thrift"),
    "Arrow": lambda: pa.ArrowInvalid("not Arrow"),
    "Arrow's key": lambda: pa.ArrowKeyError("no such field"),
    "struct": lambda: struct.error("unpack requires 8 bytes"),
    "botocore": lambda: BotoError("ExpiredToken"),
    "runtime": lambda: RuntimeError("event loop is closed"),
    "memory": lambda: MemoryError(),
}


@dataclass(eq=False)
class FailingStore(StoreInFront):
    """Counts its requests; the one of number `failing` fails with `error`, having acted or not."""

    behind: MemoryStore = field(default_factory=MemoryStore)
    error: Callable[[], Exception] = EXCEPTIONS["EIO"]
    failing: int = -1
    acts: bool = False
    asked: int = 0

    def ask(self, request: str, name: str, call: Callable[[], Any]) -> Any:
        return self.count(call)

    def count(self, call: Callable[[], Any]) -> Any:
        self.asked += 1
        if self.asked - 1 != self.failing:
            return call()
        if self.acts:
            call()
        raise self.error()

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        yield from self.count(lambda: [*self.behind.list(prefix, after=after)])

    def open_input(self, name: str, *, size: int | None = None) -> pa.NativeFile:
        return pa.PythonFile(_Input(super().open_input(name, size=size), self), mode="r")

    def open_output(self, name: str) -> AbstractContextManager[BinaryIO]:
        return self._output(name)

    @contextlib.contextmanager
    def _output(self, name: str) -> Iterator[Any]:
        output = self.count(lambda: self.behind.open_output(name))
        with output as file:
            yield _Output(file, self)
            if not self.acts:
                self.count(lambda: None)
        if self.acts:
            self.count(lambda: None)


class _Input:
    """A file of which each read is a request."""

    def __init__(self, file: Any, store: FailingStore) -> None:
        self._file, self._store = file, store

    def read(self, size: int = -1) -> bytes:
        return self._store.count(lambda: self._file.read(None if size < 0 else size))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class _Output:
    """A file of which each write is a request."""

    def __init__(self, file: Any, store: FailingStore) -> None:
        self._file, self._store = file, store

    def write(self, data: Any) -> int:
        return self._store.count(lambda: self._file.write(data))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@dataclass
class Day:
    """What is done to one pool; `acknowledged` are the keys of loads that were."""

    lake: Lake
    ids: IdSource
    acknowledged: list[int] = field(default_factory=list)
    deleted: list[int] = field(default_factory=list)

    def load(self, key: int, token: str) -> None:
        self.lake.pool("p").branch().append(pa.table({"k": [key]}), token=token)
        self.acknowledged.append(key)

    def checkpoint(self) -> None:
        journal = self.lake.pool("p").history.journal
        write_state(journal, journal.load(), id=an_id(77), now=0.0)

    def purge(self) -> None:
        journal = self.lake.pool("p").history.journal
        purge(journal, until=journal.load().version)

    def compact(self) -> None:
        pool = self.lake.pool("p")
        compact(pool.branch(), pool.at().references)

    def scan(self) -> None:
        keys = self.lake.pool("p").at().to_table()["k"].to_pylist()
        assert keys == [k for k in sorted(self.acknowledged) if k not in self.deleted]

    def delete(self) -> None:
        self.lake.pool("p").branch().delete(where="k = 2", token="deleted")
        self.deleted = [2]

    def steps(self) -> list[Callable[[], object]]:
        return [
            lambda: self.load(1, "one"),
            lambda: self.load(2, "two"),
            self.scan,
            self.delete,
            self.checkpoint,
            self.purge,
            lambda: self.load(3, "three"),
            self.compact,
            self.scan,
            lambda: self.load(4, "four"),
            lambda: list(self.lake.pool("p").log()),
        ]


def opened(store: Any, ids: IdSource) -> Lake:
    """A new process, of a writer without patience."""
    lake = Lake.open_on(store, ids=ids, author="test")
    lake.catalog.journal.retry = Retry(repeats=3, sleep=lambda seconds: None)
    history = lake.pool("p").history
    history.journal.retry = replace(lake.catalog.journal.retry)
    history.journal.fetch = lambda read, names: [read(name) for name in names]
    return lake


def lived(error: Callable[[], Exception], failing: int, *, acts: bool) -> int:
    """A day of which one request fails; how many requests it took."""
    store, ids = FailingStore(error=error, acts=acts), fixed_ids()
    Lake.create_on(store.behind, ids=ids, author="test").create_pool("p", key="k")
    day = Day(opened(store.behind, ids), ids)
    day.lake = opened(store, ids)
    day.lake.pool("p").history._contended = 3
    store.asked, store.failing = 0, failing
    for step in day.steps():
        problems: list[str] = []
        while True:
            try:
                step()
            except LakeError as problem:
                problems.append(f"{type(problem).__name__}: {problem}")
                assert len(problems) < 3, f"one failure does not last: {problems}"
            else:
                break
        assert not any("\n" in problem for problem in problems)
    after = Day(opened(store.behind, ids), ids, day.acknowledged, day.deleted)
    assert sorted(day.acknowledged) == [1, 2, 3, 4]
    after.scan()
    after.load(5, "five")
    after.scan()
    return store.asked


@pytest.mark.parametrize("acts", [False, True], ids=["before it acts", "after it acted"])
@pytest.mark.parametrize("error", EXCEPTIONS)
def test_every_failure_of_a_store_is_an_error_of_the_lake_and_loses_nothing(error: str, acts: bool) -> None:
    """Each request of the day fails once, with the next kind of exception in turn."""
    requests = lived(EXCEPTIONS[error], -1, acts=acts)
    assert requests > 60
    first = 2 * list(EXCEPTIONS).index(error) + acts
    for failing in range(first, requests, 2 * len(EXCEPTIONS)):
        lived(EXCEPTIONS[error], failing, acts=acts)


def test_a_delete_that_is_committed_is_said_to_be_although_the_store_fails_then() -> None:
    store, ids = FailingStore(), fixed_ids()
    Lake.create_on(store.behind, ids=ids, author="test").create_pool("p", key="k")
    day = Day(opened(store, ids), ids)
    day.load(1, "one")
    branch = day.lake.pool("p").branch()
    commit = branch.history.commit

    def commit_and_fail(draft: Any) -> Any:
        landed = commit(draft)
        store.failing = store.asked
        return landed

    branch.history.commit = commit_and_fail  # type: ignore[method-assign]
    assert branch.delete(where="k = 1").version == 2
