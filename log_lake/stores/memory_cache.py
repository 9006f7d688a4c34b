"""Caches ranges of immutable objects in the memory of this process, so that a recent read is not requested again.

All stores of a process share one budget of bytes (`LAKE_MEMORY_CACHE`, 64MiB; 0: no cache).  Only short ranges
are cached, such as those of point reads and small objects: the long ones of a scan would displace all others.
No range is cached longer than `SECONDS`, because another process may have deleted the object (decision 293).

Called by `opening`.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from lake_core.store.planned import Range
from log_lake.stores.ranges import NO_CACHE, RangeCache

ROOM = 64 << 20
"""The most bytes of all ranges that a process caches, unless the environment sets another number."""

LONGEST = 1 << 20
"""The most bytes of a range that is cached."""

SECONDS = 300.0
"""The age in seconds up to which a range is used: another process may have erased the object meanwhile."""


class _Held(NamedTuple):
    data: bytes
    since: float


Key = tuple[int, str]
"""A store by its number in this process, and the name of an object."""


class Memory:
    """The ranges that a process caches, the least recently used first.  Safe to use from several threads."""

    def __init__(self, room: int = ROOM, *, clock: Callable[[], float] = time.monotonic) -> None:
        """`room`: the most bytes of all ranges; `clock` returns seconds."""
        self._room, self._clock = room, clock
        self._held: OrderedDict[tuple[Key, Range], _Held] = OrderedDict()
        self._of: dict[Key, list[Range]] = {}
        self._stores = 0
        self._lock = threading.Lock()
        self.size = 0
        """Bytes that are held."""
        self.forgets = 0
        """How often objects were forgotten."""

    def cache(self, behind: RangeCache = NO_CACHE) -> MemoryCache:
        """Returns the cache of one store, which is separate from those of other stores; `behind` is asked for what
        it lacks."""
        with self._lock:
            self._stores += 1
            return MemoryCache(self, self._stores, behind)

    def ranges(self, key: Key) -> list[Range]:
        """Returns the ranges of an object that are cached and not too old."""
        with self._lock:
            return self._young(key)

    def find(self, key: Key, asked: Range) -> bytes | None:
        """Returns the bytes of a range if they lie inside a cached one, otherwise None."""
        with self._lock:
            for one in self._young(key):
                if one.begin <= asked.begin and asked.end <= one.end:
                    self._held.move_to_end((key, one))
                    return self._held[key, one].data[asked.begin - one.begin : asked.end - one.begin]
        return None

    def keep(self, key: Key, asked: Range, data: bytes, *, forgets: int) -> None:
        """Caches the bytes, unless an object was forgotten after the caller read the counter as `forgets`."""
        if len(data) > min(LONGEST, self._room):
            return
        with self._lock:
            if forgets != self.forgets:
                return
            self._drop(key, asked)
            self._held[key, asked] = _Held(data, self._clock())
            self._of.setdefault(key, []).append(asked)
            self.size += len(data)
            while self.size > self._room:  # ends at the latest when nothing is held
                self._drop(*next(iter(self._held)))

    def forget(self, names: Sequence[str]) -> None:
        """Drops these objects, whichever store read them, and discards their bytes that are still being fetched."""
        with self._lock:
            self.forgets += 1
            gone = set(names)  # which hold the id of their pool, so no other lake has them
            for key in [key for key in self._of if key[1] in gone]:
                for one in [*self._of[key]]:
                    self._drop(key, one)

    def _young(self, key: Key) -> list[Range]:
        """Returns the cached ranges of an object, after dropping those that are too old."""
        begun = self._clock() - SECONDS
        for one in [one for one in self._of.get(key, ()) if self._held[key, one].since < begun]:
            self._drop(key, one)
        return [*self._of.get(key, ())]

    def _drop(self, key: Key, one: Range) -> None:
        dropped = self._held.pop((key, one), None)
        if dropped is None:
            return
        self.size -= len(dropped.data)
        self._of[key].remove(one)
        if not self._of[key]:
            del self._of[key]


class MemoryCache:
    """The ranges of one store's objects in memory, and those that `behind` has."""

    def __init__(self, memory: Memory, store: int, behind: RangeCache) -> None:
        self._memory, self._store, self._behind = memory, store, behind

    def held(self, name: str) -> Sequence[Range]:
        """Returns the ranges in memory, then those of `behind`."""
        return [*self._memory.ranges((self._store, name)), *self._behind.held(name)]

    def fetched(self, name: str, asked: Range, fetch: Callable[[], bytes]) -> bytes:
        """Returns the bytes from memory, from `behind`, or from `fetch`."""
        key = (self._store, name)
        data = self._memory.find(key, asked)
        if data is not None:
            return data
        forgets = self._memory.forgets
        data = self._behind.fetched(name, asked, fetch)
        self._memory.keep(key, asked, data, forgets=forgets)
        return data

    def forget(self, names: Sequence[str]) -> None:
        """Drops the objects here and in `behind`."""
        self._behind.forget(names)
        self._memory.forget(names)
