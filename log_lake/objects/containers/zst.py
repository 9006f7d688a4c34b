"""Data objects as ZST: each group has its own super types, so its columns can be decoded alone.

Other readers of ZST read such an object as the values of all its records, in key order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from lake_core.errors import CannotHold, InvalidInput
from log_lake.objects.checksums import SummedFile
from log_lake.objects.containers import Footer
from log_lake.objects.containers.typed import (
    GroupBytes,
    TypedContainer,
    TypedFooter,
    TypedSink,
    checked_footer,
    encoded_footer,
    read_footer,
)
from log_lake.objects.metadata import ObjectMetadata
from log_lake.zng.rows import Batch, Rows
from log_lake.zng.zst.layout import TRAILER_BYTES, find_trailer
from log_lake.zng.zst.reader import ZstFile
from log_lake.zng.zst.writer import ZstWriter

MAP_GROWTH = 10
"""About how many decoded bytes a byte of the reassembly section takes."""


@dataclass(frozen=True)
class ZstFooter(TypedFooter):
    """The footer of an object, and the reassembly maps of ZST, which say where the columns are."""

    maps: ZstFile = None  # type: ignore[assignment]


def open_zst(
    file: pa.NativeFile, footer: Footer | None, *, name: str, object_id: str, whole: int
) -> ZstContainer:
    """Opens an object.  Reads and checks the footer, unless the caller passes an earlier one.  Raises Corrupt.

    `whole` is ignored: only tiny Parquet files are decoded as a whole.
    """
    if isinstance(footer, ZstFooter):
        return ZstContainer(name, file, footer)
    size = file.size()
    tail_bytes = min(size, TRAILER_BYTES)
    trailer, _ = find_trailer(file.read_at(tail_bytes, size - tail_bytes), size=size, name=name)
    description = read_footer(file, trailer.sections[0], size=size, name=name, before=lambda _: b"")
    typed = checked_footer(description, name=name, object_id=object_id)
    decoded = ZstFooter(
        typed.metadata,
        typed.schema,
        typed.group_rows,
        typed.size + MAP_GROWTH * trailer.sections[1],
        groups=typed.groups,
        maps=ZstFile.open(file, name=name),
    )
    return ZstContainer(name, file, decoded)


@dataclass(frozen=True)
class ZstContainer(TypedContainer):
    """A ZST object, open for reading."""

    footer: ZstFooter

    def rows(self, number: int, data: GroupBytes, fields: Sequence[str] | None) -> Iterator[Rows | Batch]:
        """Yields the records of a group, with only these fields."""
        group = self.footer.groups[number]
        first = self.footer.groups[number - 1].types if number else 0
        part = replace(self.footer.maps, file=data).part(
            begin=group.begin, end=group.order, types=range(first, group.types)
        )
        yield from part.batches(fields=None if fields is None else [(name,) for name in fields])


class ZstSink(TypedSink):
    """A ZST object that is being written."""

    def __init__(self, file: SummedFile) -> None:
        super().__init__(file)
        self._writer = ZstWriter(file)  # type: ignore[arg-type]

    def put_rows(self, rows: Rows) -> int:
        """Writes the records of a group as a part of the file that can be decoded alone."""
        try:
            self._writer.write(rows)
            self._writer.end_part()
        except InvalidInput as error:
            raise CannotHold(str(error)) from error
        if self._writer.emptied:
            raise CannotHold("a null array inside of an array or a union: ZST would make it empty")
        return self._writer.super_types

    def put_order(self, data: bytes) -> int:
        """Writes the hidden columns of a group between two parts of the file."""
        return self._writer.put(data)

    def finish(self, described: ObjectMetadata) -> None:
        """Ends the file: the footer ends the data section, and the maps follow it."""
        description = self.described(described)
        footer = encoded_footer(description)
        after = self._writer.end(self.file.tell() + len(footer))
        self.file.write(encoded_footer(description, after=after) + after)
        self.file.end_plain_tail()
