"""Finds the structure of JSON text: its brackets outside of strings, and frames, which are records as lines.

A frame's records are elements of an array, or documents.  Their line ends become spaces, which changes no
value, because a string has no line end.  Called by `json`, `json_frames` and `json_lists`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from log_lake.columns.arrays import Ints

LONGEST_DOCUMENT = 64 << 20
SPACE = b" \t\r\n"
_PIECE = 256 << 10
_CONTROL = 1
"""Replaces a line end inside a string, where JSON does not allow one, so that the line is refused."""


@dataclass(frozen=True)
class Frame:
    """Some records of the file as text with one record per line (`lines`).  `first` is the line of the file in
    which they begin.

    If the records are not lines of the file, `text` is the file's text, and `spans` are the places of the
    records in it. `whole`: if this frame is a part of a larger one, that larger frame.
    """

    lines: bytes
    first: int
    text: bytes = b""
    spans: Sequence[tuple[int, int]] = ()
    whole: Frame | None = None

    def part(self, begin: int, number: int, size: int) -> Frame:
        """Returns some whole lines of this frame, about `size` bytes, as a frame.  They begin at the byte `begin`
        of `lines`, where the line `number` begins."""
        end = self.lines.find(b"\n", begin + size - 1) + 1 or len(self.lines)
        if not begin and end == len(self.lines):
            return self
        lines = self.lines[begin:end]
        if not self.spans:
            return Frame(lines, self.first + number)
        count = lines.count(b"\n") + (not lines.endswith(b"\n"))
        return Frame(lines, self.first, self.text, self.spans[number : number + count], self)

    def locate(self, number: int) -> tuple[int, bytes]:
        """Returns the line in the file and the text of a line of `lines`, counted from 0."""
        ends = (self.whole or self)._line_ends
        if not self.spans:
            begin = int(ends[number - 1]) + 1 if number else 0
            return self.first + number, self.lines[begin : int(ends[number]) if number < len(ends) else None]
        begin, end = self.spans[number]
        record = self.text[begin:end].lstrip(SPACE)
        begin = end - len(record)
        return self.first + int(np.searchsorted(ends, begin)), record.rstrip(SPACE)

    @cached_property
    def _line_ends(self) -> Ints:
        """The positions of line ends.  Computed once, because each record of a block may be a bad one."""
        return positions(np.frombuffer(self.text if self.spans else self.lines, np.uint8), b"\n")


@dataclass(frozen=True)
class Structure:
    """The brackets and braces of JSON text that lie outside of strings: their positions, and how deeply the text
    after each of them is nested."""

    at: Ints
    depth: Ints
    quotes: Ints

    def in_string(self, positions: Ints) -> npt.NDArray[np.bool_]:
        """Returns for each position whether it lies inside of a string."""
        return np.searchsorted(self.quotes, positions) % 2 == 1


def structure(text: bytes) -> Structure:
    """Finds the brackets and braces in JSON text that begins outside of a string."""
    data = np.frombuffer(text, np.uint8)
    quotes = np.flatnonzero(data == ord('"'))
    if b"\\" in text:
        quotes = quotes[~_escaped(data, quotes)]
    folded = data | 0x20  # [ and { become {, ] and } become }
    at = np.flatnonzero((folded == ord("{")) | (folded == ord("}")))
    at = at[np.searchsorted(quotes, at) % 2 == 0]
    depth = np.cumsum(np.where(folded[at] == ord("{"), 1, -1))
    return Structure(at, depth, quotes)


def positions(data: npt.NDArray[np.uint8], byte: bytes) -> Ints:
    """Returns the positions of the byte.  For `{` these include the positions of `[`, and for `}` those of `]`.
    It works in pieces that fit the processor's caches."""
    folded, code = (byte in b"{}"), np.uint8(byte[0])
    parts: list[Ints] = []
    buffer, mask = np.empty(_PIECE, np.uint8), np.empty(_PIECE, np.bool_)
    for begin in range(0, len(data), _PIECE):
        piece = data[begin : begin + _PIECE]
        if folded:
            piece = np.bitwise_or(piece, 0x20, out=buffer[: len(piece)])  # [ and { become {, ] and } become }
        parts.append(np.flatnonzero(np.equal(piece, code, out=mask[: len(piece)])) + begin)
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _escaped(data: npt.NDArray[np.uint8], quotes: Ints) -> npt.NDArray[np.bool_]:
    """Returns for each quote whether an odd number of backslashes precedes it."""
    slashes = np.flatnonzero(data == ord("\\"))
    begins = np.concatenate([[True], np.diff(slashes) > 1])
    run_begin = slashes[np.maximum.accumulate(np.where(begins, np.arange(len(slashes)), 0))]
    before = np.searchsorted(slashes, quotes) - 1
    last = slashes[np.maximum(before, 0)]
    follows = (before >= 0) & (last == quotes - 1)
    return follows & ((quotes - run_begin[np.maximum(before, 0)]) % 2 == 1)


def frame_of(text: bytes, first: int, spans: list[tuple[int, int]], brackets: Structure) -> Frame:
    """Returns a frame of the records at `spans` in the text: the text between two records becomes a line end.
    `first` is the line of the file in which they begin."""
    if not spans:
        return Frame(b"", first)
    data = np.frombuffer(text, np.uint8).copy()
    ends = np.flatnonzero((data == 10) | (data == 13))
    data[ends] = np.where(brackets.in_string(ends), _CONTROL, ord(" "))
    between = np.array([end for _, end in spans[:-1]], np.int64)
    if np.isin(data[between], np.frombuffer(SPACE + b",", np.uint8)).all():
        data[between] = ord("\n")
        lines = data[spans[0][0] : spans[-1][1]].tobytes()
    else:  # documents without a space between them
        clean = data.tobytes()
        lines = b"\n".join(clean[a:b] for a, b in spans)
    return Frame(lines, first, text, spans)
