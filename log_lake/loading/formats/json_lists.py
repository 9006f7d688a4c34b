"""Reads the records of a list inside JSON documents, such as `{"Records": [...]}`; the option `records` names the
list.

`a.b` is the field `a.b`, or the field `b` of the object `a`.  A file may hold several such documents, or arrays
of them.  The fields beside the list are skipped: only their brackets and quotes are read.  The file is read a
piece at a time, and each piece becomes one frame, whatever number of lists it has.  Called by `json_frames`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator
from itertools import pairwise
from typing import BinaryIO

import numpy as np

from lake_core.phrases import did_you_mean
from log_lake.columns.arrays import Ints
from log_lake.loading.block import Reading
from log_lake.loading.formats.json_structure import LONGEST_DOCUMENT, Frame, frame_of, structure

FrameCutter = Generator[Frame, None, None]
"""A generator that reads a part of the documents. It yields a frame whenever a piece of the file has been
used up."""

_BLANKS = re.compile(rb"[ \t\r\n]*+")
_TOKEN = re.compile(rb'[{}\[\],:]|"[^"\\]*+(?:\\.[^"\\]*+)*+"|[^ \t\r\n{}\[\],:"]++', re.DOTALL)
_ENDS_ITSELF = tuple(b'{}[],:"')
_MOST_TOLD = 100
"""The most names of a document that an error message lists."""


def list_frames(file: BinaryIO, reading: Reading, *, longest: int = LONGEST_DOCUMENT) -> Iterator[Frame]:
    """Yields the records of the lists.

    Raises InvalidInput for a document that does not have the list once, or has a record or a text of more than
    `longest` bytes.
    """
    return _Documents(file, reading, longest).frames()


class _Documents:
    """A file of documents: the current piece, and a position in it that is never inside a string."""

    def __init__(self, file: BinaryIO, reading: Reading, longest: int) -> None:
        self._file, self._reading, self._longest = file, reading, longest
        self._text, self._line, self._at = b"", 1, 0
        self._spans: list[tuple[int, int]] = []
        self._look()

    def frames(self) -> FrameCutter:
        """Yields the records of all documents in the file, a frame at a time."""
        token = yield from self._token()
        while token:  # bounded by the file
            if token == b"[":
                yield from self._array()
            else:
                yield from self._document(token)
            token = yield from self._token()
        if self._spans:
            yield self._frame()

    def _array(self) -> FrameCutter:
        """Reads an array of documents, from after its bracket."""
        token = yield from self._token()
        if token == b"]":
            return
        while True:  # bounded by the file
            yield from self._document(token)
            end = yield from self._token()
            if end == b"]":
                return
            self._expect(end, b",")
            token = yield from self._token()

    def _document(self, token: bytes) -> FrameCutter:
        line, path = self._line_here(), self._reading.records
        if token != b"{":
            self._reading.unreadable(line, f"{_kind(token)} stands where a JSON object with {path!r} should")
        members: dict[str, str] = {}
        count = yield from self._object("", members)
        if not count:
            instead = members.get(path, "")
            self._reading.unreadable(
                line,
                f"{path!r} is {instead}, not a list of records (option records)"
                if instead
                else f"the JSON object has no list {path!r} (option records); "
                f"{did_you_mean(path, [name for name, kind in members.items() if kind == 'a list'])}",
            )
        if count > 1:
            self._reading.unreadable(line, f"the JSON object has {path!r} {count:,} times (option records)")

    def _object(self, above: str, seen: dict[str, str]) -> Generator[Frame, None, int]:
        """Reads the members of an object, from after its brace. Returns how often the wanted list was among them.

        `above` is the path to the object, with a dot at its end. Adds the paths of members, with their kinds,
        to `seen`.
        """
        count, path = 0, self._reading.records
        token = yield from self._token()
        while token != b"}":  # bounded by the file
            name = above + self._name(token)
            self._expect((yield from self._token()), b":")
            value = yield from self._token()
            if len(seen) < _MOST_TOLD or name == path:
                seen[name] = _kind(value)
            if name == path and value in (b"[", b"null"):
                count += 1
                if value == b"[":
                    yield from self._records()
            elif value == b"{" and path.startswith(name + "."):  # each step takes a part of the path
                count += yield from self._object(name + ".", seen)
            elif value in (b"{", b"["):
                yield from self._past()
            elif value in (b"", b"}", b"]", b",", b":"):
                self._malformed(value)
            token = yield from self._token()
            if token != b"}":
                self._expect(token, b",")
                token = yield from self._token()
                if token == b"}":
                    self._malformed(token)
        return count

    def _records(self) -> FrameCutter:
        """Reads the elements of the list, from after its bracket."""
        some = False
        while True:  # bounded by the file
            first, depth = self._bracket()
            ending = _first_below(self._depths, first, depth)
            end = int(self._brackets.at[ending]) if ending is not None else len(self._text)
            low, high = np.searchsorted(self._commas, (self._at, end))
            commas = self._commas[low:high][self._comma_depths[low:high] == depth]
            bounds = [self._at - 1, *commas.tolist(), *([end] if ending is not None else [])]
            spans = [(a + 1, b) for a, b in pairwise(bounds)]
            if ending is not None and not some and len(spans) == 1 and self._is_blank(*spans[0]):
                spans = []
            for a, b in spans:
                if self._is_blank(a, b):
                    self._at = a
                    self._reading.unreadable(
                        self._line_here(), "a JSON array has nothing before a comma or its end"
                    )
            self._spans += spans
            some = some or bool(spans)
            self._at = bounds[-1] + 1
            if ending is not None:
                return
            if not (yield from self._more()):
                self._ends_early()

    def _past(self) -> FrameCutter:
        """Skips the content of an array or object after its bracket, and its end."""
        open = 1
        while True:  # bounded by the file
            first, depth = self._bracket()
            ending = _first_below(self._depths, first, depth - open + 1)
            if ending is not None:
                self._at = int(self._brackets.at[ending]) + 1
                return
            if first < len(self._depths):
                open += int(self._depths[-1]) - depth
            quotes = self._brackets.quotes
            self._at = int(quotes[-1]) if len(quotes) % 2 else len(self._text)
            if not (yield from self._more()):
                self._ends_early()

    def _token(self) -> Generator[Frame, None, bytes]:
        """Returns the next bracket, comma, colon, text or word; empty at the end of the file."""
        while True:  # bounded by the file
            self._at = _BLANKS.match(self._text, self._at).end()  # type: ignore[union-attr]
            token = _TOKEN.match(self._text, self._at)
            if token and (token.end() < len(self._text) or self._text[token.start()] in _ENDS_ITSELF):
                break
            if not (yield from self._more()):
                token = _TOKEN.match(self._text, self._at)
                break
        if token is None:
            if self._at < len(self._text):
                self._ends_early()
            return b""
        self._at = token.end()
        return token[0]

    def _more(self) -> Generator[Frame, None, bool]:
        """Whether the file has another piece; it is appended to the rest of the current one."""
        if self._spans:
            yield self._frame()
            self._spans = []
        if len(self._text) - self._at > self._longest:
            self._reading.unreadable(
                self._line_here(), f"a JSON record or text is longer than {self._longest >> 20} MiB"
            )
        piece = self._file.read(self._reading.block_bytes)
        self._line = self._line_here()
        self._text, self._at = self._text[self._at :] + piece, 0
        self._look()
        return bool(piece)

    def _look(self) -> None:
        """Finds the brackets and commas of the piece."""
        self._brackets = structure(self._text)
        self._depths = self._brackets.depth
        commas = np.flatnonzero(np.frombuffer(self._text, np.uint8) == ord(","))
        self._commas = commas[~self._brackets.in_string(commas)]
        depths = np.concatenate([[0], self._depths])
        self._comma_depths = depths[np.searchsorted(self._brackets.at, self._commas)]

    def _bracket(self) -> tuple[int, int]:
        """Returns the number of the next bracket in the piece, and the depth before it."""
        first = int(np.searchsorted(self._brackets.at, self._at))
        return first, int(self._depths[first - 1]) if first else 0

    def _frame(self) -> Frame:
        return frame_of(self._text, self._line, self._spans, self._brackets)

    def _is_blank(self, begin: int, end: int) -> bool:
        return _BLANKS.match(self._text, begin, end).end() == end  # type: ignore[union-attr]

    def _line_here(self) -> int:
        return self._line + self._text.count(b"\n", 0, self._at)

    def _name(self, token: bytes) -> str:
        try:
            name = json.loads(token)
        except ValueError:  # a name that is not UTF-8 too
            name = None
        if not isinstance(name, str):
            self._malformed(token)
        return name

    def _expect(self, token: bytes, expected: bytes) -> None:
        if token != expected:
            self._malformed(token)

    def _malformed(self, token: bytes) -> None:
        if not token:
            self._ends_early()
        self._reading.unreadable(
            self._line_here(), f"malformed JSON: {token[:40].decode(errors='replace')!r} is not expected here"
        )

    def _ends_early(self) -> None:
        self._reading.unreadable(self._line_here(), "the file ends before the end of its JSON document")


def _first_below(depths: Ints, begin: int, depth: int) -> int | None:
    """Returns the number of the first bracket, from `begin` on, after which the text is less deep; None if there
    is none.

    It searches windows of doubling size: there are as many lists as documents, and most are short.
    """
    size = 64
    while begin < len(depths):  # each round goes on
        below = np.flatnonzero(depths[begin : begin + size] < depth)
        if len(below):
            return begin + int(below[0])
        begin, size = begin + size, 2 * size
    return None


_KINDS = {
    b"{": "an object",
    b"[": "a list",
    b'"': "a string",
    b"t": "a boolean",
    b"f": "a boolean",
    b"n": "null",
}


def _kind(token: bytes) -> str:
    """Returns the kind of value that begins with the token."""
    if re.fullmatch(rb"-?[0-9][0-9.eE+-]*", token):
        return "a number"
    return _KINDS.get(token[:1], f"{token[:40].decode(errors='replace')!r}")
