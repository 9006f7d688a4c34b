"""Parquet: typed already; only declared types and damage are looked at."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from lake_core.ingest.block import Block, Reading
from lake_core.ingest.declared import DoesNotFit, declared_columns
from lake_core.ingest.sources import open_seekable

BATCH_ROWS = 131_072


def read_parquet(reading: Reading, row_groups: list[int] | None = None) -> Iterator[Block]:
    """The file's records, or those of some row groups, in blocks; raises InvalidInput."""
    with open_seekable(reading.file) as file:
        try:
            parquet = pq.ParquetFile(pa.PythonFile(file, mode="r"))
            for batch in parquet.iter_batches(batch_size=BATCH_ROWS, row_groups=row_groups):
                yield Block(_declared(pa.Table.from_batches([batch]), reading))
        except (pa.ArrowInvalid, OSError) as error:
            reading.unreadable(0, f"not a readable Parquet file: {error}")


def row_group_sizes(file: str) -> list[int]:
    """Uncompressed bytes of each row group, for splitting work; raises InvalidInput."""
    with open_seekable(file) as opened:
        try:
            footer = pq.ParquetFile(pa.PythonFile(opened, mode="r")).metadata
        except (pa.ArrowInvalid, OSError) as error:
            Reading(file).unreadable(0, f"not a readable Parquet file: {error}")
        return [footer.row_group(i).total_byte_size for i in range(footer.num_row_groups)]


def _declared(table: pa.Table, reading: Reading) -> pa.Table:
    try:
        return declared_columns(table, reading.declared)
    except DoesNotFit as error:
        reading.unreadable(0, str(error))
