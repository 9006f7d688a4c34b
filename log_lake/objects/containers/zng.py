"""Data objects as ZNG: each group is a stream of its own, and application messages hold everything that is not a
value.

Other readers of ZNG read such an object as the values of all its records, in the order of their keys.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lake_core.errors import CannotHold, InvalidInput
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
from log_lake.zng.reader import APPLICATION, read
from log_lake.zng.rows import Batch, Rows
from log_lake.zng.wire import MAX_VALUE_BYTES, uvarint
from log_lake.zng.writer import ZngWriter


def open_zng(
    file: pa.NativeFile, footer: Footer | None, *, name: str, object_id: str, whole: int
) -> ZngContainer:
    """Opens an object.  Reads and checks the footer, unless the caller passes an earlier one.  Raises Corrupt.

    `whole` is ignored: only tiny Parquet files are decoded as a whole.
    """
    decoded = footer if isinstance(footer, TypedFooter) else None
    if decoded is None:
        size = file.size()
        description = read_footer(file, size, size=size, name=name, before=_header)
        decoded = checked_footer(description, name=name, object_id=object_id)
    return ZngContainer(name, file, decoded)


@dataclass(frozen=True)
class ZngContainer(TypedContainer):
    """A ZNG object, open for reading."""

    def rows(self, number: int, data: GroupBytes, fields: Sequence[str] | None) -> Iterator[Rows | Batch]:
        """Yields the records of a group, always with all fields, because a row holds them all."""
        group = self.footer.groups[number]
        hidden = group.end - group.order
        size = group.order - group.begin - (len(_header(hidden)) if hidden else 0)
        yield from read(io.BytesIO(data.read_at(size, group.begin)), name=self.name, offset=group.begin)


class ZngSink(TypedSink):
    """A ZNG object that is being written."""

    def put_rows(self, rows: Rows) -> int:
        """Writes the records of a group as a stream of ZNG."""
        writer = ZngWriter(self.file)  # type: ignore[arg-type]
        try:
            writer.write(rows)
            writer.close()
        except InvalidInput as error:
            raise CannotHold(str(error)) from error
        return 0

    def put_order(self, data: bytes) -> int:
        """Writes the hidden columns of a group as an application message of ZNG."""
        self.file.write(_header(len(data)))
        begin = self.file.tell()
        self.file.write(data)
        return begin

    def finish(self, described: ObjectMetadata) -> None:
        """Ends the file with the footer, which is an application message of ZNG."""
        footer = encoded_footer(self.described(described))
        self.file.write(_header(len(footer)) + footer)
        self.file.end_plain_tail()


def _header(size: int) -> bytes:
    """Returns the beginning of an application message."""
    if size > MAX_VALUE_BYTES:
        raise CannotHold(f"a message of {size:,} bytes; ZNG holds at most {MAX_VALUE_BYTES:,}")
    return bytes([APPLICATION, 0]) + uvarint(size)
