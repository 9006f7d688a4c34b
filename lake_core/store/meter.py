"""Counts the requests of an open store, its bytes and commits, and the seconds by phase of work.

The guard of a store counts the calls of the port. A store on a server counts the requests that it sends
instead, with all repeats (`log_lake.stores.sends`). Each open store has one meter, and all add to the totals of
the process. A count takes less than a microsecond, because every request of every writer makes one (decision
394).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

READS, LISTS, WRITES, DELETES, RECEIVED, SENT, COMMITS, RACES_LOST = range(8)
"""What a meter counts: requests by kind, bytes from and to the store, commits to pools, races lost at these."""

_LOCK = threading.RLock()
"""One lock for all meters, because each change concerns the totals of the process, too.  It is reentrant: a
finalizer that runs while it is held may count a request of its own."""


@dataclass(frozen=True)
class Counts:
    """What was asked of a store: requests by kind, bytes from and to it, commits to pools, and races lost at
    commits.

    `seconds` are by phase, such as `load.read`; phases of threads that work at the same time are summed.
    """

    reads: int = 0
    lists: int = 0
    writes: int = 0
    deletes: int = 0
    received: int = 0
    sent: int = 0
    commits: int = 0
    races_lost: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, numbers: Iterable[int], seconds: Mapping[str, float]) -> Counts:
        """Returns counts from `numbers` in the order of the fields."""
        named: dict[str, Any] = dict(zip(_NUMBERS, numbers, strict=True))
        return cls(**named, seconds=seconds)

    @property
    def requests(self) -> int:
        """The number of requests of all kinds."""
        return self.reads + self.lists + self.writes + self.deletes

    @property
    def numbers(self) -> tuple[int, ...]:
        """All counts except the seconds, in the order of the fields."""
        return tuple(getattr(self, name) for name in _NUMBERS)

    def __add__(self, other: Counts) -> Counts:
        return _combined(self, other, 1)

    def __sub__(self, other: Counts) -> Counts:
        return _combined(self, other, -1)


_NUMBERS = tuple(one.name for one in fields(Counts))[:-1]


def _combined(one: Counts, other: Counts, sign: int) -> Counts:
    seconds = dict(one.seconds)
    for phase, took in other.seconds.items():
        seconds[phase] = seconds.get(phase, 0.0) + sign * took
    numbers = (a + sign * b for a, b in zip(one.numbers, other.numbers, strict=True))
    return Counts.of(numbers, {phase: took for phase, took in seconds.items() if took})


class Meter:
    """Counts requests, bytes, commits and seconds for one store; safe to use from several threads."""

    def __init__(self) -> None:
        self._own, self._seconds = [0] * len(_NUMBERS), dict[str, float]()

    def count(self, what: int, number: int = 1) -> None:
        """Adds to one of the counts (`READS`, ...)."""
        with _LOCK:
            self._own[what] += number
            PROCESS._own[what] += number

    def request(self, kind: int, size: int, direction: int) -> None:
        """Adds a request of a kind that moved `size` bytes in a direction (`RECEIVED`, `SENT`)."""
        own, process = self._own, PROCESS._own
        with _LOCK:
            own[kind] += 1
            own[direction] += size
            process[kind] += 1
            process[direction] += size

    def took(self, phase: str, seconds: float) -> None:
        """Adds seconds of a phase of work."""
        own, process = self._seconds, PROCESS._seconds
        with _LOCK:
            own[phase] = own.get(phase, 0.0) + seconds
            process[phase] = process.get(phase, 0.0) + seconds

    def add(self, counts: Counts) -> None:
        """Adds what another process counted for this one."""
        for what, number in enumerate(counts.numbers):
            self.count(what, number)
        for phase, seconds in counts.seconds.items():
            self.took(phase, seconds)

    def counts(self) -> Counts:
        """Returns all counts so far."""
        with _LOCK:
            return Counts.of(self._own, dict(self._seconds))


PROCESS = Meter()
"""The sums of all meters of this process since it began."""


def meter_of(store: object) -> Meter:
    """Returns the meter of a store; a new one if the store has none."""
    own = getattr(store, "meter", None)
    return own if isinstance(own, Meter) else Meter()


def own_meter(store: object) -> Meter | None:
    """Returns the meter of the store, or else of the first store behind it that has one; None if none has."""
    while store is not None:  # bounded by the stores that stand in front of each other
        own = getattr(store, "meter", None)
        if isinstance(own, Meter):
            return own
        store = getattr(store, "behind", None)
    return None
