"""Months of loads, as a seed makes them: when each lands, how large it is, and where its keys lie.

A load is a sample of its keys, each standing for the same number of bytes, so that what is cut out of a merge
later holds the right share of them.  Keys are numbers; those of `late` and `edges` are times, in seconds since
1970.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

MB = 1 << 20
HOUR = 3600.0
DAY = 24 * HOUR
BEGIN = 1_750_000_000.0 // DAY * DAY
EVERY = 0.25 * HOUR
SIZE = 8 * MB
_SAMPLES = 64

Keys = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Load:
    """`keys` is sorted; `time` in seconds since 1970, `size` in bytes."""

    time: float
    size: int
    keys: Keys


def steady(random: np.random.Generator, days: int) -> Iterator[Load]:
    """8 MiB each quarter of an hour, keys anywhere: ids, hashes."""
    for at in _ticks(days):
        yield Load(at, SIZE, (np.arange(_SAMPLES) + random.random(_SAMPLES)) / _SAMPLES)


def bursty(random: np.random.Generator, days: int) -> Iterator[Load]:
    """As steady, but most comes within two hours of the night, and sizes differ by a hundred times."""
    for at in _ticks(days):
        busy = at % DAY < 2 * HOUR
        if busy or random.random() < 0.2:
            size = int(SIZE * (6 if busy else 1) * random.lognormal(0.0, 1.2))
            yield Load(at, max(size, MB // 16), np.sort(random.random(_SAMPLES)))


def late(random: np.random.Generator, days: int) -> Iterator[Load]:
    """The key is the time: nine tenths are of the last quarter of an hour, the rest hours and days late."""
    for at in _ticks(days):
        delay = random.random(_SAMPLES) * EVERY
        kind = random.random(_SAMPLES)
        delay = np.where(kind < 0.10, random.exponential(6 * HOUR, _SAMPLES), delay)
        delay = np.where(kind < 0.01, random.exponential(3 * DAY, _SAMPLES), delay)
        yield Load(at, SIZE, np.sort(at - delay))


def edges(random: np.random.Generator, days: int) -> Iterator[Load]:
    """Small loads whose key is the time: 1 MiB each quarter of an hour, which overlaps the load before a little."""
    for at in _ticks(days):
        yield Load(at, MB, np.sort(at - random.random(_SAMPLES) * 1.2 * EVERY))


def skewed(random: np.random.Generator, days: int) -> Iterator[Load]:
    """Half of the loads are anywhere but crowd at low keys, half are of one narrow range, mostly a low one."""
    for at in _ticks(days):
        if random.random() < 0.5:
            keys = random.random(_SAMPLES) ** 6
        else:
            keys = random.random() ** 6 + 0.002 * random.random(_SAMPLES)
        yield Load(at, SIZE, np.sort(keys))


LOADS: dict[str, Callable[[np.random.Generator, int], Iterator[Load]]] = {
    "steady": steady,
    "bursty": bursty,
    "late": late,
    "edges": edges,
    "skewed": skewed,
}


def _ticks(days: int) -> Iterator[float]:
    for n in range(int(days * DAY / EVERY)):
        yield BEGIN + (n + 1) * EVERY
