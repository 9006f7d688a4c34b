"""Reads Parquet, whose records have types; checks declared types, limits and damage.

The values that Arrow reads go through these steps.  Times of INT96 become exact (`int96`).  Dates of the hybrid
calendar become Gregorian (`calendars`).  Variants become typed JSON (`variants`).  The counts of the footer are
compared with the records that were read (`promises`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby

import pyarrow as pa
import pyarrow.parquet as pq

from lake_core.errors import InvalidInput
from lake_core.schemas.limits import schema_fault
from log_lake.loading.block import Block, Reading, batch_rows
from log_lake.loading.contract import Faults
from log_lake.loading.expansion import least_bytes
from log_lake.loading.formats.calendars import Calendar
from log_lake.loading.formats.int96 import Int96
from log_lake.loading.formats.promises import footer_fault, rows_fault
from log_lake.loading.formats.variants import Variants
from log_lake.loading.opening import open_seekable
from log_lake.loading.typed_records import with_declared
from log_lake.objects.column_chunks import check_column_chunks
from log_lake.objects.containers.parquet_rows import rows_at_once, text_bytes

BATCH_ROWS = 131_072
BATCH_BYTES = 16 << 20
"""The most records of a block, and about how many decoded bytes a block has."""

BUFFER_BYTES = 1 << 20
"""The bytes of a column chunk of a local file that are read at once."""

AT_ONCE_BYTES = 32 << 20
"""Row groups of a file on a server are fetched together while they have no more stored bytes than this.

Arrow keeps all bytes that it fetches ahead until it has decoded the last of them.
"""

_ARROW_ERRORS = (pa.ArrowException, OSError, ValueError, NotImplementedError)
"""The exceptions that Arrow raises for files that it cannot read; the last three are Python's own."""


@dataclass(frozen=True)
class _Opened:
    """A Parquet file, and its row groups that are to be read."""

    parquet: pq.ParquetFile
    source: pa.NativeFile
    row_groups: list[int]

    @property
    def calendar(self) -> Calendar:
        """The calendar in which the file counts dates and times."""
        return Calendar.of_spark(self.parquet.metadata.metadata or {})

    @property
    def promised(self) -> int:
        """How many records the wanted row groups have, according to the footer."""
        return sum(self.parquet.metadata.row_group(at).num_rows for at in self.row_groups)


def read_parquet(reading: Reading, row_groups: list[int] | None = None) -> Iterator[Block]:
    """Yields the file's records in blocks; with `row_groups`, only the records of these row groups.  Raises
    InvalidInput."""
    with _opened(reading, row_groups) as file:
        most = batch_rows(file.parquet.schema_arrow, BATCH_ROWS)
        with _naming(reading):
            calendar, variants = file.calendar, Variants.of(file.parquet)
            int96 = Int96(file.parquet, file.source, file.row_groups, batch_rows=most, calendar=calendar)
        decoded = batches(file.parquet, file.source, file.row_groups)
        rows = 0
        while True:  # bounded by the file
            faults: Faults = {}
            with _naming(reading):
                batch = next(decoded, None)
                if batch is None:
                    break
                table = pa.Table.from_batches([int96.exact(batch, faults)])
                table = variants.as_json(calendar.rebased(table), faults)
            rows += table.num_rows
            records = with_declared(table, reading)
            yield Block(records.table, faults={**records.faults, **faults}, raws=records.raws)
        if fault := rows_fault(rows, file.promised):
            reading.unreadable(0, fault)


def batches(
    parquet: pq.ParquetFile, source: pa.NativeFile, groups: Sequence[int]
) -> Iterator[pa.RecordBatch]:
    """Yields the records of row groups, in batches of about BATCH_BYTES.

    Neighbouring row groups that allow the same batch size are read as one, up to AT_ONCE_BYTES.
    """
    footer, most = parquet.metadata, batch_rows(parquet.schema_arrow, BATCH_ROWS)
    sized = [(_rows_of_group(footer, source, group, most), group) for group in groups]
    for rows, alike in groupby(sized, key=lambda one: one[0]):
        for run in _runs(footer, [group for _, group in alike]):
            yield from parquet.iter_batches(batch_size=rows, row_groups=run)


def _runs(footer: pq.FileMetaData, groups: Sequence[int]) -> Iterator[list[int]]:
    """Yields the row groups in runs of at most AT_ONCE_BYTES stored bytes, and of at least one group."""
    run: list[int] = []
    size = 0
    for group in groups:
        row_group = footer.row_group(group)
        stored = sum(row_group.column(at).total_compressed_size for at in range(row_group.num_columns))
        if run and size + stored > AT_ONCE_BYTES:
            yield run
            run, size = [], 0
        run.append(group)
        size += stored
    if run:
        yield run


def _rows_of_group(footer: pq.FileMetaData, source: pa.NativeFile, group: int, most: int) -> int:
    """Returns how many records of a row group to decode at once, at `most`: a power of two, so that neighbours
    are alike.

    A record counts as long as its longest texts in dictionaries, or as the footer says of an average one.
    """
    row_group = footer.row_group(group)
    average = row_group.total_byte_size // max(1, row_group.num_rows)
    record = max(text_bytes(footer, source, group), average)
    rows = rows_at_once(record, most, batch_bytes=BATCH_BYTES)
    return rows if rows == most else 1 << (rows.bit_length() - 1)


@contextmanager
def _opened(reading: Reading, row_groups: list[int] | None = None) -> Iterator[_Opened]:
    with open_seekable(reading) as file:
        with _naming(reading):
            source = pa.PythonFile(file, mode="r")
            is_local = "://" not in (reading.path or reading.file)
            parquet = pq.ParquetFile(
                source,
                page_checksum_verification=True,
                pre_buffer=not is_local,
                buffer_size=BUFFER_BYTES if is_local else 0,
            )
            chosen = list(range(parquet.num_row_groups)) if row_groups is None else row_groups
            schema, records = parquet.schema_arrow, parquet.metadata.num_rows
            check_column_chunks(parquet.metadata, size=source.size())
            fault = schema_fault(schema) or reading.expansion.fault(records * least_bytes(schema))
            fault = fault or footer_fault(parquet, chosen)
        if fault:
            reading.unreadable(0, fault)
        yield _Opened(parquet, source, chosen)


@contextmanager
def _naming(reading: Reading) -> Iterator[None]:
    try:
        yield
    except InvalidInput as error:
        reading.unreadable(0, str(error))
    except _ARROW_ERRORS as error:
        reading.unreadable(0, f"not a readable Parquet file: {error}")


def row_group_sizes(reading: Reading) -> list[int]:
    """Returns the uncompressed bytes of each row group, by which a caller divides the work.  Raises
    InvalidInput."""
    with _opened(reading) as file:
        footer = file.parquet.metadata
        return [footer.row_group(at).total_byte_size for at in file.row_groups]
