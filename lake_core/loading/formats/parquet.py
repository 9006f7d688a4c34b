"""Parquet: its records have types; declared types, limits and damage are checked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from lake_core.loading.block import Block, Reading
from lake_core.loading.declared import declared_columns
from lake_core.loading.formats.promises import footer_fault, rows_fault
from lake_core.loading.opening import open_seekable
from lake_core.objects.limits import batch_rows, schema_fault

BATCH_ROWS = 131_072
_ARROW_ERRORS = (pa.ArrowException, OSError, ValueError, NotImplementedError)
"""The exceptions that Arrow raises for files that it cannot read; the last three are Python's own."""


def read_parquet(reading: Reading, row_groups: list[int] | None = None) -> Iterator[Block]:
    """The file's records, or those of some row groups, in blocks; raises InvalidInput."""
    with _opened(reading, row_groups) as parquet:
        footer, rows = parquet.metadata, 0
        chosen = range(footer.num_row_groups) if row_groups is None else row_groups
        most = batch_rows(parquet.schema_arrow, BATCH_ROWS)
        batches = parquet.iter_batches(batch_size=most, row_groups=row_groups)
        while True:  # bounded by the file
            with _naming(reading):
                batch = next(batches, None)
                if batch is None:
                    break
                table = pa.Table.from_batches([batch])
            rows += table.num_rows
            yield Block(declared_columns(table, reading.declared, source=reading.file))
        if fault := rows_fault(rows, sum(footer.row_group(at).num_rows for at in chosen)):
            reading.unreadable(0, fault)


@contextmanager
def _opened(reading: Reading, row_groups: list[int] | None = None) -> Iterator[pq.ParquetFile]:
    with open_seekable(reading) as file:
        with _naming(reading):
            parquet = pq.ParquetFile(pa.PythonFile(file, mode="r"), page_checksum_verification=True)
            chosen = range(parquet.num_row_groups) if row_groups is None else row_groups
            fault = schema_fault(parquet.schema_arrow) or footer_fault(parquet, chosen)
        if fault:
            reading.unreadable(0, fault)
        yield parquet


@contextmanager
def _naming(reading: Reading) -> Iterator[None]:
    try:
        yield
    except _ARROW_ERRORS as error:
        reading.unreadable(0, f"not a readable Parquet file: {error}")


def row_group_sizes(reading: Reading) -> list[int]:
    """Uncompressed bytes of each row group, for splitting work; raises InvalidInput."""
    with _opened(reading) as parquet:
        footer = parquet.metadata
        return [footer.row_group(i).total_byte_size for i in range(footer.num_row_groups)]
