"""Finds where the records of a JSON file begin and end: lines, the elements of an array, or documents one after
another.

The beginning of the file shows which.  `[` begins an array.  A `{` that is closed on a later line begins
documents of several lines.  Everything else is lines, one record each.  Elements and documents reach the reader
of lines as lines (`json_structure`).  An array, and documents on one line, are read a piece at a time, whatever
the length of the line. With the option `records` the records are those of lists inside documents (`json_lists`).

This module looks only at brackets, braces and quotes; the reader decides whether a record is JSON.  Called by
`json`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import BinaryIO

import numpy as np

from log_lake.loading.block import Reading
from log_lake.loading.formats.json_lists import list_frames
from log_lake.loading.formats.json_structure import LONGEST_DOCUMENT, SPACE, Frame, frame_of, structure
from log_lake.loading.opening import line_blocks, pieces


def frames(file: BinaryIO, reading: Reading, *, only_lines: bool = False) -> Iterator[Frame]:
    """Yields the file's records.  Raises InvalidInput if an array or a document is not closed."""
    if reading.records:
        yield from list_frames(file, reading)
        return
    piece = file.read(reading.block_bytes)
    if not only_lines and (style := _style_of_line(piece)):
        cut = pieces(file, reading, begin=piece)
        yield from _framed(next(cut), cut, reading, array=style == "array")
        return
    blocks = line_blocks(file, reading, begin=piece)
    begin = next(blocks, None)
    while begin is not None and not begin[1].strip(SPACE):  # bounded by the file
        begin = next(blocks, None)
    if begin is None:
        return
    style = "lines" if only_lines else _style(begin[1], whole=len(begin[1]) < reading.block_bytes)
    if style != "lines":
        yield from _framed(begin, blocks, reading, array=style == "array")
        return
    yield Frame(begin[1], begin[0])
    for first, block in blocks:
        yield Frame(block, first)


def _style_of_line(piece: bytes) -> str:
    """Returns the style that the first piece of a file shows, if it shows one before the end of its first line;
    otherwise ""."""
    begin = piece.lstrip(SPACE)
    if begin.startswith(b"["):
        return "array"
    is_one_line = begin.startswith(b"{") and b"\n" not in begin
    return "documents" if is_one_line and _FOLLOWED.search(begin) and _is_several(begin) else ""


def _style(block: bytes, *, whole: bool) -> str:
    begin = block.lstrip(SPACE)
    if begin.startswith(b"["):  # behind a piece of blanks
        return "array"
    line, _, rest = begin.partition(b"\n")
    if begin.startswith(b"{") and _FOLLOWED.search(line) and _is_several(line):
        return "documents"
    if not begin.startswith(b"{") or _closes(line) or (whole and not rest.strip(SPACE)):
        return "lines"
    return "documents" if not whole or _closes(begin) else "lines"


_FOLLOWED = re.compile(rb"\}[ \t]*\{")


def _is_several(line: bytes) -> bool:
    """Whether the line has several records, one after another."""
    brackets = structure(line)
    ends = brackets.at[brackets.depth == 0]
    return len(ends) > 1 and line[int(ends[0]) + 1 :].lstrip(SPACE).startswith(b"{")


def _closes(text: bytes) -> bool:
    """Whether the value at the beginning of the text also ends in it."""
    return bool((structure(text).depth == 0).any())


def _framed(
    begin: tuple[int, bytes], blocks: Iterator[tuple[int, bytes]], reading: Reading, *, array: bool
) -> Iterator[Frame]:
    """Yields the records of an array, or documents.  An incomplete record waits for the next block."""
    reading.tell(f"JSON {'array' if array else 'documents'}, by its beginning")
    line, text = begin
    inside = False  # of the array
    while True:  # bounded by the file
        if array and not inside and text.strip(SPACE):
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
        if ended and text.strip(SPACE):
            continue
        if len(text) > LONGEST_DOCUMENT:
            reading.unreadable(line, f"a JSON document is longer than {LONGEST_DOCUMENT >> 20} MiB")
        more = next(blocks, None)
        if more is None:
            break
        if not text.strip(SPACE):
            line, text = more[0], b""
        text += more[1]
    line, text = _past_space(line, text)
    if text or inside:
        reading.unreadable(
            line, f"the file ends before the end of its JSON {'array' if array else 'document'}"
        )


def _past_space(line: int, text: bytes) -> tuple[int, bytes]:
    rest = text.lstrip(SPACE)
    return line + text.count(b"\n", 0, len(text) - len(rest)), rest


def _elements(text: bytes, first: int, reading: Reading) -> tuple[Frame, int, bool]:
    """Returns the complete elements, how many bytes of the text they take, and whether the array ends there."""
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
    if len(spans) == 1 and end >= 0 and not text[: spans[0][1]].strip(SPACE):
        # an empty array, or the end behind a comma at which the last block ended
        spans = []
    for a, b in spans:
        if not text[a:b].strip(SPACE):
            reading.unreadable(
                first + text.count(b"\n", 0, a), "a JSON array has nothing before a comma or its end"
            )
    return frame_of(text, first, spans, brackets), bounds[-1] + 1, end >= 0


def _documents(text: bytes, first: int, reading: Reading) -> tuple[Frame, int, bool]:
    """Like `_elements`, for documents that follow one another; they have no common end."""
    brackets = structure(text)
    if (brackets.depth < 0).any():
        wrong = int(brackets.at[np.flatnonzero(brackets.depth < 0)[0]])
        reading.unreadable(first + text.count(b"\n", 0, wrong), "a bracket closes what no bracket opened")
    ends = (brackets.at[brackets.depth == 0] + 1).tolist()
    spans = list(pairwise([0, *ends]))
    return frame_of(text, first, spans, brackets), ends[-1] if ends else 0, False
