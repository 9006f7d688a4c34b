"""Reads byte ranges of an immutable object: they are planned, fetched side by side, and each fetched once.

An object store answers any range in one request, which costs about as much time as `RequestSizes.hole` bytes. A
reader says which ranges it needs (`RangedFile.plan`). Ranges near each other are fetched in one request, with
the gap between them. Requests run side by side; the bytes that are fetched before the reader has released
earlier ones are limited. A read takes bytes that have arrived, waits for those that are being fetched, and
requests those that were never planned.

The size of an object is known from its reference. The store says in each answer how large the object is, so an
object of another size is found with the first request, and is Corrupt.

Callers: `cloud` opens objects so; the readers of data objects and of checkpoints plan (decision 243).
"""

from __future__ import annotations

import io
import os
import re
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Protocol

import pyarrow as pa

from lake_core.errors import Corrupt, InvalidInput, Unavailable
from lake_core.store.planned import REQUEST, Range
from lake_core.values.units import unit_bytes

HOLE = 512 << 10
"""The largest gap in bytes between two ranges that one request fetches together with the gap (decision 243)."""

REQUESTS = 16
"""The most requests for ranges that a store sends at the same time."""

AHEAD = 2
"""How many requests of full length may be sent for a file before the reader releases the bytes of the first."""

TAIL = 128 << 10
"""How many bytes at the end of a large object are fetched first: they contain the footer of an object of 20 MB
(decision 243)."""


_HOLE = re.compile(r"(\d{1,12}) ?(KiB|MiB)?")


def parse_hole(text: object) -> int:
    """Returns the bytes that a text such as 0, 65536, 256KiB, 1MiB means.  Raises InvalidInput."""
    match = _HOLE.fullmatch(str(text).strip())
    hole = int(match[1]) * unit_bytes(match[2]) if match else REQUEST + 1
    if hole > REQUEST:
        raise InvalidInput(
            f"option hole={text!r}: write bytes from 0 to 8MiB (inclusive), as in 65536 or 256KiB"
        )
    return hole


@dataclass(frozen=True)
class RequestSizes:
    """How ranges become requests, in bytes: `hole` is the largest gap inside a request, `request` its greatest
    length."""

    hole: int = HOLE
    request: int = REQUEST

    def within(self, share: int) -> RequestSizes:
        """Returns the sizes for a reader that may hold only `share` bytes; the length is at least `TAIL`."""
        least = min(self.request, max(share, TAIL))
        return replace(self, hole=min(self.hole, least), request=least)


@dataclass(frozen=True)
class RangeAnswer:
    """The answer to a request for a range: its bytes, the size of the whole object, and its tag (`ObjectInfo`).

    The tag is empty if the answer has none, or was not asked for it.
    """

    data: bytes
    size: int
    tag: str = ""


Fetch = Callable[[Range], RangeAnswer]
"""A function that requests a range from the store. Raises FileNotFoundError, Unavailable."""


class RangeCache(Protocol):
    """A cache of ranges of immutable objects that were fetched before.  Safe to use from several threads."""

    def held(self, name: str) -> Sequence[Range]:
        """Returns the ranges of the object that are cached now."""

    def fetched(self, name: str, asked: Range, fetch: Callable[[], bytes]) -> bytes:
        """Returns the bytes of a range, from the cache if it has them, otherwise from `fetch`, whose errors are
        raised."""

    def forget(self, names: Sequence[str]) -> None:
        """Drops all of these objects, and discards their bytes that are still being fetched."""


class NoCache:
    """A cache that holds nothing."""

    def held(self, name: str) -> Sequence[Range]:
        """Returns no range, because this cache keeps none."""
        return ()

    def fetched(self, name: str, asked: Range, fetch: Callable[[], bytes]) -> bytes:
        """Returns what `fetch` returns, because this cache keeps nothing."""
        return fetch()

    def forget(self, names: Sequence[str]) -> None:
        """Does nothing, because this cache keeps no bytes."""


NO_CACHE = NoCache()


def coalesced(ranges: Iterable[Range], reach: RequestSizes) -> list[Range]:
    """Returns requests for the ranges, in order; ranges near each other become one request, up to its greatest
    length."""
    requests: list[Range] = []
    for begin, end in sorted(Range(*one) for one in ranges if one[0] < one[1]):
        last = requests[-1] if requests else None
        if last is not None and (
            end <= last.end or (begin - last.end <= reach.hole and end - last.begin <= reach.request)
        ):
            requests[-1] = Range(last.begin, max(last.end, end))
        else:
            requests.append(Range(begin if last is None else max(begin, last.end), end))
    return requests


class _Segment:
    """One request of a plan: not sent yet, sent, or answered."""

    __slots__ = ("coming", "data", "range")

    def __init__(self, range: Range, data: bytes | None = None) -> None:
        self.range, self.data = range, data
        self.coming: Future[bytes] | None = None

    @property
    def is_begun(self) -> bool:
        return self.data is not None or self.coming is not None


def _place(segment: _Segment) -> Range:
    return segment.range


class Ranges(io.RawIOBase):
    """The object as a file whose reads are planned.  Safe to use from several threads, one plan at a time."""

    def __init__(
        self,
        fetch: Fetch,
        *,
        name: str,
        size: int,
        threads: Callable[[], ThreadPoolExecutor],
        reach: RequestSizes,
        cache: RangeCache = NO_CACHE,
        cached_as: str = "",
    ) -> None:
        """`name` is for errors; `size` is the size of the object in bytes; `threads` send requests ahead.

        `cached_as` is the object's name in the cache.
        """
        self._fetch, self._name, self.object_size = fetch, name, size
        self._cache, self._cached_as = cache, cached_as
        self._threads, self.reach = threads, reach
        self.failing: Callable[[], AbstractContextManager[None]] = nullcontext
        """The context of each request: it may say more of an error."""
        self._at = 0
        self._lock = threading.RLock()
        self._segments: list[_Segment] = []
        self._tail: _Segment | None = None
        self._room = AHEAD * reach.request

    def fetch_tail(self, reach: RequestSizes) -> None:
        """Fetches the end of the object, or all of it if it is not larger than `RequestSizes.hole`."""
        size = self.object_size
        begin = 0 if size <= reach.hole else max(0, size - TAIL)
        with self._lock:
            self._tail = _Segment(Range(begin, size))
            self._begin(self._tail, ahead=False)
            self._segments = [self._tail]

    def plan(self, ranges: Iterable[Range], reach: RequestSizes, *, keeps: bool) -> None:
        """Plans to read these ranges next, in the order of the file; sends the first requests at once.

        Bytes that were fetched before are not fetched again.  Fetched bytes outside of the plan are dropped,
        unless `keeps`.
        """
        inside = [Range(max(0, begin), min(end, self.object_size)) for begin, end in ranges]
        with self._lock:
            segments = [
                one
                for one in self._segments
                if keeps or any(r.begin < one.range.end and one.range.begin < r.end for r in inside)
            ]
            for one in self._segments:
                if one not in segments:
                    _cancel(one)
            segments = [one for one in segments if one.is_begun]
            segments += self._cached(inside, segments, reach)
            segments.sort(key=_place)
            missing = [part for one in inside for part in _outside(one, segments)]
            asked = [part for one in coalesced(missing, reach) for part in _outside(one, segments)]
            self._room = AHEAD * reach.request
            self._segments = sorted([*segments, *map(_Segment, asked)], key=_place)
            if len(asked) > 1:  # one alone is fetched when it is read
                self._go_ahead()

    def _cached(
        self, planned: Iterable[Range], segments: Sequence[_Segment], reach: RequestSizes
    ) -> list[_Segment]:
        """Returns the planned parts that the cache holds and `segments` lack; each is read when it is
        needed."""
        pieces: list[_Segment] = []
        requests = coalesced(planned, reach)
        for has in self._cache.held(self._cached_as):
            for begin, end in requests:
                part = Range(max(begin, has.begin), min(end, has.end))
                if part.begin < part.end:  # a part may lie in two ranges of the cache
                    pieces += map(_Segment, _outside(part, sorted([*segments, *pieces], key=_place)))
        return pieces

    def forget(self) -> None:
        """Drops what the cache holds of the object, which is damaged, so that the next reader asks the
        store."""
        self._cache.forget([self._cached_as])

    def drop_planned(self) -> None:
        """Drops the fetched bytes, except those of the object's end if `fetch_tail` fetched them."""
        with self._lock:
            for segment in self._segments:
                if segment is not self._tail:
                    _cancel(segment)
            self._segments = [one for one in self._segments if one is self._tail]

    def release(self, before: int) -> None:
        """Drops the bytes before this position, so that later ones can be fetched."""
        with self._lock:
            while self._segments and self._segments[0].range.end <= before:
                _cancel(self._segments.pop(0))
            self._go_ahead()

    def _go_ahead(self) -> None:
        room = self._room - sum(e - b for b, e in (one.range for one in self._segments if one.is_begun))
        for segment in self._segments:
            if segment.is_begun:
                continue
            room -= segment.range.end - segment.range.begin
            if room < 0:
                return
            self._begin(segment, ahead=True)

    def _begin(self, segment: _Segment, *, ahead: bool) -> None:
        if ahead:
            segment.coming = self._threads().submit(self._checked, segment.range)
        else:
            segment.data = self._checked(segment.range)

    def _checked(self, range: Range) -> bytes:
        """Returns the bytes of a range, from the cache or the store.  Raises what `_asked` raises."""
        return self._cache.fetched(self._cached_as, range, lambda: self._asked(range))

    def _asked(self, range: Range) -> bytes:
        """Returns the bytes of a range from the store.

        Raises Corrupt if the object has another size, Unavailable for a short answer.
        """
        with self.failing():
            piece = self._fetch(range)
        if piece.size != self.object_size:
            raise Corrupt(
                f"{self._name}: this object has {piece.size:,} bytes; {self.object_size:,} are on record: it is "
                "damaged, or another object took its name"
            )
        if len(piece.data) != range.end - range.begin:
            raise Unavailable(
                f"{self._name}: the store answered {len(piece.data):,} of the bytes {range.begin:,} to "
                f"{range.end:,}; try again"
            )
        return piece.data

    def _bytes_of(self, segment: _Segment) -> bytes:
        """Returns the bytes of a segment; fetches them now if no request for them was sent."""
        if segment.data is None:
            if segment.coming is None:
                self._begin(segment, ahead=False)
                assert segment.data is not None
            else:
                try:
                    segment.data = segment.coming.result()
                finally:
                    segment.coming = None  # what failed is asked again by the next read
        return segment.data

    def read_range(self, begin: int, end: int) -> bytes | memoryview:
        """Returns the bytes of a range, no further than the object's end.

        Raises Corrupt, FileNotFoundError, Unavailable.
        """
        end = min(end, self.object_size)
        if begin >= end:
            return b""
        with self._lock:
            at = bisect_right(self._segments, begin, key=lambda one: one.range.begin) - 1
            parts: list[bytes | memoryview] = []
            for segment in self._segments[max(0, at) :]:
                if segment.range.begin >= end or begin >= end:
                    break
                if segment.range.end <= begin:
                    continue
                if begin < segment.range.begin:
                    parts.append(self._checked(Range(begin, segment.range.begin)))
                    begin = segment.range.begin
                stop = min(end, segment.range.end)
                first = segment.range.begin
                parts.append(memoryview(self._bytes_of(segment))[begin - first : stop - first])
                begin = stop
            if begin < end:
                parts.append(self._checked(Range(begin, end)))
        return parts[0] if len(parts) == 1 else b"".join(parts)

    # --- the file that Arrow reads

    def read(self, size: int = -1) -> Any:
        end = self.object_size if size is None or size < 0 else self._at + size
        data = self.read_range(self._at, end)
        self._at += len(data)
        return data

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self.object_size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        with self._lock:
            for segment in self._segments:
                _cancel(segment)
            self._segments = []
        super().close()


class RangedFile(pa.PythonFile):  # type: ignore[misc]  # pyarrow has no types
    """An open object whose reads can be planned (`Planned`); Arrow reads from it as from any file."""

    def __init__(self, ranges: Ranges) -> None:
        self._ranges = ranges

    def fail_in(self, context: Callable[[], AbstractContextManager[None]]) -> None:
        """Runs each request within this context, which may add to its error."""
        self._ranges.failing = context

    def fetch_tail(self, share: int) -> None:
        """Fetches the end of the object, or all of a small one, within `share` bytes; the next reads begin
        there."""
        self._ranges.fetch_tail(self._ranges.reach.within(share))

    def plan(self, ranges: Iterable[Range], *, share: int, keeps: bool = False) -> None:
        """Fetches these ranges next, with at most `share` bytes per request.  With `keeps`, earlier bytes
        stay."""
        self._ranges.plan(ranges, self._ranges.reach.within(share), keeps=keeps)

    def drop_planned(self) -> None:
        """Drops the fetched bytes, except those of the object's end if `fetch_tail` fetched them."""
        self._ranges.drop_planned()

    def forget(self) -> None:
        """Drops what the cache holds of the object, so that the next reader asks the store."""
        self._ranges.forget()

    def release(self, before: int) -> None:
        """Drops the bytes before this position."""
        self._ranges.release(before)


def _outside(range: Range, segments: Iterable[_Segment]) -> list[Range]:
    """Returns the parts of a range that no segment covers; `segments` must be in order."""
    parts, begin = [], range.begin
    for segment in segments:
        if segment.range.end <= begin or segment.range.begin >= range.end:
            continue
        if begin < segment.range.begin:
            parts.append(Range(begin, segment.range.begin))
        begin = max(begin, segment.range.end)
    if begin < range.end:
        parts.append(Range(begin, range.end))
    return parts


def _cancel(segment: _Segment) -> None:
    if segment.coming is not None:
        segment.coming.cancel()
