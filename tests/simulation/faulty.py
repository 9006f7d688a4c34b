"""A store that fails as the seed says, in all the ways a store fails.

Every request lets others run first.  Then it may be refused before it acts; a create may act and lose its
answer, or not act and seem lost, or arrive later, after its sender has given it up; a hint may be dropped.
What is answered is true: a read or a listing sees all that was answered before.
"""

from __future__ import annotations

import contextlib
import io
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, NoReturn

import pyarrow as pa

from lake_core.errors import Unavailable
from lake_core.store import Created, ObjectInfo
from tests.simulation.scheduler import Scheduler
from tests.simulation.truth import Truth


@dataclass
class Faults:
    """How likely each fault is, for one request."""

    refused: float = 0.01
    answer_lost: float = 0.03
    never_arrived: float = 0.02
    late: float = 0.01

    def none(self) -> None:
        """From now on all is well."""
        self.refused = self.answer_lost = self.never_arrived = self.late = 0.0


@dataclass
class FaultyStore:
    """Objects in a dictionary, behind faults.  All processes share it."""

    chance: random.Random
    scheduler: Scheduler
    truth: Truth
    faults: Faults
    lists_from_name: bool
    objects: dict[str, bytes] = field(default_factory=dict)
    late: list[tuple[str, bytes]] = field(default_factory=list)
    requests: int = 0
    uri: str = "memory://simulated"

    def _request(self) -> None:
        self.scheduler.pause()
        self.requests += 1
        if self.late and self.chance.random() < 0.05:
            self._apply(*self.late.pop(self.chance.randrange(len(self.late))))
        if self.chance.random() < self.faults.refused:
            self._refuse()

    def _refuse(self) -> NoReturn:
        raise Unavailable("the store refuses for now")

    def _apply(self, name: str, data: bytes) -> bool:
        if name in self.objects:
            return False
        self.objects[name] = data
        self.truth.created(name, data)
        return True

    def get(self, name: str) -> bytes | None:
        self._request()
        return self.objects.get(name)

    def create(self, name: str, data: bytes) -> Created:
        self._request()
        if self.chance.random() < self.faults.never_arrived:
            return Created.UNKNOWN
        if self.chance.random() < self.faults.late:
            self.late.append((name, data))
            return Created.UNKNOWN
        created = self._apply(name, data)
        if self.chance.random() < self.faults.answer_lost:
            return Created.UNKNOWN
        return Created.YES if created else Created.EXISTS

    def put(self, name: str, data: bytes) -> None:
        self._request()
        self.objects[name] = data

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        """In pages of three: names come as they are when their page is asked for."""
        self._request()
        folder = prefix.rstrip("/") + "/"
        last = after
        while True:  # bounded by the names there are
            page = sorted(n for n in self.objects if n.startswith(folder) and n > last)[:3]
            for name in page:
                yield ObjectInfo(name, len(self.objects.get(name, b"")))
            if len(page) < 3:
                return
            last = page[-1]
            self._request()

    def delete(self, name: str) -> None:
        self._request()
        if self.objects.pop(name, None) is not None:
            self.truth.deleted(name)

    def open_input(self, name: str) -> pa.NativeFile:
        self._request()
        if name not in self.objects:
            raise FileNotFoundError(name)
        return pa.BufferReader(self.objects[name])

    @contextlib.contextmanager
    def open_output(self, name: str) -> Iterator[BinaryIO]:
        buffer = io.BytesIO()
        yield buffer
        self._request()
        self._apply(name, buffer.getvalue())
