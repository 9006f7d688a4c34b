"""What the objects of the typed formats (ZNG, ZST) have in common: a footer of the lake's own, inside a file that
other programs can read.

A group of records is a part of the file that can be read alone: in ZNG a stream, in ZST the columns of its own
super types.  The hidden columns of its records (`hidden.ORDER`), if it has any, follow it as an Arrow IPC
stream.  The footer follows all groups.  It is JSON and a mark: magic bytes, the footer's length, its checksum,
and the checksum of the bytes after it.  Other programs skip these parts, because no value is in them.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa

from lake_core.errors import Corrupt
from lake_core.records.decoding import check_counts, decoding
from lake_core.schemas.hidden import BODY, ORDER, ROW, TYPE, user_fields
from lake_core.schemas.schema import stored_schema
from lake_core.store.planned import Range
from log_lake.objects.checksums import SummedFile
from log_lake.objects.containers import Footer
from log_lake.objects.containers.rows import body_column, rows_of_table, table_of, type_column
from log_lake.objects.metadata import ObjectMetadata
from log_lake.objects.weight import Sizes, Weight
from log_lake.zng.rows import Batch, Rows

_MARK = struct.Struct("<8sIII")
_MAGIC = b"lakerows"
MARK_BYTES = _MARK.size
FOOTER_GROWTH = 4
"""About how many decoded bytes a stored byte of a footer takes."""

MAX_FOOTER_BYTES = 256 << 20


class TypedGroup(msgspec.Struct, frozen=True, array_like=True):
    """One group: the number of its records, the position of its bytes, the position of its hidden columns among
    them, and the number of its decoded bytes.

    `sum` is the CRC-32 of its bytes, because values themselves do not show damage.  `types` is the number of
    super types (types of top-level values) in the file up to the group's end; only ZST counts them.
    """

    records: int
    begin: int
    end: int
    order: int
    decoded: int
    sum: int
    types: int = 0

    def __post_init__(self) -> None:
        check_counts("a group of a data object", records=self.records, decoded=self.decoded, types=self.types)
        if not 0 <= self.begin <= self.order <= self.end:
            raise Corrupt(f"a group of a data object from {self.begin} over {self.order} to {self.end}")


class TypedDescription(msgspec.Struct, frozen=True):
    """What the footer says; `schema` is Arrow's IPC form of all columns except `hidden.ROW`."""

    object: ObjectMetadata
    schema: bytes
    groups: tuple[TypedGroup, ...]


_DECODER = msgspec.json.Decoder(TypedDescription)


@dataclass(frozen=True)
class TypedFooter(Footer):
    """The footer of an object in a typed format, decoded."""

    groups: tuple[TypedGroup, ...] = ()


def encoded_footer(description: TypedDescription, *, after: bytes = b"") -> bytes:
    """Returns the bytes of the footer, followed by the mark that tells where the footer is.  `after` are the bytes
    that follow both in the file."""
    footer = msgspec.json.encode(description)
    return footer + _MARK.pack(_MAGIC, len(footer), zlib.crc32(footer), zlib.crc32(after))


def read_footer(
    file: Any, end: int, *, size: int, name: str, before: Callable[[int], bytes]
) -> TypedDescription:
    """Returns what the footer says, found by the mark that ends at position `end`.  Raises Corrupt.

    `before` returns the bytes between the data and a footer of the given length.
    """
    mark = file.read_at(MARK_BYTES, max(0, end - MARK_BYTES))
    if len(mark) < MARK_BYTES:
        raise Corrupt(f"{name}: no data object: it has {size:,} bytes")
    magic, length, sum_of_footer, sum_after = _MARK.unpack(mark)
    begin = end - MARK_BYTES - length
    if magic != _MAGIC or begin < 0 or length > MAX_FOOTER_BYTES:
        raise Corrupt(f"{name}: no data object: the mark of its footer is missing or damaged")
    footer = file.read_at(length, begin)
    after = file.read_at(size - end, end)
    if zlib.crc32(footer) != sum_of_footer or zlib.crc32(after) != sum_after:
        raise Corrupt(f"{name}: the footer is damaged: its checksum is another one")
    with decoding(name, "the metadata of this data object is damaged"):
        description = _DECODER.decode(footer)
    data_end, expected = description.object.data_end, before(length + MARK_BYTES)
    if begin - data_end != len(expected) or file.read_at(len(expected), data_end) != expected:
        raise Corrupt(f"{name}: damaged between the bytes {data_end} and {begin}")
    return description


def checked_footer(description: TypedDescription, *, name: str, object_id: str) -> TypedFooter:
    """Decodes the footer.  Raises Corrupt if it belongs to another object, or contradicts itself."""
    groups = description.groups
    told = description.object
    told.check_version(name)
    told.check(object_id, records=sum(group.records for group in groups), groups=len(groups), name=name)
    with decoding(name):
        schema = stored_schema(description.schema)
    return TypedFooter(
        told,
        schema,
        tuple(group.records for group in groups),
        FOOTER_GROWTH * len(msgspec.json.encode(description)),
        groups=groups,
    )


@dataclass(frozen=True)
class GroupBytes:
    """The bytes of a group, read in one request and checked.  They are read by their positions in the file."""

    begin: int
    data: bytes

    def read_at(self, size: int, offset: int) -> bytes:
        """Returns at most `size` bytes of the group, from `offset` in the file."""
        at = offset - self.begin
        return self.data[at : at + size]


@dataclass(frozen=True)
class TypedContainer:
    """An open object of a typed format.  Each format has its own method `rows`, which finds the rows of a
    group."""

    name: str
    file: Any
    footer: TypedFooter

    def rows(self, number: int, data: GroupBytes, fields: Sequence[str] | None) -> Iterator[Rows | Batch]:
        """Yields the records of a group; if `fields` are given, with at least these.  Raises Corrupt."""
        raise NotImplementedError

    def read(self, number: int) -> GroupBytes:
        """Returns the bytes of a group.  Raises Corrupt if they differ from the bytes that were written."""
        group = self.footer.groups[number]
        data = self.file.read_at(group.end - group.begin, group.begin)
        if len(data) < group.end - group.begin or zlib.crc32(data) != group.sum:
            raise Corrupt(f"{self.name}: damaged between the bytes {group.begin:,} and {group.end:,}")
        return GroupBytes(group.begin, data)

    @property
    def written_schema(self) -> pa.Schema:
        """Returns the schema of all columns as they were written."""
        return self.footer.schema

    def weigh(self, groups: Sequence[int], columns: Sequence[str] | None) -> Weight:
        """Returns the decoded bytes of the groups with all columns, because the footer does not have them by
        column."""
        if not groups:
            return Weight()
        sizes = [self.footer.groups[group].decoded for group in groups]
        records = sum(self.footer.group_rows[group] for group in groups)
        return Weight(sum(sizes), max(sizes), sum(sizes) / max(1, records))

    def batches(
        self, groups: Sequence[int], columns: Sequence[str] | None, *, rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Yields the records of the groups, about `rows` at a time."""
        names = self.footer.schema.names if columns is None else columns
        names = [name for name in names if name in (TYPE, BODY) or name in self.footer.schema.names]
        for number in groups:
            for table in self._tables(number, names):
                yield from table.combine_chunks().to_batches(max_chunksize=rows)

    def _tables(self, number: int, names: Sequence[str]) -> Iterator[pa.Table]:
        schema, group = self.footer.schema, self.footer.groups[number]
        users = pa.schema([schema.field(name) for name in user_fields(schema).names if name in names])
        data = self.read(number)
        order = self._order(group, data) if any(name in ORDER.names for name in names) else None
        at = 0
        for rows in self.rows(number, data, None if BODY in names else users.names):
            table = table_of(rows, users, what=self.name)
            columns = dict(zip(users.names, table.columns, strict=True))
            if TYPE in names:
                columns[TYPE] = type_column(rows)
            if BODY in names:
                columns[BODY] = body_column(rows)
            if order is not None:
                part = order.slice(at, len(rows))
                columns |= dict(zip(part.schema.names, part.columns, strict=True))
            at += len(rows)
            if at > group.records or (names and any(len(columns[name]) != len(rows) for name in names)):
                break
            if not names:
                yield table
                continue
            fields = [ROW.field(name) if name in (TYPE, BODY) else schema.field(name) for name in names]
            yield pa.table([columns[name] for name in names], schema=pa.schema(fields))
        if at != group.records:
            raise Corrupt(f"{self.name}: damaged: a group has {at} records, not {group.records}")

    def _order(self, group: TypedGroup, data: GroupBytes) -> pa.Table:
        return pa.ipc.open_stream(data.read_at(group.end - group.order, group.order)).read_all()

    def begin(self, group: int) -> int:
        """Returns the position in the file at which the group begins."""
        return self.footer.groups[group].begin

    def ranges(self, groups: Sequence[int], columns: Sequence[str] | None) -> Iterator[Range]:
        """Yields the byte ranges of whole groups, because a group's checksum covers all of its columns."""
        return (Range(group.begin, group.end) for group in map(self.footer.groups.__getitem__, groups))

    def column_sizes(self, names: Collection[str]) -> dict[str, int]:
        """Returns nothing, because the bytes of all columns are stored together."""
        return dict.fromkeys((name for name in self.footer.schema.names if name in names), 0)

    def close(self) -> None:
        """Does nothing, because the caller closes the file."""


class TypedSink:
    """An object of a typed format that is being written.  Each format has its own methods for a group and for the
    file's end."""

    def __init__(self, file: SummedFile) -> None:
        self.file = file
        self._schema: pa.Schema | None = None
        self._sizes: Sizes | None = None
        self._groups: list[TypedGroup] = []

    def write(self, table: pa.Table, groups: Sequence[int]) -> None:
        """Writes the records as groups of these sizes. Raises CannotHold."""
        if self._schema is None:
            names = [name for name in table.schema.names if name not in ROW.names]
            self._schema = pa.schema([table.schema.field(name) for name in names])
            self._sizes = Sizes.of(table.schema)
        assert self._sizes is not None
        at = 0
        for size in groups:
            part = table.slice(at, size)
            at += size
            begin, _ = self.file.tell(), self.file.take_sum()
            types = self.put_rows(rows_of_table(part))
            order = self.file.tell()
            if ORDER.names[0] in part.schema.names:
                order = self.put_order(_ipc(part.select(ORDER.names)))
            end = self.file.tell()
            decoded = self._sizes.size(part)
            self._groups.append(
                TypedGroup(part.num_rows, begin, end, order, decoded, self.file.take_sum(), types)
            )

    def put_rows(self, rows: Rows) -> int:
        """Writes the records of a group.  Returns how many super types (types of top-level values) the file has
        afterwards."""
        raise NotImplementedError

    def put_order(self, data: bytes) -> int:
        """Writes the hidden columns of a group, whose bytes are no values.  Returns the position at which they
        begin."""
        raise NotImplementedError

    def described(self, described: ObjectMetadata) -> TypedDescription:
        """Returns what the footer will say.  Call it once all groups are written: the bytes after this call are
        the file's tail, which has a checksum of its own."""
        data_end, blocks = self.file.begin_tail()
        assert self._schema is not None
        return TypedDescription(
            msgspec.structs.replace(described, data_end=data_end, blocks=blocks),
            self._schema.serialize().to_pybytes(),
            tuple(self._groups),
        )

    def close(self) -> None:
        """Does nothing, because the caller closes the file."""


def _ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table.combine_chunks())
    data: bytes = sink.getvalue().to_pybytes()
    return data
