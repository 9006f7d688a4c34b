"""Where the records of CSV text begin and end.

A quote at the beginning of a value opens it, and everything up to the next single quote belongs to it:
commas, line ends, and doubled quotes, which stand for one.  A quote elsewhere is a character like others.
Arrow's reader goes by the same rules, so its n-th record is the n-th one here.  On top of them, text behind a
closing quote is a fault of its record, since it shows that a quote is missing.

Most text has no quotes, or only such as RFC 4180 allows; that is seen at a glance (`is_regular`), and records
are looked for one by one only where it is not so, or where one must be named.  Called by `csvfile`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lake_core.ingest.block import Reading

LONGEST_RECORD = 64 << 20
_QUOTE = ord('"')
_PLAIN = re.compile(rb'[^"\r\n]*+')
_QUOTED = re.compile(rb'"(?:[^"]++|"")*+("?)')
_MAY_STAND_BESIDE = np.isin(np.arange(256), [_QUOTE, ord(","), ord("\r"), ord("\n")])


@dataclass(frozen=True)
class Line:
    """A record's place: its first line (from 1), its bytes [begin, end), and where the next one begins.

    `fault` says what is wrong with its quotes; `open` is the line of a quote that is never closed, else 0.
    """

    number: int
    begin: int
    end: int
    behind: int
    next_number: int
    fault: str = ""
    open: int = 0

    def raw(self, data: bytes) -> bytes:
        """The record as it is written."""
        return data[self.begin : self.end]


def records_of(data: bytes, first: int) -> Iterator[Line]:
    """The records of the text, whose first line has the number `first`; empty lines are none."""
    position, line = 0, first
    while position < len(data):  # every turn goes past a record
        begin, number, fault, opened = position, line, "", 0
        while True:  # every turn goes past a quoted value, a quote or the record's end
            position = _end(_PLAIN, data, position)
            if position == len(data) or data[position] != _QUOTE:
                break
            if position > begin and data[position - 1] != ord(","):
                position += 1
                continue
            start, position = position, _end(_QUOTED, data, position)
            if position - start < 2 or not _closes(data, start):
                opened = line
            elif position < len(data) and data[position] not in b",\r\n":
                fault = (
                    fault or f"the value that a quote opens in line {line} goes on behind its closing quote"
                )
            line += data.count(b"\n", start, position)
        end = position
        if position < len(data):
            position += 2 if data[position : position + 2] == b"\r\n" else 1
            line += 1
        if end > begin:
            yield Line(number, begin, end, position, line, fault, opened)


def _end(pattern: re.Pattern[bytes], data: bytes, position: int) -> int:
    match = pattern.match(data, position)
    assert match is not None  # both patterns match at every place where they are tried
    return match.end()


def _closes(data: bytes, start: int) -> bool:
    match = _QUOTED.match(data, start)
    return match is not None and bool(match[1])


def is_regular(data: bytes) -> bool:
    """Whether every quote opens, doubles or closes a value, so that no record has a fault."""
    return _regular_quotes(data) is not None


def whole_records(blocks: Iterator[tuple[int, bytes]], reading: Reading) -> Iterator[tuple[int, bytes]]:
    """Blocks of lines as blocks of records; raises InvalidInput where a quote is never closed."""
    held, first = b"", 0
    for line, block in blocks:
        first = first if held else line
        held += block
        if not _ends_quoted(held):
            yield first, held
            held = b""
        elif len(held) > LONGEST_RECORD:
            break
    if held:
        opened = next(line.open for line in records_of(held, first) if line.open)
        bound = f" within {LONGEST_RECORD >> 20} MiB" if len(held) > LONGEST_RECORD else ""
        reading.unreadable(opened, f"the quote that opens in this line is not closed{bound}")


def _ends_quoted(data: bytes) -> bool:
    quotes = _regular_quotes(data)
    if quotes is not None:
        return quotes % 2 == 1
    return any(line.open for line in records_of(data, 1))


def _regular_quotes(data: bytes) -> int | None:
    """How many quotes there are; None where one stands beside something other than an end of its value."""
    if b'"' not in data:
        return 0
    characters: npt.NDArray[np.uint8] = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(characters == _QUOTE)
    opening, closing = quotes[0::2], quotes[1::2]
    before = characters[opening[opening > 0] - 1]
    behind = characters[closing[closing < len(data) - 1] + 1]
    regular = _MAY_STAND_BESIDE[before].all() and _MAY_STAND_BESIDE[behind].all()
    return len(quotes) if regular else None
