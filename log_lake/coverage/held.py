"""The ranges of keys that a branch holds, compared with intervals; pure."""

from __future__ import annotations

import datetime as dt
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush

from lake_core.history.covered import CoveredInterval
from lake_core.keys import KeyRange, PoolKey
from log_lake.coverage.key_ranges import time_of
from log_lake.coverage.schedule import utc
from log_lake.coverage.settings import YEARS


@dataclass(frozen=True)
class HeldRanges:
    """The ranges of keys that are held, by their low bound; they may overlap."""

    ranges: list[CoveredInterval]

    def bringing(self, spans: Iterable[KeyRange]) -> dict[bytes, CoveredInterval]:
        """Returns what brought each span that is completely held, by the span's low bound.  The spans must not
        overlap.

        It is the newest range that contains all of the span; if several ranges make up the span, the newest of
        them.
        """
        brought: dict[bytes, CoveredInterval] = {}
        begun: list[
            tuple[int, int]
        ] = []  # a heap of ranges that began at or before the span: the newest is first
        at = 0
        for span in sorted(spans, key=lambda one: one.low):
            low, high = span.low, span.high or b""
            while at < len(self.ranges) and self._lows[at] <= low:
                heappush(begun, (-self.ranges[at].version, at))
                at += 1
            pieces = []
            while begun and self._highs[begun[0][1]] < high:  # it ends before a later span begins
                pieces.append(heappop(begun)[1])
            if begun:
                brought[low] = self.ranges[begun[0][1]]
            elif self._holds(low, high):
                pieces += range(at, bisect_left(self._lows, high))
                inside = [self.ranges[piece] for piece in pieces if self._highs[piece] > low]
                brought[low] = max(inside, key=lambda one: one.version)
        return brought

    def first(self, key: PoolKey, zone: dt.tzinfo) -> dt.datetime | None:
        """Returns when the first interval that is held begins, as a time in the zone; None if none is held."""
        bounds = self._highs if key.fields[0].descending else self._lows
        times = (time_of(bound, key=key, zone=zone) for bound in bounds)
        return min((time for time in times if time is not None and time.year in YEARS), key=utc, default=None)

    @cached_property
    def _lows(self) -> list[bytes]:
        return [one.key_range.low for one in self.ranges]

    @cached_property
    def _highs(self) -> list[bytes]:
        return [one.key_range.high or b"" for one in self.ranges]

    @cached_property
    def _united(self) -> list[tuple[bytes, bytes]]:
        """Returns the same ranges without overlaps; ranges that touch become one."""
        united: list[tuple[bytes, bytes]] = []
        for low, high in zip(self._lows, self._highs, strict=True):
            if united and low <= united[-1][1]:
                united[-1] = united[-1][0], max(united[-1][1], high)
            else:
                united.append((low, high))
        return united

    def _holds(self, low: bytes, high: bytes) -> bool:
        """Whether every part of a span is held."""
        at = bisect_right(self._united, low, key=lambda one: one[0]) - 1
        return at >= 0 and high <= self._united[at][1]
