"""A store that fails as the seed says, in all the ways a store fails.

Every request lets others run first.  Then it may be refused before it acts; it may act and lose its answer, or
not act and seem lost, or arrive later, after its sender has given it up.  A refusal, and a lost answer, may be any
exception at all, as libraries raise them.  A hint or a request is not put at once: others may see half of it, and
half is left of it where its writer is killed.

What is answered is true: a read sees all that was answered before.  A listing does too, and yet it is no single
moment: it is made of parts, which are looked at one after the other.  On a store that lists from a name on they are
halves of pages in order of names; on the other they are in no order at all.
"""

from __future__ import annotations

import contextlib
import errno
import io
import random
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, NoReturn

import pyarrow as pa

from lake_core.errors import Unavailable
from lake_core.store import Created, ObjectInfo
from tests.simulation.scheduler import Scheduler
from tests.simulation.truth import Witness
from tests.support.stores import opened

PAGE = 3
SHARDS = 3


@dataclass
class Faults:
    """How likely each fault is, for one request."""

    refused: float = 0.01
    answer_lost: float = 0.03
    never_arrived: float = 0.02
    late: float = 0.01

    strange: float = 0.3
    """How many of them are exceptions of no class that the port knows."""

    def none(self) -> None:
        """From now on all is well."""
        self.refused = self.answer_lost = self.never_arrived = self.late = 0.0


STRANGE: tuple[Exception, ...] = (
    *(OSError(n, errno.errorcode[n]) for n in (errno.EIO, errno.ESTALE, errno.EACCES, errno.EMFILE)),
    pa.ArrowInvalid("not what was expected"),
    struct.error("unpack requires more bytes"),
    RuntimeError("event loop is closed"),
    KeyError("ETag"),
)


def tag_of(data: bytes) -> str:
    """The tag of an object: of its bytes, as S3's is."""
    return f"{zlib.crc32(data):08x}-{len(data)}"


@dataclass
class FaultyStore:
    """Objects in a dictionary, behind faults.  All processes share it."""

    chance: random.Random
    scheduler: Scheduler
    truth: Witness
    faults: Faults
    lists_from_name: bool
    objects: dict[str, bytes] = field(default_factory=dict)
    late: list[Callable[[], object]] = field(default_factory=list)
    requests: int = 0
    happened: Counter[str] = field(default_factory=Counter)
    halves: set[str] = field(default_factory=set)
    """Names that are being put."""
    uri: str = "memory://simulated"
    clock: Callable[[], float] = float
    """The store's own, in seconds."""
    modified: dict[str, float] = field(default_factory=dict)
    page: int = PAGE
    """Names of a page of a listing."""
    puts_halves: bool = True
    """Whether a put is seen half; our stores replace an object at once, and the port promises it of no store."""

    def _request(self) -> None:
        if self.scheduler.is_elsewhere:
            return  # its order among the others is not the seed's
        self.scheduler.pause()
        self.requests += 1
        if self.late and self.chance.random() < 0.05:
            self.late.pop(self.chance.randrange(len(self.late)))()
        if self.chance.random() < self.faults.refused:
            self._refuse()

    def _refuse(self) -> NoReturn:
        if self.chance.random() < self.faults.strange:
            self.happened["strange refusal"] += 1
            raise self.chance.choice(STRANGE)
        raise Unavailable("the store refuses for now")

    def arrive(self) -> None:
        """Everything that is late arrives."""
        while self.late:
            self.late.pop()()

    def _act(self, act: Callable[[], bool]) -> bool | None:
        """The outcome of something that changes the store, None where the answer is lost."""
        if self.chance.random() < self.faults.never_arrived:
            return None
        if self.chance.random() < self.faults.late:
            self.happened["late"] += 1
            self.late.append(act)
            return None
        done = act()
        return None if self.chance.random() < self.faults.answer_lost else done

    def _apply(self, name: str, data: bytes) -> bool:
        if name in self.objects:
            return False
        self.objects[name] = data
        self.modified[name] = self.clock()
        self.truth.created(name, data)
        return True

    def _remove(self, name: str) -> bool:
        if self.objects.pop(name, None) is not None:
            self.truth.deleted(name)
        return True

    def get(self, name: str) -> bytes | None:
        self._request()
        self.happened["half a put seen"] += name in self.halves
        return self.objects.get(name)

    def get_listed(self, info: ObjectInfo) -> bytes | None:
        data = self.get(info.name)
        return data if data is not None and tag_of(data) == info.tag else None

    def create(self, name: str, data: bytes) -> Created:
        self._request()
        created = self._act(lambda: self._apply(name, data))
        if created is None:
            if self.chance.random() < self.faults.strange:
                self.happened["strange answer of a create"] += 1
                raise self.chance.choice(STRANGE)
            return Created.UNKNOWN
        return Created.YES if created else Created.EXISTS

    def put(self, name: str, data: bytes, *, durable: bool = False) -> None:
        self._request()
        if self.puts_halves:
            self.objects[name] = data[: self.chance.randrange(len(data) + 1)]
            self.modified[name] = self.clock()
            self.halves.add(name)
            self.scheduler.pause()  # whoever is killed here leaves it so
            self.halves.discard(name)
        self.objects[name] = data
        self.modified[name] = self.clock()

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        folder = prefix.rstrip("/") + "/"
        return self._pages(folder, after) if self.lists_from_name else self._shards(folder, after)

    def _pages(self, folder: str, after: str) -> Iterator[ObjectInfo]:
        while True:  # bounded by the names there are
            self._request()
            page: list[ObjectInfo] = []
            for part in (self.page // 2, self.page - self.page // 2):  # a page is no single moment either
                if page and not self.scheduler.is_elsewhere:
                    self.scheduler.pause()
                begin = page[-1].name if page else after
                for name in sorted(n for n in self.objects if n.startswith(folder) and n > begin)[:part]:
                    data = self.objects.get(name, b"")
                    page.append(ObjectInfo(name, len(data), self.modified.get(name, 0.0), tag_of(data)))
            yield from page
            if len(page) < self.page:
                return
            after = page[-1].name

    def _shards(self, folder: str, after: str) -> Iterator[ObjectInfo]:
        found: list[ObjectInfo] = []
        for shard in self.chance.sample(range(SHARDS), SHARDS):
            self._request()
            found += (
                ObjectInfo(name, len(data), self.modified.get(name, 0.0))
                for name, data in self.objects.items()
                if name.startswith(folder) and name > after and zlib.crc32(name.encode()) % SHARDS == shard
            )
        yield from sorted(found)

    def delete(self, name: str) -> None:
        self._request()
        if self._act(lambda: self._remove(name)) is None:
            self._refuse()

    def delete_all(self, names: Sequence[str]) -> None:
        for name in names:
            self.delete(name)

    def local_path(self, name: str) -> str | None:
        return None

    def open_input(self, name: str, *, size: int | None = None) -> pa.NativeFile:
        self._request()
        if name not in self.objects:
            raise FileNotFoundError(name)
        return opened(name, lambda: self.objects.get(name))

    @contextlib.contextmanager
    def open_output(self, name: str) -> Iterator[BinaryIO]:
        buffer = io.BytesIO()
        yield buffer
        self._request()
        if self._act(lambda: self._apply(name, buffer.getvalue())) is None:
            self._refuse()
