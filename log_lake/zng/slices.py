"""Finds many tagged values in a buffer at once, reads them as numbers, and writes them.

A tagged value is a number (its tag) and a body.  For many values, `Slices` holds the position of each body, its
length (-1 for null) and the length of its tag; nothing is copied.  `chain` finds values that follow one
another, `at_cursors` finds values whose positions are known.  `gather` copies pieces of buffers into one
buffer, in Arrow's code.

Every offset and length is checked before it is used as an index; a wrong one raises Corrupt.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lake_core.errors import Corrupt
from log_lake.columns.arrays import Bytes, Ints, Mask

Words = npt.NDArray[np.uint64]

_PADDING = 16
"""Bytes added after a buffer's end, so that eight bytes can be read from any position."""

_MASKS = np.array([(1 << (8 * width)) - 1 for width in range(9)], np.uint64)
"""The mask that keeps the lowest n bytes of a word, at index n."""

_STEPS = [1 + ((tag - 1) >> 1 if tag else 0) if tag < 0x80 else 0 for tag in range(256)]
"""The size of a tagged value, by its first byte; 0 if its tag has more than one byte."""

_RUN_VALUES = 65_536
_TRIED_RUNS = 8
_LONG_RUN = 32
"""Average number of values per run of equal tags; with shorter runs, `chain` reads one value at a time."""

_READ_BYTES = 262_144
"""Bytes that are read value by value before `chain` tries runs again."""

_SHORT_TAG = 63
"""Bodies below this size have a tag of one byte."""

_INLINE = 12
"""Bytes that an Arrow view can hold itself."""


class Buffer:
    """Bytes of a file or a block.  For errors, `where` converts a position in these bytes to a position in the
    file."""

    __slots__ = ("data", "size", "where", "words")

    def __init__(self, data: bytes | Bytes, where: Callable[[int, str], Corrupt]) -> None:
        source = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data
        self.size = len(source)
        padded = np.empty(self.size + _PADDING, np.uint8)
        padded[: self.size] = source
        padded[self.size :] = 0
        self.data = padded
        self.words: Words = np.ndarray((self.size + _PADDING - 7,), "<u8", padded.data, strides=(1,))
        self.where = where

    def corrupt(self, position: int, what: str) -> Corrupt:
        """Returns the error for damage at a position."""
        return self.where(int(position), what)


def _no_place(position: int, what: str) -> Corrupt:
    return Corrupt(f"value {position}: {what}")


def made(data: Bytes) -> Buffer:
    """Wraps bytes that this program wrote."""
    return Buffer(data, _no_place)


@dataclass(frozen=True, eq=False)
class Slices:
    """Tagged values in a buffer: `start` and `length` of the bodies, and the size of the tag before each.

    A null has length -1, and its `start` is the position after its tag.  `is_canonical`: this program wrote the
    values, as primitives.
    """

    buffer: Buffer
    start: Ints
    length: Ints
    tag: Ints
    is_canonical: bool = False

    def __len__(self) -> int:
        return len(self.start)

    def __getitem__(self, rows: slice | Ints | Mask) -> Slices:
        return Slices(self.buffer, self.start[rows], self.length[rows], self.tag[rows], self.is_canonical)

    @cached_property
    def valid(self) -> Mask:
        """For each value, whether it is not null."""
        return self.length >= 0

    @property
    def stop(self) -> Ints:
        """Returns the position after each value."""
        return self.start + np.maximum(self.length, 0)

    def unsigned(self) -> Words:
        """Returns the bodies as unsigned numbers, 0 for null.  Raises Corrupt if one has more than 64 bits."""
        wide = self.length > 8
        if wide.any():
            at = int(np.argmax(wide))
            raise self.buffer.corrupt(self.start[at], f"a number of {self.length[at]:,} bytes")
        return self.buffer.words[self.start] & _MASKS[np.maximum(self.length, 0)]

    def signed(self) -> Ints:
        """Returns the bodies as signed numbers, 0 for null."""
        raw = self.unsigned()
        magnitude = (raw >> np.uint64(1)).view(np.int64)
        numbers = np.where(raw & np.uint64(1), -magnitude, magnitude)
        return np.where(raw == 1, np.iinfo(np.int64).min, numbers) if (raw == 1).any() else numbers

    def tagged(self) -> tuple[Buffer, Ints, Ints]:
        """Returns the values with their tags, as pieces to gather."""
        return self.buffer, self.start - self.tag, self.tag + np.maximum(self.length, 0)

    def bodies(self) -> tuple[Buffer, Ints, Ints]:
        """Returns the bodies, as pieces to gather; nulls are empty."""
        return self.buffer, self.start, np.maximum(self.length, 0)


Pieces = tuple[Buffer, Ints, Ints]
"""A buffer, the positions of pieces in it, and their lengths."""


def at_cursors(buffer: Buffer, cursor: Ints, stop: Ints) -> Slices:
    """Returns the tagged value at each cursor.  Raises Corrupt if one does not end before `stop`."""
    if (cursor >= stop).any():
        at = int(np.argmax(cursor >= stop))
        raise buffer.corrupt(cursor[at], "the value has fewer parts than its type")
    tag, width = _uvarints(buffer, cursor)
    start = cursor + width
    length = np.where(tag > 0, (tag - 1) >> 1, -1)
    beyond = start + np.maximum(length, 0) > stop
    if beyond.any():
        at = int(np.argmax(beyond))
        raise buffer.corrupt(
            cursor[at], f"a value of {length[at]:,} bytes, where {stop[at] - start[at]:,} are left"
        )
    return Slices(buffer, start, length, width)


def _uvarints(buffer: Buffer, cursor: Ints) -> tuple[Ints, Ints]:
    """Returns the number at each cursor, and how many bytes it takes.  Raises Corrupt for a number that cannot be
    a length."""
    first = buffer.data[cursor]
    numbers = first.astype(np.int64)
    width = np.ones(len(cursor), np.int64)
    rows = np.flatnonzero(first >= 0x80)
    numbers[rows] &= 0x7F
    for shift in range(7, 42, 7):
        if not len(rows):
            return numbers, width
        at = cursor[rows] + width[rows]
        if (at >= buffer.size).any():
            raise buffer.corrupt(buffer.size, "the bytes end within a number")
        byte = buffer.data[at].astype(np.int64)
        numbers[rows] |= (byte & 0x7F) << shift
        width[rows] += 1
        rows = rows[byte >= 0x80]
    if len(rows):
        raise buffer.corrupt(cursor[rows[0]], "a length has more than 41 bits")
    return numbers, width


def chain(buffer: Buffer, start: int, stop: int) -> Slices:
    """Returns all tagged values between two positions, one after another.  Raises Corrupt unless the last one ends
    at `stop`.

    The position of a value is known only after the value before it was read.  Many values in a row with the
    same tag are found at once; others are read one by one, in as few steps of Python as possible (decision 61).
    """
    parts: list[Ints] = []
    at = start
    while at < stop:  # ends: each round takes a value at least
        even, at = _runs(buffer, at, stop)
        parts += even
        if at < stop:
            others, at = _one_by_one(buffer, at, stop)
            parts.append(others)
    cursor = np.concatenate(parts) if parts else np.zeros(0, np.int64)
    if at != stop:
        raise buffer.corrupt(stop, "the last value does not end where its segment ends")
    return at_cursors(buffer, cursor, np.full(len(cursor), stop))


def _runs(buffer: Buffer, start: int, stop: int) -> tuple[list[Ints], int]:
    """Returns the positions of values while many in a row have the same tag, and the position after them."""
    begins: list[Ints] = []
    values, at = 0, start
    while at < stop and (len(begins) < _TRIED_RUNS or values >= _LONG_RUN * len(begins)):  # ends: `at` grows
        step = _STEPS[int(buffer.data[at])]
        if not step:
            break
        same = buffer.data[at : min(stop, at + step * _RUN_VALUES) : step] == buffer.data[at]
        count = len(same) if same.all() else int(np.argmin(same))
        begins.append(np.arange(at, at + count * step, step, dtype=np.int64))
        values += count
        at += count * step
    return begins, at


def _one_by_one(buffer: Buffer, start: int, stop: int) -> tuple[Ints, int]:
    """Returns the positions of some of the next values, at least one, and the position after them."""
    end = min(stop, start + _READ_BYTES)
    data = buffer.data[start : end + _PADDING].tobytes()
    begins: list[int] = []
    add, steps = begins.append, _STEPS
    at, size = 0, end - start
    while at < size:  # ends: a value takes a byte at least
        add(at)
        step = steps[data[at]]
        at += step or _wide_step(data, at)
    return np.array(begins, np.int64) + start, start + at


def _wide_step(data: bytes, at: int) -> int:
    """Returns the size of a value whose tag has more than one byte."""
    tag = 0
    for width, byte in enumerate(data[at : at + 6]):
        tag |= (byte & 0x7F) << (7 * width)
        if byte < 0x80:
            return width + 1 + ((tag - 1) >> 1 if tag else 0)
    return 6  # no length: `at_cursors` says so


# --- pieces to buffers


def gather(pieces: Pieces) -> tuple[Bytes, Ints]:
    """Copies the pieces into one buffer.  Returns it, and the position of each piece in it, followed by the end of
    the last."""
    return interleaved([pieces])


def interleaved(columns: list[Pieces]) -> tuple[Bytes, Ints]:
    """Joins the pieces of several columns row by row.  Returns the buffer, and the position of each row in it,
    followed by the end of the last."""
    rows = len(columns[0][1])
    sizes = sum((length for _, _, length in columns), np.zeros(rows, np.int64))
    offsets = np.zeros(rows + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    if not offsets[-1]:
        return np.zeros(0, np.uint8), offsets
    if len(columns) == 1 and (columns[0][1] - columns[0][1][0] == offsets[:-1]).all():
        begun = int(columns[0][1][0])  # they stand one after another as it is
        return columns[0][0].data[begun : begun + int(offsets[-1])], offsets
    views = np.empty((rows, len(columns), 2), np.uint64)
    buffers: list[Buffer] = []
    for at, (buffer, start, length) in enumerate(columns):
        index = next((i for i, other in enumerate(buffers) if other is buffer), len(buffers))
        if index == len(buffers):
            buffers.append(buffer)
        _views(buffer, start, length, index, views[:, at])
    blobs = [pa.py_buffer(buffer.data) for buffer in buffers]
    array = pa.Array.from_buffers(
        pa.binary_view(), rows * len(columns), [None, pa.py_buffer(views.reshape(-1)), *blobs]
    )
    data = np.frombuffer(array.cast(pa.large_binary()).buffers()[2], np.uint8)
    return data[: offsets[-1]], offsets


def _views(buffer: Buffer, start: Ints, length: Ints, index: int, views: Words) -> None:
    """Writes Arrow's views of the pieces to `views`: a short piece lies in its view; a longer one is named by
    buffer and position."""
    begun = buffer.words[start]
    size = length.astype(np.uint64)
    views[:, 0] = size | ((begun & _MASKS[np.minimum(length, 4)]) << np.uint64(32))
    rest = buffer.words[np.minimum(start + 4, buffer.size)] & _MASKS[np.clip(length - 4, 0, 8)]
    if length.size and int(length.max()) > _INLINE:
        far = (start.astype(np.uint64) << np.uint64(32)) | np.uint64(index)
        rest = np.where(length > _INLINE, far, rest)
    views[:, 1] = rest


def binary_array(slices: Slices, kind: Any) -> pa.Array:
    """Returns the bodies as an Arrow array of strings or bytes.  Raises ArrowInvalid for a string that is not
    UTF-8."""
    data, offsets = gather(slices.bodies())
    validity = None if slices.valid.all() else pa.py_buffer(np.packbits(slices.valid, bitorder="little"))
    small = pa.py_buffer(offsets.astype(np.int32))
    array = pa.Array.from_buffers(kind, len(slices), [validity, small, pa.py_buffer(data)])
    array.validate(full=pa.types.is_string(kind))
    return array


def tags(size: Ints, *, container: bool = False, null: Mask | None = None) -> Slices:
    """Returns the tags for values with these body sizes, as values without bodies."""
    number = 2 * size + (1 if container else 2)
    if null is not None:
        number = np.where(null, 0, number)
    return uvarints(number)


def uvarint_sizes(number: Ints) -> Ints:
    """Returns how many bytes each number takes as a varint (seven bits per byte)."""
    width = np.ones(len(number), np.int64)
    most = int(number.max()) if len(number) else 0
    for at in range(1, max(1, -(-most.bit_length() // 7))):
        width += (number >> (7 * at)) > 0
    return width


def uvarints(number: Ints) -> Slices:
    """Returns the numbers as varints (seven bits per byte), each as a piece without a tag."""
    if not number.size or int(number.max()) < 0x80:
        data, width = number.astype(np.uint8), np.ones(len(number), np.int64)
        return Slices(made(data), np.arange(len(number)), width, np.zeros(len(number), np.int64))
    width = uvarint_sizes(number)
    columns = int(width.max())
    grid = np.empty((len(number), columns), np.uint8)
    for at in range(columns):
        grid[:, at] = ((number >> (7 * at)) & 0x7F) | np.where(width > at + 1, 0x80, 0)
    start = np.arange(len(number)) * columns
    return Slices(made(grid.reshape(-1)), start, width, np.zeros(len(number), np.int64))


def unsigned_values(number: Words, valid: Mask | None = None) -> Slices:
    """Returns the numbers as primitive values of the fewest bytes, one after another; a number that is not valid
    becomes null."""
    rows = len(number)
    least, most = (int(number.min()), int(number.max())) if rows else (0, 0)
    width = np.full(rows, (least.bit_length() + 7) // 8)
    for at in range((least.bit_length() + 7) // 8, (most.bit_length() + 7) // 8):
        width += number >> np.uint64(8 * at) != 0
    return _fixed_values(number, width, valid)


def signed_values(number: Ints, valid: Mask | None = None) -> Slices:
    """Like `unsigned_values`, for signed numbers."""
    magnitude = np.abs(number).view(np.uint64) << np.uint64(1)
    raw = np.where(number < 0, magnitude | np.uint64(1), magnitude)
    return unsigned_values(raw, valid)


def _fixed_values(words: Words, width: Ints, valid: Mask | None) -> Slices:
    """Returns tagged values, each of the lowest `width` bytes of a word."""
    rows = len(words)
    most = int(width.max()) if rows else 0
    grid = np.empty((rows, 1 + most), np.uint8)
    grid[:, 0] = 2 * width + 2
    grid[:, 1:] = words.astype("<u8", copy=False).view(np.uint8).reshape(rows, 8)[:, :most]
    length = width
    if valid is not None and not valid.all():
        grid[~valid, 0] = 0
        length = np.where(valid, width, -1)
    used = np.maximum(length, 0)
    if rows and bool((used == most).all()):
        data = grid.reshape(-1)
    else:
        data = grid[np.arange(1 + most) <= used[:, None]]
    start = np.cumsum(used + 1) - used
    return Slices(made(data), start, length, np.ones(rows, np.int64), is_canonical=True)


def fixed_values(words: Words, width: int, valid: Mask | None = None) -> Slices:
    """Returns the words as primitive values of `width` bytes each, at most 8."""
    return _fixed_values(words, np.full(len(words), width), valid)


def body_values(bodies: Pieces, valid: Mask, *, container: bool = False) -> Slices:
    """Returns the bodies as tagged values, one after another; a body that is not valid becomes null."""
    length = np.where(valid, bodies[2], -1)
    used = np.maximum(length, 0)
    if (quick := _with_short_tags(bodies, used, valid, container=container)) is not None:
        ends = np.cumsum(used + 1)
        return Slices(
            made(quick), ends - used, length, np.ones(len(used), np.int64), is_canonical=not container
        )
    heads = tags(bodies[2], container=container, null=~valid)
    data, offsets = interleaved([heads.bodies(), (bodies[0], bodies[1], used)])
    return Slices(made(data), offsets[:-1] + heads.length, length, heads.length, is_canonical=not container)


def _with_short_tags(bodies: Pieces, used: Ints, valid: Mask, *, container: bool) -> Bytes | None:
    """Returns the bodies with a tag of one byte before each, if they follow one another in their buffer; otherwise
    None."""
    buffer, start, _ = bodies
    if not len(used) or int(used.max()) >= _SHORT_TAG:
        return None
    ends = np.cumsum(used)
    first, total = int(start[0]), int(ends[-1])
    if not valid.all():
        begins = ends - used
        if ((start - first != begins) & (used > 0)).any():
            return None
    elif (start - first != ends - used).any():
        return None
    places = ends - used + np.arange(len(used))
    tagged = np.empty(total + len(used), np.uint8)
    is_body = np.ones(len(tagged), np.bool_)
    is_body[places] = False
    tagged[is_body] = buffer.data[first : first + total]
    tagged[places] = np.where(valid, 2 * used + (1 if container else 2), 0)
    return tagged
