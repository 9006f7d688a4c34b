"""Single values and numbers in bytes: the parts of typedefs, reassembly records and trailers.

`slices` and `columns` read and write columns of values, thousands at a time; this module does the rest.
`Cursor` reads one number, text or value after another, and raises Corrupt with the offset if the bytes end too
soon.
"""

from __future__ import annotations

from collections.abc import Iterator

from lake_core.errors import Corrupt

MAX_VALUE_BYTES = 10 << 20
"""The most bytes of one top-level value, and of one uncompressed block; the original program reads no larger
ones."""

_MIN_INT64 = -(2**63)


ADVICE = "; the file is damaged, or is no such file: restore it from a copy"
"""The end of every message about damaged bytes."""


def corrupt(name: str, offset: int, what: str) -> Corrupt:
    """Returns the error for damaged bytes at an offset of a file."""
    return Corrupt(f"{name}: byte {offset:,}: {what}{ADVICE}")


def uvarint(number: int) -> bytes:
    """Returns an unsigned number as bytes of seven bits each, lowest bits first."""
    data = bytearray()
    while number >= 0x80:  # ends: the number shrinks
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)
    return bytes(data)


def unsigned(number: int) -> bytes:
    """Returns the body of an unsigned integer."""
    return number.to_bytes((number.bit_length() + 7) // 8, "little")


def signed(number: int) -> bytes:
    """Returns the body of a signed integer: the magnitude, with the sign in the lowest bit."""
    if number == _MIN_INT64:
        return b"\x01"
    return unsigned(number << 1 if number >= 0 else (-number << 1) | 1)


def as_unsigned(body: bytes) -> int:
    """Returns the unsigned integer in a body.  Raises Corrupt if it has more than 64 bits."""
    if len(body) > 8:
        raise Corrupt(f"a number of {len(body):,} bytes; at most 8 are allowed")
    return int.from_bytes(body, "little")


def as_signed(body: bytes) -> int:
    """Returns the signed integer in a body.  Raises Corrupt if it has more than 64 bits."""
    number = as_unsigned(body)
    if not number & 1:
        return number >> 1
    return -(number >> 1) if number > 1 else _MIN_INT64


def primitive(body: bytes | None) -> bytes:
    """Returns a primitive value with its tag; None is null."""
    return b"\0" if body is None else uvarint(2 * len(body) + 2) + body


def container(body: bytes | None) -> bytes:
    """Returns a container value with its tag; None is null."""
    return b"\0" if body is None else uvarint(2 * len(body) + 1) + body


class Cursor:
    """Reads bytes from beginning to end; `offset` is where in the file the bytes begin.

    If a read raised Corrupt, `short` tells whether the reason was that the bytes ended too soon.
    """

    __slots__ = ("data", "name", "offset", "position", "short")

    def __init__(self, data: bytes, *, name: str, offset: int = 0, position: int = 0) -> None:
        self.data = data
        self.name = name
        self.offset = offset
        self.position = position
        self.short = False

    @property
    def left(self) -> int:
        """The number of bytes not read yet."""
        return len(self.data) - self.position

    def corrupt(self, what: str, position: int | None = None) -> Corrupt:
        """Returns the error for the last read, or for `position`."""
        return corrupt(self.name, self.offset + (self.position if position is None else position), what)

    def too_short(self, what: str, position: int | None = None) -> Corrupt:
        """Returns the error if the bytes ended too soon."""
        self.short = True
        return self.corrupt(what, position)

    def byte(self) -> int:
        """Reads and returns one byte."""
        if self.position >= len(self.data):
            raise self.too_short("the bytes end within a value")
        self.position += 1
        return self.data[self.position - 1]

    def uvarint(self) -> int:
        """Reads and returns one unsigned number of up to 64 bits."""
        begun, number = self.position, 0
        for shift in range(0, 70, 7):
            byte = self.byte()
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                if number < 1 << 64:
                    return number
                break
        raise self.corrupt("a number has more than 64 bits", begun)

    def take(self, length: int) -> bytes:
        """Reads and returns the next `length` bytes."""
        if length > self.left:
            raise self.too_short(f"{length:,} bytes are announced, {self.left:,} are left")
        self.position += length
        return self.data[self.position - length : self.position]

    def text(self) -> str:
        """Reads a name: its length, then its bytes as UTF-8."""
        begun = self.position
        try:
            return self.take(self.uvarint()).decode()
        except UnicodeDecodeError:
            raise self.corrupt("a name is not UTF-8", begun) from None

    def value(self) -> bytes | None:
        """Reads a tagged value and returns its body; None if it is null."""
        tag = self.uvarint()
        return self.take((tag - 1) >> 1) if tag else None

    def values(self) -> Iterator[bytes | None]:
        """Yields the bodies of all tagged values up to the end."""
        while self.left:  # ends: a value takes a byte at least
            yield self.value()
