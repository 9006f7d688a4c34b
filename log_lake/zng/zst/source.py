"""Reads segments of an object, neighbouring ones in one request; it never requests a segment that was not
announced.

A reader says at the start which segments it will need.  When it asks for one, those near it come in the same
request and wait until they are asked for.  A gap that is read and thrown away costs less than another request
to an object store, up to `GAP_BYTES`.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable

import pyarrow as pa

from log_lake.zng.wire import corrupt
from log_lake.zng.zst.layout import Segment

GAP_BYTES = 256 << 10
"""A gap of at most this many bytes between two segments is read with them, because reading it takes about as long
as another request."""

REQUEST_BYTES = 8 << 20
"""The most bytes of one request, unless a single segment is longer."""


class SegmentSource:
    """The segments of an open file; each needed segment is read once."""

    def __init__(self, file: pa.NativeFile, *, name: str, needed: Iterable[Segment] = ()) -> None:
        self._file = file
        self.name = name
        self._needed = sorted(needed)
        """Those that no request has brought."""
        self._waiting: dict[Segment, bytes] = {}

    def read(self, segment: Segment) -> bytes:
        """Returns the bytes of a segment.  Raises Corrupt if the file ends before it does."""
        if segment not in self._waiting:
            self._request(self._neighbours(segment))
        return self._waiting.pop(segment)

    def _request(self, run: list[Segment]) -> None:
        begin, end = run[0].offset, run[-1].offset + run[-1].length
        data: bytes = self._file.read_at(end - begin, begin)
        if len(data) < end - begin:
            raise corrupt(self.name, begin + len(data), "the file ends within a segment")
        for part in run:
            at = part.offset - begin
            self._waiting[part] = data[at : at + part.length]

    def _neighbours(self, segment: Segment) -> list[Segment]:
        """Returns the segments to read in one request: this one and those near it, before and after, in the order
        of the file."""
        needed = self._needed
        low = high = bisect.bisect_left(needed, segment)
        while low and _in_one(
            needed[low - 1], needed[low], needed[high]
        ):  # ends: it comes nearer to the begin
            low -= 1
        while high + 1 < len(needed) and _in_one(needed[high], needed[high + 1], needed[low], last=True):
            high += 1  # ends: it comes nearer to the end
        run = needed[low : high + 1]
        del needed[low : high + 1]
        return run


def _in_one(before: Segment, after: Segment, other: Segment, *, last: bool = False) -> bool:
    """Whether one request may read `before` and `after`, which are neighbours: the gap between them is small, and
    the request does not become too long.

    `other` is the far end of the request so far.  If `after` is to be the new last segment (`last`), `other` is
    the first one.  Otherwise `before` is to be the new first segment, and `other` is the last one.
    """
    first, end = (other, after) if last else (before, other)
    gap = after.offset - before.offset - before.length
    return gap <= GAP_BYTES and end.offset + end.length - first.offset <= REQUEST_BYTES
