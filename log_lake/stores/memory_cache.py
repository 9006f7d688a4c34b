"""Ranges of immutable objects in the memory of this process: what was read a moment ago is not asked for again.

All stores of a process share the room (`LAKE_MEMORY_CACHE`, 64MiB; 0: none).  Only short ranges are held, as
point reads and small objects ask for: the long ones of a scan would push all others out.  No range is held longer
than `SECONDS`, because another process may have deleted the object (decision 293).

Callers: `opening`.
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
"""Bytes of all ranges that a process holds, unless the environment gives another number."""

LONGEST = 1 << 20
"""Bytes of the longest range that is held."""

SECONDS = 300.0
"""Age up to which a range is served: a process elsewhere may have erased the object meanwhile."""


class _Held(NamedTuple):
    data: bytes
    since: float


Key = tuple[int, str]
"""A store by its number in this process, and the name of an object."""


class Memory:
    """The ranges that a process holds, the least recently used first.  Safe to use from several threads."""

    def __init__(self, room: int = ROOM, *, clock: Callable[[], float] = time.monotonic) -> None:
        """`room`: bytes that all ranges may take; `clock` gives seconds."""
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
        """The cache of one store, whose objects are not mixed with those of another; `behind` is asked next."""
        with self._lock:
            self._stores += 1
            return MemoryCache(self, self._stores, behind)

    def ranges(self, key: Key) -> list[Range]:
        """The ranges of an object that are held and young enough."""
        with self._lock:
            return self._young(key)

    def find(self, key: Key, asked: Range) -> bytes | None:
        """The bytes of a range that lies in one that is held; None if it lies in none."""
        with self._lock:
            for one in self._young(key):
                if one.begin <= asked.begin and asked.end <= one.end:
                    self._held.move_to_end((key, one))
                    return self._held[key, one].data[asked.begin - one.begin : asked.end - one.begin]
        return None

    def keep(self, key: Key, asked: Range, data: bytes, *, forgets: int) -> None:
        """Hold the bytes, unless something was forgotten since `forgets` was read."""
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
        """Drop these objects, whichever store read them, and hold no bytes of theirs that are under way."""
        with self._lock:
            self.forgets += 1
            gone = set(names)  # which hold the id of their pool, so no other lake has them
            for key in [key for key in self._of if key[1] in gone]:
                for one in [*self._of[key]]:
                    self._drop(key, one)

    def _young(self, key: Key) -> list[Range]:
        """The ranges of an object, after old ones were dropped."""
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
    """The ranges of one store's objects in memory, and what `behind` holds of them."""

    def __init__(self, memory: Memory, store: int, behind: RangeCache) -> None:
        self._memory, self._store, self._behind = memory, store, behind

    def held(self, name: str) -> Sequence[Range]:
        """The ranges in memory, then those behind."""
        return [*self._memory.ranges((self._store, name)), *self._behind.held(name)]

    def fetched(self, name: str, asked: Range, fetch: Callable[[], bytes]) -> bytes:
        """The bytes from memory, from behind, or from `fetch`."""
        key = (self._store, name)
        data = self._memory.find(key, asked)
        if data is not None:
            return data
        forgets = self._memory.forgets
        data = self._behind.fetched(name, asked, fetch)
        self._memory.keep(key, asked, data, forgets=forgets)
        return data

    def forget(self, names: Sequence[str]) -> None:
        """Drop the objects here and behind."""
        self._behind.forget(names)
        self._memory.forget(names)
