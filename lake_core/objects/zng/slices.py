"""Many tagged values at once: where they are in a buffer, what they are as numbers, and how they become a buffer.

A tagged value is a number, its tag, and a body.  `Slices` says for many of them where the body begins, how long it
is (-1 for null) and how long the tag is; nothing is copied.  `chain` finds them where they stand one after another,
`at_cursors` where each begins at a known place.  `gather` copies pieces of buffers into one, in Arrow's code.

Everything is checked before it is used as an index: an offset or a length that lies is Corrupt.
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

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]

_PADDING = 16
"""Bytes after a buffer's end, so that eight can be read from anywhere in it."""

_MASKS = np.array([(1 << (8 * width)) - 1 for width in range(9)], np.uint64)
"""The lowest bytes of a word, by how many."""

_MAX_LANES = 4_096
_LANE_BYTES = 1_024
"""`chain` reads a value of each lane in a step: fewer lanes make more steps, more make more wrong guesses."""

_INLINE = 12
"""Bytes that an Arrow view holds itself."""


class Buffer:
    """Bytes of a file or a block; `where` says for an error where a position of it is in the file."""

    __slots__ = ("data", "size", "where", "words")

    def __init__(self, data: bytes | Bytes, where: Callable[[int, str], Corrupt]) -> None:
        found = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data
        self.size = len(found)
        padded = np.empty(self.size + _PADDING, np.uint8)
        padded[: self.size] = found
        padded[self.size :] = 0
        self.data = padded
        self.words: Words = np.ndarray((self.size + _PADDING - 7,), "<u8", padded.data, strides=(1,))
        self.where = where

    def corrupt(self, position: int, what: str) -> Corrupt:
        """The error for damage at a position."""
        return self.where(int(position), what)


def _no_place(position: int, what: str) -> Corrupt:
    return Corrupt(f"value {position}: {what}")


def made(data: Bytes) -> Buffer:
    """A buffer of bytes that this program made."""
    return Buffer(data, _no_place)


@dataclass(frozen=True, eq=False)
class Slices:
    """Tagged values in a buffer: `start` and `length` of the bodies, and the bytes of the tags before them.

    The length of a null is -1; its start is behind its tag.
    """

    buffer: Buffer
    start: Ints
    length: Ints
    tag: Ints

    def __len__(self) -> int:
        return len(self.start)

    def __getitem__(self, rows: slice | Ints | Mask) -> Slices:
        return Slices(self.buffer, self.start[rows], self.length[rows], self.tag[rows])

    @cached_property
    def valid(self) -> Mask:
        """Which values are not null."""
        return self.length >= 0

    @property
    def stop(self) -> Ints:
        """Where the values end."""
        return self.start + np.maximum(self.length, 0)

    def unsigned(self) -> Words:
        """The bodies as unsigned numbers, 0 for null.  Raises Corrupt if one has more than 64 bits."""
        wide = self.length > 8
        if wide.any():
            at = int(np.argmax(wide))
            raise self.buffer.corrupt(self.start[at], f"a number of {self.length[at]:,} bytes")
        return self.buffer.words[self.start] & _MASKS[np.maximum(self.length, 0)]

    def signed(self) -> Ints:
        """The bodies as signed numbers, 0 for null."""
        raw = self.unsigned()
        magnitude = (raw >> np.uint64(1)).view(np.int64)
        found = np.where(raw & np.uint64(1), -magnitude, magnitude)
        return np.where(raw == 1, np.iinfo(np.int64).min, found) if (raw == 1).any() else found

    def tagged(self) -> tuple[Buffer, Ints, Ints]:
        """The values with their tags, as pieces to gather."""
        return self.buffer, self.start - self.tag, self.tag + np.maximum(self.length, 0)

    def bodies(self) -> tuple[Buffer, Ints, Ints]:
        """The bodies, as pieces to gather; nulls are empty."""
        return self.buffer, self.start, np.maximum(self.length, 0)


Pieces = tuple[Buffer, Ints, Ints]
"""A buffer, and where in it pieces begin and how long they are."""


def at_cursors(buffer: Buffer, cursor: Ints, stop: Ints) -> Slices:
    """The tagged value at each cursor, which ends before `stop`.  Raises Corrupt if it does not."""
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
    """The number at each cursor, and how many bytes it takes.  Numbers that are no length are Corrupt."""
    first = buffer.data[cursor]
    found = first.astype(np.int64)
    width = np.ones(len(cursor), np.int64)
    rows = np.flatnonzero(first >= 0x80)
    found[rows] &= 0x7F
    for shift in range(7, 42, 7):
        if not len(rows):
            return found, width
        at = cursor[rows] + width[rows]
        if (at >= buffer.size).any():
            raise buffer.corrupt(buffer.size, "the bytes end within a number")
        byte = buffer.data[at].astype(np.int64)
        found[rows] |= (byte & 0x7F) << shift
        width[rows] += 1
        rows = rows[byte >= 0x80]
    if len(rows):
        raise buffer.corrupt(cursor[rows[0]], "a length has more than 41 bits")
    return found, width


def chain(buffer: Buffer, start: int, stop: int) -> Slices:
    """All tagged values of a stretch, one after another.  Raises Corrupt unless the last ends at `stop`.

    Where a value begins is known only when the one before it was read.  So the stretch is cut into lanes, each is
    read from a guessed begin, all of them at once, and the guesses usually meet the truth after a few values: from
    where the lane before really ends, values are read one by one until one begins where the guess has a value.
    """
    cursor = _evenly(buffer, start, stop)
    if cursor is None:
        cursor = _guessed(buffer, start, stop)
    found = at_cursors(buffer, cursor, np.full(len(cursor), stop))
    if len(cursor) and found.stop[-1] != stop:
        raise buffer.corrupt(cursor[-1], "the last value does not end where its segment ends")
    return found


def _evenly(buffer: Buffer, start: int, stop: int) -> Ints | None:
    """Where the values begin if all have the tag of the first, as fixed-width columns do."""
    if start >= stop:
        return np.zeros(0, np.int64)
    tag = int(buffer.data[start])
    step = 1 + ((tag - 1) >> 1 if tag else 0)
    if tag >= 0x80 or (stop - start) % step or (buffer.data[start:stop:step] != tag).any():
        return None
    return np.arange(start, stop, step, dtype=np.int64)


def _guessed(buffer: Buffer, start: int, stop: int) -> Ints:
    size = stop - start
    lanes = min(max(size // _LANE_BYTES, 1), _MAX_LANES)
    bounds = start + (np.arange(lanes + 1) * size) // lanes
    visited = np.zeros(size, np.bool_)
    cursor, limit = bounds[:-1].copy(), bounds[1:]
    exits = np.full(lanes, stop, np.int64)
    active = np.arange(lanes)
    while len(active) > 8:  # ends: every step reads a byte at least in each lane
        visited[cursor[active] - start] = True
        tag, width = _guess(buffer, cursor[active])
        cursor[active] += width + np.where(tag > 0, (tag - 1) >> 1, 0)
        done = cursor[active] >= limit[active]
        exits[active[done]] = cursor[active[done]]
        active = active[~done]
    raw = buffer.data.data
    for lane in active.tolist():
        at, bound = int(cursor[lane]), int(limit[lane])
        while at < bound:
            visited[at - start] = True
            at = _next(raw, at)
        exits[lane] = at
    return start + np.flatnonzero(_corrected(buffer, raw, visited, bounds, exits))


def _guess(buffer: Buffer, cursor: Ints) -> tuple[Ints, Ints]:
    """Tags at guessed places; a guess may be any bytes, and is no reason for an error."""
    tag = buffer.data[cursor].astype(np.int64)
    width = np.ones(len(cursor), np.int64)
    rows = np.flatnonzero(tag >= 0x80)
    if len(rows):
        word = buffer.words[cursor[rows]]
        number = np.zeros(len(rows), np.int64)
        going = np.ones(len(rows), np.bool_)
        width[rows] = 0
        for at in range(6):
            byte = ((word >> np.uint64(8 * at)) & np.uint64(0xFF)).astype(np.int64)
            number[going] |= (byte[going] & 0x7F) << (7 * at)
            width[rows[going]] += 1
            going &= byte >= 0x80
        tag[rows] = number
    return tag, width


def _next(raw: memoryview, at: int) -> int:
    """Where the value after that at `at` begins."""
    tag = raw[at]
    if tag < 0x80:
        return at + 1 + ((tag - 1) >> 1 if tag else 0)
    tag &= 0x7F
    for shift in range(7, 42, 7):
        at += 1
        byte = raw[at] if at < len(raw) else 0
        tag |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
    return at + 1 + ((tag - 1) >> 1 if tag else 0)


def _corrected(buffer: Buffer, raw: memoryview, visited: Mask, bounds: Ints, exits: Ints) -> Mask:
    """The places of the true values: in each lane, those before the guess is right are read one by one."""
    start = int(bounds[0])
    seen = visited.view(np.uint8).data
    at = int(bounds[0])
    for lane in range(len(bounds) - 1):
        low, high = int(bounds[lane]), int(bounds[lane + 1])
        if at >= high:
            visited[low - start : high - start] = False
            continue
        true = []
        while at < high and not seen[at - start]:
            true.append(at - start)
            at = _next(raw, at)
        visited[low - start : min(at, high) - start] = False
        visited[true] = True
        if at < high:
            at = int(exits[lane])
    if at != bounds[-1]:
        raise buffer.corrupt(bounds[-1], "the last value does not end where its segment ends")
    return visited


# --- pieces to buffers


def gather(pieces: Pieces) -> tuple[Bytes, Ints]:
    """The pieces one after another, and where each begins, and the end of the last."""
    return interleaved([pieces])


def interleaved(columns: list[Pieces]) -> tuple[Bytes, Ints]:
    """The pieces of several columns row by row, as one stretch; where each row begins, and the end of the last."""
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
        index = next((i for i, known in enumerate(buffers) if known is buffer), len(buffers))
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
    """Arrow's views of the pieces: short ones are in the view, of others it says where they are."""
    begun = buffer.words[start]
    size = length.astype(np.uint64)
    views[:, 0] = size | ((begun & _MASKS[np.minimum(length, 4)]) << np.uint64(32))
    rest = buffer.words[np.minimum(start + 4, buffer.size)] & _MASKS[np.clip(length - 4, 0, 8)]
    if length.size and int(length.max()) > _INLINE:
        far = (start.astype(np.uint64) << np.uint64(32)) | np.uint64(index)
        rest = np.where(length > _INLINE, far, rest)
    views[:, 1] = rest


def binary_array(slices: Slices, kind: Any) -> pa.Array:
    """The bodies as an Arrow array of strings or bytes.  Raises ArrowInvalid for a string that is not UTF-8."""
    data, offsets = gather(slices.bodies())
    validity = None if slices.valid.all() else pa.py_buffer(np.packbits(slices.valid, bitorder="little"))
    small = pa.py_buffer(offsets.astype(np.int32))
    found = pa.Array.from_buffers(kind, len(slices), [validity, small, pa.py_buffer(data)])
    found.validate(full=pa.types.is_string(kind))
    return found


def tags(size: Ints, *, container: bool = False, null: Mask | None = None) -> Slices:
    """The tags of values of these body sizes, as values without bodies."""
    number = 2 * size + (1 if container else 2)
    if null is not None:
        number = np.where(null, 0, number)
    return uvarints(number)


def uvarints(number: Ints) -> Slices:
    """The numbers in seven bits a byte; each is a piece without a tag."""
    if not number.size or int(number.max()) < 0x80:
        data, width = number.astype(np.uint8), np.ones(len(number), np.int64)
        return Slices(made(data), np.arange(len(number)), width, np.zeros(len(number), np.int64))
    width = np.ones(len(number), np.int64)
    for at in range(1, 10):
        more = (number >> (7 * at)) > 0 if 7 * at < 64 else np.zeros(len(number), np.bool_)
        if not more.any():
            break
        width += more
    columns = int(width.max())
    grid = np.empty((len(number), columns), np.uint8)
    for at in range(columns):
        grid[:, at] = ((number >> (7 * at)) & 0x7F) | np.where(width > at + 1, 0x80, 0)
    start = np.arange(len(number)) * columns
    return Slices(made(grid.reshape(-1)), start, width, np.zeros(len(number), np.int64))


def unsigned_values(number: Words, valid: Mask | None = None) -> Slices:
    """Primitive-tagged values of the numbers, in the fewest bytes, one after another; not valid ones are null."""
    rows = len(number)
    width = np.zeros(rows, np.int64)
    for at in range(8):
        more = number >> np.uint64(8 * at) != 0
        if not more.any():
            break
        width += more
    return _fixed_values(number, width, valid)


def signed_values(number: Ints, valid: Mask | None = None) -> Slices:
    """As `unsigned_values`, of signed numbers."""
    magnitude = np.abs(number).view(np.uint64) << np.uint64(1)
    raw = np.where(number < 0, magnitude | np.uint64(1), magnitude)
    return unsigned_values(raw, valid)


def _fixed_values(words: Words, width: Ints, valid: Mask | None) -> Slices:
    """Tagged values of the lowest `width` bytes of words."""
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
    return Slices(made(data), start, length, np.ones(rows, np.int64))


def fixed_values(words: Words, width: int, valid: Mask | None = None) -> Slices:
    """Primitive-tagged values of `width` bytes each, at most 8."""
    return _fixed_values(words, np.full(len(words), width), valid)


def body_values(bodies: Pieces, valid: Mask, *, container: bool = False) -> Slices:
    """Tagged values of the bodies, one after another; not valid ones are null."""
    length = np.where(valid, bodies[2], -1)
    heads = tags(bodies[2], container=container, null=~valid)
    data, offsets = interleaved([heads.bodies(), (bodies[0], bodies[1], np.maximum(length, 0))])
    return Slices(made(data), offsets[:-1] + heads.length, length, heads.length)
