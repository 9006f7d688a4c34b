"""Rows and row groups of a checkpoint.

A row has a section (`reference`, `source`, `token`, ...), a branch and a sub-pool (both "" if the section has
none), and a key; rows are sorted by these four.  References use all columns, with their low bound as `key`.  Rows
of other sections store their content in `value`.  A row group holds rows of one section, branch and sub-pool.  The
footer lists each group's first and last key and greatest high bound; a reader of a key range finds its groups by
them.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa

from lake_core.errors import Corrupt
from lake_core.records.decoding import check_counts, decoding

FOOTER = b"lake"
CHECKSUM = b"lake.crc32"
VERSION = 1
"""The version of a checkpoint without sections of `SINCE`."""

SINCE = {"point": 2, "inlined": 2, "pending": 3, "prepared": 3, "home": 4, "name": 5, "added": 5}
"""Sections that need a newer version of the checkpoint, and that version. Programs that know only older versions
refuse such a checkpoint, because they would leave the section out of the next one."""

NEWEST = max(SINCE.values())
"""The newest version of a checkpoint that this program knows."""

MAX_GROUP_ROWS = 1 << 20
"""The most rows of a row group. A reader decodes a group as a whole, and in a forged file a few bytes may stand
for any number of rows."""

ROW = pa.schema(
    [
        ("section", pa.string()),
        ("branch", pa.string()),
        ("sub", pa.string()),
        ("key", pa.binary()),
        ("high", pa.binary()),
        ("object", pa.string()),
        ("seq", pa.int64()),
        ("oldest", pa.int64()),
        ("applied", pa.int64()),
        ("place", pa.int32()),
        ("records", pa.int64()),
        ("size", pa.int64()),
        ("schema", pa.string()),
        ("value", pa.binary()),
    ]
)


class RowGroup(msgspec.Struct, frozen=True, array_like=True):
    """One row group of a checkpoint: its keys lie from `first` to `last`; `reach` is the greatest high bound of
    its rows."""

    section: str
    branch: str
    sub_pool: str
    first: bytes
    last: bytes
    reach: bytes
    rows: int

    def __post_init__(self) -> None:
        if not 0 < self.rows <= MAX_GROUP_ROWS or self.first > self.last:
            raise Corrupt(f"a row group of {self.rows:,} rows of the section {self.section[:80]!r} cannot be")


class CheckpointFooter(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a checkpoint's own footer says: its journal, the version of the state, the id of the writer, the row
    groups.  `entry_checksum` is the checksum of the version's entry, 0 if it is not known (`journal.link`)."""

    format_version: int = msgspec.field(name="version")
    journal: str
    version: int = msgspec.field(name="n")
    id: str
    groups: tuple[RowGroup, ...] = ()
    entry_checksum: int = msgspec.field(name="entry", default=0)

    def __post_init__(self) -> None:
        check_counts(f"checkpoint {self.id}", version=self.version, entry=self.entry_checksum)


@dataclass(frozen=True)
class SectionPart:
    """The rows of one section, branch and sub-pool, as tables sorted by key.  The tables have the columns of `ROW`
    without these three."""

    section: str
    branch: str
    sub_pool: str
    tables: Iterable[pa.Table]


def complete(table: pa.Table, part: SectionPart) -> pa.Table:
    """Returns the rows of a part, with the columns `section`, `branch` and `sub` added."""
    for name, value in (("sub", part.sub_pool), ("branch", part.branch), ("section", part.section)):
        constant = pa.repeat(pa.scalar(value), table.num_rows)
        table = table.add_column(0, ROW.field(name), constant)
    return table.select(ROW.names)


_DECODER = msgspec.json.Decoder(CheckpointFooter)


def encode_footer(footer: CheckpointFooter) -> dict[bytes, bytes]:
    """Returns the footer as metadata pairs of Parquet: the JSON, and its CRC-32 in hex, since Parquet has no
    checksum of it."""
    data = msgspec.json.encode(footer)
    return {FOOTER: data, CHECKSUM: _checksum(data)}


def decode_footer(pairs: Mapping[bytes, bytes], *, name: str) -> CheckpointFooter:
    """Returns the footer that these metadata pairs hold; `name` is for the message.  Raises Corrupt."""
    data = pairs.get(FOOTER, b"")
    if pairs.get(CHECKSUM) != _checksum(data):
        raise Corrupt(f"{name}: not a checkpoint, or its footer is damaged")
    with decoding(name, "not a checkpoint"):
        footer = _DECODER.decode(data)
    if footer.format_version > NEWEST:
        raise Corrupt(
            f"{name}: written by a newer version (format {footer.format_version}); upgrade this program"
        )
    return footer


def _checksum(data: bytes) -> bytes:
    return f"{zlib.crc32(data):08x}".encode()


class LazyColumn(Sequence[Any]):
    """A column of a table as a sequence for bisection, which converts one value at a time."""

    def __init__(self, table: pa.Table, name: str) -> None:
        self._column = table[name]

    def __len__(self) -> int:
        return len(self._column)

    def __getitem__(self, row: Any) -> Any:
        return self._column[row].as_py()


def rows(**columns: Sequence[Any]) -> pa.Table:
    """Returns a table of rows with the given columns; its other columns are null."""
    count = len(next(iter(columns.values())))
    fields = [f for f in ROW if f.name not in ("section", "branch", "sub")]
    arrays = [
        pa.array(columns[f.name], f.type) if f.name in columns else pa.nulls(count, f.type) for f in fields
    ]
    return pa.table(arrays, schema=pa.schema(fields))
