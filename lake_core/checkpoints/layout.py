"""Rows and row groups of a checkpoint.

A row belongs to a section (`reference`, `source`, `token`, ...), within it to a branch and a sub-pool (both ""
where they have no meaning), and has a key; rows are sorted by these four.  References use all columns: `key` is
their low bound; the others keep what they are in `value`.  A row group holds rows of one section, branch and
sub-pool.  The footer lists the groups with their first and last key and the farthest high bound, so that a
reader of a key range knows which groups it needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa

from lake_core.errors import Corrupt

FOOTER = b"lake"
VERSION = 1
GROUP_ROWS = 8192

ROW = pa.schema(
    [
        ("section", pa.string()),
        ("branch", pa.string()),
        ("sub", pa.string()),
        ("key", pa.binary()),
        ("high", pa.binary()),
        ("object", pa.string()),
        ("seq", pa.int64()),
        ("place", pa.int32()),
        ("records", pa.int64()),
        ("size", pa.int64()),
        ("schema", pa.string()),
        ("value", pa.binary()),
    ]
)


class Group(msgspec.Struct, frozen=True, array_like=True):
    """One row group: all keys are in [first, last], no high bound is above `reach`."""

    section: str
    branch: str
    sub: str
    first: bytes
    last: bytes
    reach: bytes
    rows: int


class CheckpointHead(msgspec.Struct, frozen=True):
    """What a checkpoint says of itself: the state of `journal` after entry `n`, written by `id`."""

    version: int
    journal: str
    n: int
    id: str
    groups: tuple[Group, ...] = ()


@dataclass(frozen=True)
class Part:
    """The rows of one section, branch and sub-pool: tables of `ROW` without those three, sorted by key."""

    section: str
    branch: str
    sub: str
    tables: Iterable[pa.Table]


_DECODER = msgspec.json.Decoder(CheckpointHead)


def encode_head(head: CheckpointHead) -> bytes:
    """The footer's JSON."""
    return msgspec.json.encode(head)


def decode_head(data: bytes | None, *, name: str) -> CheckpointHead:
    """Raises Corrupt."""
    try:
        head = _DECODER.decode(data or b"")
    except msgspec.DecodeError as error:
        raise Corrupt(f"{name}: not a checkpoint: {error}") from error
    if head.version > VERSION:
        raise Corrupt(f"{name}: written by a newer version (format {head.version}); upgrade this program")
    return head


def rows(**columns: Sequence[Any]) -> pa.Table:
    """A table of rows from the columns given; the others are null."""
    count = len(next(iter(columns.values())))
    fields = [f for f in ROW if f.name not in ("section", "branch", "sub")]
    arrays = [
        pa.array(columns[f.name], f.type) if f.name in columns else pa.nulls(count, f.type) for f in fields
    ]
    return pa.table(arrays, schema=pa.schema(fields))
