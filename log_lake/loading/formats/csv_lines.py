"""Finds the beginning and the end of each record in CSV text.

A quote at the beginning of a value opens it. Everything up to the next single quote belongs to the value:
delimiters, line ends, and doubled quotes, which stand for one. A quote elsewhere is an ordinary character. An
escape makes the next character ordinary, even a line end; an escape at the end of the text is a fault of its
record. Arrow's reader has the same rules, so its n-th record is the n-th one here. One rule is added: text
after a closing quote is a fault of its record, because it shows that a quote is missing. A comment is a line
that begins with the comment character outside of a quoted value.

Most text has no quotes, or only those that RFC 4180 allows; `is_regular` finds that out quickly. Records are
searched one by one only in other text, or to name a record. Called by `csv`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from log_lake.loading.block import Reading

_LINE = re.compile(rb"[^\r\n]*+")


@dataclass(frozen=True)
class Dialect:
    """The characters that structure CSV text, such as the delimiter; `quote`, `escape` and `comment` are "" if the
    text has no such character."""

    delimiter: str = ","
    quote: str = '"'
    escape: str = ""
    comment: str = ""

    @cached_property
    def plain(self) -> re.Pattern[bytes]:
        """A pattern that matches text without a quote and without the end of a record."""
        if self.escape:
            escape, stop = re.escape(self.escape.encode()), _class(self.quote + self.escape + "\r\n")
            return re.compile(b"(?:[^%b]++|%b(?s:.))*+" % (stop, escape))
        return re.compile(b"[^%b]*+" % _class(self.quote + "\r\n"))

    @cached_property
    def quoted(self) -> re.Pattern[bytes]:
        """A pattern that matches a quoted value; its group is the closing quote, or empty if the text ends before
        one."""
        quote = re.escape(self.quote.encode())
        inner = _class(self.quote + self.escape)
        escaped = b"|%b(?s:.)" % re.escape(self.escape.encode()) if self.escape else b""
        return re.compile(b"%b(?:[^%b]++%b|%b%b)*+(%b?)" % (quote, inner, escaped, quote, quote, quote))

    @cached_property
    def beside_quotes(self) -> npt.NDArray[np.bool_]:
        """For each byte: whether it may stand directly before an opening quote or after a closing one."""
        return np.isin(np.arange(256), [ord(c) for c in self.quote + self.delimiter + "\r\n"])


def _class(characters: str) -> bytes:
    return b"".join(b"\\x%02x" % ord(c) for c in characters)


@dataclass(frozen=True)
class CsvLine:
    """The position of a record: its first line (from 1), its first byte, the byte after its last one, and where
    the next record begins.

    `fault` describes what is wrong with its quotes or its escape. `open` is the line of a quote that is never
    closed, 0 if every quote is closed. `ended`: the record ends with a line end.
    """

    number: int
    begin: int
    end: int
    behind: int
    next_number: int
    fault: str = ""
    open: int = 0
    ended: bool = True

    def raw(self, data: bytes) -> bytes:
        """Returns the record as the file has it."""
        return data[self.begin : self.end]


def records_of(data: bytes, first: int, dialect: Dialect) -> Iterator[CsvLine]:
    """Yields the position of each record of the text, whose first line has the number `first`.  Empty lines and
    comments are skipped."""
    quote, delimiter = ord(dialect.quote or "\n"), ord(dialect.delimiter)
    may_follow = (dialect.delimiter + "\r\n").encode()
    comment = dialect.comment.encode()
    position, line = 0, first
    while position < len(data):  # every turn goes past a record
        begin, number, fault, opened = position, line, "", 0
        if comment and data.startswith(comment, position):
            position = _end(_LINE, data, position)
            position += 2 if data[position : position + 2] == b"\r\n" else 1
            line += 1
            continue
        while True:  # every turn goes past a quoted value, a quote or the record's end
            start, position = position, _end(dialect.plain, data, position)
            if dialect.escape:
                line += data.count(b"\n", start, position)  # escaped ones
            if dialect.escape and data[position : position + 1] == dialect.escape.encode():
                fault, position = fault or "it ends with an escape, and nothing behind it", len(data)
            if position == len(data) or data[position] != quote or not dialect.quote:
                break
            if position > begin and data[position - 1] != delimiter:
                position += 1
                continue
            start, position = position, _end(dialect.quoted, data, position)
            if position - start < 2 or not _closes(data, start, dialect):
                opened = line
            elif position < len(data) and data[position] not in may_follow:
                fault = (
                    fault or f"the value that a quote opens in line {line} goes on behind its closing quote"
                )
            line += data.count(b"\n", start, position)
        end, ended = position, position < len(data)
        if ended:
            position += 2 if data[position : position + 2] == b"\r\n" else 1
            line += 1
        if end > begin:
            yield CsvLine(number, begin, end, position, line, fault, opened, ended)


def _end(pattern: re.Pattern[bytes], data: bytes, position: int) -> int:
    match = pattern.match(data, position)
    assert match is not None  # both patterns match at every place where they are tried
    return match.end()


def _closes(data: bytes, start: int, dialect: Dialect) -> bool:
    match = dialect.quoted.match(data, start)
    return match is not None and bool(match[1])


def is_regular(data: bytes, dialect: Dialect) -> bool:
    """Whether every quote opens, doubles or closes a value, so that the quotes of every record are correct."""
    return _regular_quotes(data, dialect) is not None


def whole_records(
    blocks: Iterator[tuple[int, bytes]], reading: Reading, dialect: Dialect
) -> Iterator[tuple[int, bytes]]:
    """Yields blocks of whole records, made from blocks of lines, with empty lines in place of comments.

    Raises InvalidInput if a quote is never closed.
    """
    gathered, first, longest = b"", 0, reading.limits.csv_record
    for line, block in blocks:
        first = first if gathered else line
        gathered += block
        if not _ends_inside(gathered, dialect):
            yield first, _without_comments(gathered, first, dialect)
            gathered = b""
        elif len(gathered) > longest:
            break
    if gathered:
        opened = next((line.open for line in records_of(gathered, first, dialect) if line.open), 0)
        long = len(gathered) > longest
        if opened:
            bound = f" within {longest >> 20} MiB" if long else ""
            reading.unreadable(opened, f"the quote that opens in this line is not closed{bound}")
        if long:
            reading.unreadable(first, f"a record in or after this line is longer than {longest >> 20} MiB")
        yield first, _without_comments(gathered, first, dialect)


def _without_comments(data: bytes, first: int, dialect: Dialect) -> bytes:
    """Returns the text with empty lines instead of comments, so that lines keep their numbers."""
    comment = dialect.comment.encode()
    if not comment or comment not in data:
        return data
    if not dialect.quote or dialect.quote.encode() not in data:
        return re.sub(rb"(?:(?<=[\r\n])|\A)%b[^\r\n]*" % re.escape(comment), b"", data)
    parts, position = [], 0
    for line in records_of(data, first, dialect):
        parts += [_emptied(data[position : line.begin]), data[line.begin : line.behind]]
        position = line.behind
    return b"".join([*parts, _emptied(data[position:])])


def _emptied(between: bytes) -> bytes:
    return re.sub(rb"[^\r\n]+", b"", between)


def _ends_inside(data: bytes, dialect: Dialect) -> bool:
    """Whether the last record continues after the data: a quote is open, or the last line end is escaped."""
    quotes = _regular_quotes(data, dialect)
    if quotes is not None:
        return quotes % 2 == 1
    line = None
    for line in records_of(data, 1, dialect):
        if line.open:
            return True
    return line is not None and not line.ended and data[-1:] in (b"\r", b"\n")


def _escapes_end(data: bytes, dialect: Dialect) -> bool:
    """Whether the last character is an escape character or is escaped, or the last line end is escaped."""
    text = data[:-1] if data[-1:] in (b"\r", b"\n") else data
    return (len(text) - len(text.rstrip(dialect.escape.encode()))) % 2 == 1


def _regular_quotes(data: bytes, dialect: Dialect) -> int | None:
    """Returns how many quotes there are; None if only reading record by record shows what a quote means."""
    quoted = bool(dialect.quote) and dialect.quote.encode() in data
    if dialect.escape and dialect.escape.encode() in data and (quoted or _escapes_end(data, dialect)):
        return None
    if not quoted:
        return 0
    if dialect.comment and dialect.comment.encode() in data:
        return None
    characters: npt.NDArray[np.uint8] = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(characters == ord(dialect.quote))
    opening, closing = quotes[0::2], quotes[1::2]
    before = characters[opening[opening > 0] - 1]
    behind = characters[closing[closing < len(data) - 1] + 1]
    regular = dialect.beside_quotes[before].all() and dialect.beside_quotes[behind].all()
    return len(quotes) if regular else None
