"""Where the records of a JSON file begin and end: lines, the elements of an array, or documents one after another.

The file's beginning tells which.  `[` begins an array.  A `{` that is not closed in its own line, but later, begins
documents of several lines.  Everything else is lines, one record each.  Elements and documents are given to the
reader of lines as lines: their line ends become spaces, which changes no value, since a string holds none.

Only brackets, braces and quotes are looked at here; whether a record is JSON is for its reader to say.  Called by
`ndjson`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from lake_core.loading.block import Reading
from lake_core.loading.opening import line_blocks

LONGEST_DOCUMENT = 64 << 20
_SPACE = b" \t\r\n"
_PIECE = 256 << 10
_CONTROL = 1
"""Stands for a line end inside of a string, where JSON allows none."""

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Frame:
    """Some records, one a line.  `first` is the line of the file where they begin.

    Where the records are not lines of the file, `text` is what the file holds, and `spans` are their places in it.
    `whole` is the frame that this one is a part of.
    """

    lines: bytes
    first: int
    text: bytes = b""
    spans: Sequence[tuple[int, int]] = ()
    whole: Frame | None = None

    def part(self, begin: int, number: int, size: int) -> Frame:
        """Whole lines of about `size` bytes, from the byte `begin` of `lines` on, where line `number` begins."""
        end = self.lines.find(b"\n", begin + size - 1) + 1 or len(self.lines)
        if not begin and end == len(self.lines):
            return self
        lines = self.lines[begin:end]
        if not self.spans:
            return Frame(lines, self.first + number)
        count = lines.count(b"\n") + (not lines.endswith(b"\n"))
        return Frame(lines, self.first, self.text, self.spans[number : number + count], self)

    def locate(self, number: int) -> tuple[int, bytes]:
        """The line in the file and the text of a line of `lines`, counted from 0."""
        ends = (self.whole or self)._line_ends
        if not self.spans:
            begin = int(ends[number - 1]) + 1 if number else 0
            return self.first + number, self.lines[begin : int(ends[number]) if number < len(ends) else None]
        begin, end = self.spans[number]
        record = self.text[begin:end].lstrip(_SPACE)
        begin = end - len(record)
        return self.first + int(np.searchsorted(ends, begin)), record.rstrip(_SPACE)

    @cached_property
    def _line_ends(self) -> Positions:
        """Looked for once: each record of a block may be a bad one."""
        return positions(np.frombuffer(self.text if self.spans else self.lines, np.uint8), b"\n")


def frames(file: BinaryIO, reading: Reading, *, only_lines: bool = False) -> Iterator[Frame]:
    """The file's records; raises InvalidInput if an array or a document is not closed."""
    blocks = line_blocks(file, reading)
    begin = next(blocks, None)
    while begin is not None and not begin[1].strip(_SPACE):  # bounded by the file
        begin = next(blocks, None)
    if begin is None:
        return
    style = "lines" if only_lines else _style(begin[1], whole=len(begin[1]) < reading.block_bytes)
    if style != "lines":
        reading.tell(f"JSON {style}, by its beginning")
        yield from _framed(begin, blocks, reading, array=style == "array")
        return
    yield Frame(begin[1], begin[0])
    for first, block in blocks:
        yield Frame(block, first)


def _style(block: bytes, *, whole: bool) -> str:
    begin = block.lstrip(_SPACE)
    if begin.startswith(b"["):
        return "array"
    line, _, rest = begin.partition(b"\n")
    if begin.startswith(b"{") and _FOLLOWED.search(line) and _is_several(line):
        return "documents"
    if not begin.startswith(b"{") or _closes(line) or (whole and not rest.strip(_SPACE)):
        return "lines"
    return "documents" if not whole or _closes(begin) else "lines"


_FOLLOWED = re.compile(rb"\}[ \t]*\{")


def _is_several(line: bytes) -> bool:
    """Whether records follow one another on the line."""
    brackets = structure(line)
    ends = brackets.at[brackets.depth == 0]
    return len(ends) > 1 and line[int(ends[0]) + 1 :].lstrip(_SPACE).startswith(b"{")


def _closes(text: bytes) -> bool:
    """Whether the value at the beginning of the text ends in it."""
    return bool((structure(text).depth == 0).any())


@dataclass(frozen=True)
class Structure:
    """Brackets and braces outside of strings: their places, and how deep the text is behind each."""

    at: Positions
    depth: Positions
    quotes: Positions

    def in_string(self, positions: Positions) -> npt.NDArray[np.bool_]:
        """Whether positions lie inside of strings."""
        return np.searchsorted(self.quotes, positions) % 2 == 1


def structure(text: bytes) -> Structure:
    """The structure of JSON text that begins outside of a string."""
    data = np.frombuffer(text, np.uint8)
    quotes = np.flatnonzero(data == ord('"'))
    if b"\\" in text:
        quotes = quotes[~_escaped(data, quotes)]
    folded = data | 0x20  # [ and { become {, ] and } become }
    at = np.flatnonzero((folded == ord("{")) | (folded == ord("}")))
    at = at[np.searchsorted(quotes, at) % 2 == 0]
    depth = np.cumsum(np.where(folded[at] == ord("{"), 1, -1))
    return Structure(at, depth, quotes)


def positions(data: npt.NDArray[np.uint8], byte: bytes) -> Positions:
    """Where the byte is; for braces, brackets too.  A piece at a time, which stays in the processor's caches."""
    folded, code = (byte in b"{}"), np.uint8(byte[0])
    parts: list[Positions] = []
    buffer, mask = np.empty(_PIECE, np.uint8), np.empty(_PIECE, np.bool_)
    for begin in range(0, len(data), _PIECE):
        piece = data[begin : begin + _PIECE]
        if folded:
            piece = np.bitwise_or(piece, 0x20, out=buffer[: len(piece)])  # [ and { become {, ] and } become }
        parts.append(np.flatnonzero(np.equal(piece, code, out=mask[: len(piece)])) + begin)
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _escaped(data: npt.NDArray[np.uint8], quotes: Positions) -> npt.NDArray[np.bool_]:
    """Whether an odd number of backslashes stands before each quote."""
    slashes = np.flatnonzero(data == ord("\\"))
    begins = np.concatenate([[True], np.diff(slashes) > 1])
    run_begin = slashes[np.maximum.accumulate(np.where(begins, np.arange(len(slashes)), 0))]
    before = np.searchsorted(slashes, quotes) - 1
    last = slashes[np.maximum(before, 0)]
    follows = (before >= 0) & (last == quotes - 1)
    return follows & ((quotes - run_begin[np.maximum(before, 0)]) % 2 == 1)


def _framed(
    begin: tuple[int, bytes], blocks: Iterator[tuple[int, bytes]], reading: Reading, *, array: bool
) -> Iterator[Frame]:
    """The records of an array, or documents.  What is not complete yet is held until the next block."""
    line, text = begin
    inside = False  # of the array
    while True:  # bounded by the file
        if array and not inside and text.strip(_SPACE):
            line, text = _past_space(line, text)
            if not text.startswith(b"["):
                reading.unreadable(line, "text behind the end of the array")
            text, inside = text[1:], True
        frame, taken, ended = _elements(text, line, reading) if array else _documents(text, line, reading)
        if frame.spans:
            yield frame
        if taken:
            line, text = line + text.count(b"\n", 0, taken), text[taken:]
        inside = inside and not ended
        if ended and text.strip(_SPACE):
            continue
        if len(text) > LONGEST_DOCUMENT:
            reading.unreadable(line, f"a JSON document is longer than {LONGEST_DOCUMENT >> 20} MiB")
        more = next(blocks, None)
        if more is None:
            break
        if not text.strip(_SPACE):
            line, text = more[0], b""
        text += more[1]
    line, text = _past_space(line, text)
    if text or inside:
        reading.unreadable(
            line, f"the file ends before the end of its JSON {'array' if array else 'document'}"
        )


def _past_space(line: int, text: bytes) -> tuple[int, bytes]:
    rest = text.lstrip(_SPACE)
    return line + text.count(b"\n", 0, len(text) - len(rest)), rest


def _elements(text: bytes, first: int, reading: Reading) -> tuple[Frame, int, bool]:
    """The complete elements, how much of the text they take, and whether the array ends there."""
    brackets = structure(text)
    data = np.frombuffer(text, np.uint8)
    closing = np.flatnonzero(brackets.depth < 0)
    end = int(brackets.at[closing[0]]) if len(closing) else -1
    commas = np.flatnonzero(data == ord(","))
    commas = commas[~brackets.in_string(commas)]
    depths = np.concatenate([[0], brackets.depth])
    commas = commas[depths[np.searchsorted(brackets.at, commas)] == 0]
    if end >= 0:
        commas = commas[commas < end]
    bounds = [-1, *commas.tolist(), *([end] if end >= 0 else [])]
    spans = [(a + 1, b) for a, b in pairwise(bounds)]
    if len(spans) == 1 and end >= 0 and not text[: spans[0][1]].strip(_SPACE):
        # an empty array, or the end behind a comma at which the last block ended
        spans = []
    for a, b in spans:
        if not text[a:b].strip(_SPACE):
            reading.unreadable(
                first + text.count(b"\n", 0, a), "a JSON array has nothing before a comma or its end"
            )
    return _frame(text, first, spans, brackets), bounds[-1] + 1, end >= 0


def _documents(text: bytes, first: int, reading: Reading) -> tuple[Frame, int, bool]:
    """The same of documents, which have no end in common."""
    brackets = structure(text)
    if (brackets.depth < 0).any():
        wrong = int(brackets.at[np.flatnonzero(brackets.depth < 0)[0]])
        reading.unreadable(first + text.count(b"\n", 0, wrong), "a bracket closes what no bracket opened")
    ends = (brackets.at[brackets.depth == 0] + 1).tolist()
    spans = list(pairwise([0, *ends]))
    return _frame(text, first, spans, brackets), ends[-1] if ends else 0, False


def _frame(text: bytes, first: int, spans: list[tuple[int, int]], brackets: Structure) -> Frame:
    """The records as lines: what stands between two of them becomes a line end."""
    if not spans:
        return Frame(b"", first)
    data = np.frombuffer(text, np.uint8).copy()
    ends = np.flatnonzero((data == 10) | (data == 13))
    data[ends] = np.where(brackets.in_string(ends), _CONTROL, ord(" "))
    between = np.array([end for _, end in spans[:-1]], np.int64)
    if np.isin(data[between], np.frombuffer(_SPACE + b",", np.uint8)).all():
        data[between] = ord("\n")
        lines = data[spans[0][0] : spans[-1][1]].tobytes()
    else:  # documents without a space between them
        clean = data.tobytes()
        lines = b"\n".join(clean[a:b] for a, b in spans)
    return Frame(lines, first, text, spans)
