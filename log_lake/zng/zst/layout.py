"""Where things are in a ZST file: the data, the reassembly section, the trailer.

    data          segments: tagged values of one column, one after another, nothing between them
    reassembly    ZNG: the super types in the order first seen, then the segments of the root, then a map with the
                  segments of each column
    trailer       ZNG: one record with the sizes of data and reassembly, and both thresholds (`SKEW_BYTES`,
                  `SEGMENT_BYTES`)

The trailer is found from the file's end, so that a file can be written in one pass.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import NamedTuple

from lake_core.errors import Corrupt, InvalidInput
from log_lake.zng.reader import END, read
from log_lake.zng.typedefs import ARRAY, RECORD, TypeWriter
from log_lake.zng.types import INT32, INT64, STRING, Array, Record, plain
from log_lake.zng.wire import Cursor, as_signed, container, corrupt, primitive, signed, uvarint

SKEW_BYTES = 26_214_400
"""Bytes of values after which all columns are flushed.  A writer and a reader hold at least this much in
memory."""

SEGMENT_BYTES = 5_242_880
"""Bytes of one column after which it is flushed."""

MAX_SKEW_BYTES = 512 << 20
MAX_SEGMENT_BYTES = 20 << 20
MAX_SEGMENT_LENGTH = 40 << 20
"""The most bytes of one segment; the original program reads no larger ones."""

TRAILER_BYTES = 4_096
"""The trailer begins within this many bytes of the file's end."""

VERSION = 1
_MAGIC = "zst"
_BEGIN = bytes([ARRAY, INT64.id, RECORD])

EMPTY = bytes.fromhex("f602066f6666736574 07066c656e67746806 f717 f60104726f6f7418 190101 ff") + _BEGIN
"""A file without values: no data, a root without segments, the trailer.  Its bytes are also valid ZNG."""


class Segment(NamedTuple):
    """Bytes of the data section that hold values of one column."""

    offset: int
    length: int


@dataclass(frozen=True)
class Trailer:
    """The decoded end of a file; `sections` are the sizes of the data and of the reassembly section."""

    skew_bytes: int
    segment_bytes: int
    sections: tuple[int, int]


def checked_thresholds(skew_bytes: int, segment_bytes: int) -> None:
    """Raises InvalidInput if readers would refuse files with these thresholds."""
    for name, value, most in (
        ("skew_bytes", skew_bytes, MAX_SKEW_BYTES),
        ("segment_bytes", segment_bytes, MAX_SEGMENT_BYTES),
    ):
        if not 1 <= value <= most:
            raise InvalidInput(f"{name} is {value:,}; use 1 to {most:,}")


def trailer_bytes(trailer: Trailer) -> bytes:
    """Returns the trailer as the end of a file."""
    names = ("magic", "version", "skew_thresh", "segment_thresh", "sections")
    kind = Record(names, (STRING, INT32, INT32, INT32, Array(INT64)))
    typedefs = bytearray()
    type_id = TypeWriter().id_of(kind, typedefs)
    numbers = (VERSION, trailer.skew_bytes, trailer.segment_bytes)
    sections = container(b"".join(primitive(signed(size)) for size in trailer.sections))
    body = primitive(_MAGIC.encode()) + b"".join(primitive(signed(number)) for number in numbers) + sections
    return bytes(typedefs) + uvarint(type_id) + uvarint(len(body)) + body + bytes([END])


def has_trailer(tail: bytes) -> bool:
    """Whether the last bytes of a file look like the end of ZST, of any version."""
    at = tail.rfind(_BEGIN)
    return at >= 0 and primitive(_MAGIC.encode()) in tail[at:]


def find_trailer(tail: bytes, *, size: int, name: str) -> tuple[Trailer, int]:
    """Returns the trailer among the last bytes of a file, and where it begins.  Raises Corrupt if there is
    none."""
    first = size - len(tail)
    at = tail.rfind(_BEGIN)
    while at >= 0:  # ends: the place moves towards the begin
        if at == 0 or tail[at - 1] == END:
            trailer = _trailer_at(tail, at, name=name, first=first)
            if trailer is not None:
                if sum(trailer.sections) > first + at:
                    data, root = trailer.sections
                    what = f"sections of {data:,} and {root:,} bytes do not fit before it"
                    raise corrupt(name, first + at, what)
                return trailer, first + at
        at = tail.rfind(_BEGIN, 0, at + len(_BEGIN) - 1)
    raise corrupt(name, size, f"no ZST trailer in the last {len(tail):,} bytes")


def _trailer_at(tail: bytes, at: int, *, name: str, first: int) -> Trailer | None:
    """Returns the trailer that begins at `at`, or None if something else begins there.  Raises Corrupt for a
    trailer of another version."""
    try:
        rows = next(read(io.BytesIO(tail[at:]), name=name, rows_bytes=1), None)
    except Corrupt:
        return None
    kind = plain(rows.types[rows.kinds[0]]) if rows is not None else None
    body = rows.body(0) if rows is not None else None
    if not isinstance(kind, Record) or body is None:
        return None
    try:
        values = dict(zip(kind.names, Cursor(body, name=name).values(), strict=True))
    except (Corrupt, ValueError):
        return None
    version = _number(values.get("version"), -1)
    if version != VERSION:
        raise corrupt(name, first + at, f"ZST version {version}; this program reads version {VERSION}")
    if values.get("magic") != _MAGIC.encode():
        return None
    sections = [_number(size, -1) for size in Cursor(values.get("sections") or b"", name=name).values()]
    thresholds = (
        _number(values.get("skew_thresh"), SKEW_BYTES),
        _number(values.get("segment_thresh"), SEGMENT_BYTES),
    )
    if not sections:
        sections = [0, 0]
    if len(sections) != 2 or min(sections) < 0:
        raise corrupt(name, first + at, f"sections {sections}; there are two")
    if thresholds[0] > MAX_SKEW_BYTES or thresholds[1] > MAX_SEGMENT_BYTES:
        what = f"thresholds of {thresholds[0]:,} and {thresholds[1]:,} bytes; at most {MAX_SKEW_BYTES:,} and "
        raise corrupt(name, first + at, what + f"{MAX_SEGMENT_BYTES:,} are allowed")
    return Trailer(thresholds[0], thresholds[1], (sections[0], sections[1]))


def _number(body: bytes | None, default: int) -> int:
    return default if body is None else as_signed(body)
