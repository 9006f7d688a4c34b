"""Decides how many records of a Parquet file to decode at once.

A column may store a long text once, in its dictionary, and use it a million times.  Arrow decodes as many
records as the caller asks for, whatever their size.  So the longest text of each dictionary is found first, if
the column is large enough to matter.  Called by `parquet`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from log_lake.loading.block import batch_rows

BATCH_ROWS = 131_072

BATCH_BYTES = 256 << 20
"""Bytes of the texts of one batch, if each is the longest of its column's dictionary."""


def batches(
    parquet: pq.ParquetFile, source: pa.NativeFile, groups: Sequence[int]
) -> Iterator[pa.RecordBatch]:
    """The records of row groups; neighbours with the same number of records a batch are read together."""
    most = batch_rows(parquet.schema_arrow, BATCH_ROWS)
    sized = [(_rows(parquet.metadata, source, group, most), group) for group in groups]
    for rows, run in groupby(sized, key=lambda one: one[0]):
        yield from parquet.iter_batches(batch_size=rows, row_groups=[group for _, group in run])


def _rows(footer: pq.FileMetaData, source: pa.NativeFile, group: int, most: int) -> int:
    """The number of the row group's records in one batch, at most `most`."""
    row_group = footer.row_group(group)
    rows = min(most, row_group.num_rows)
    columns = [row_group.column(at) for at in range(row_group.num_columns)]
    large = [
        column
        for column in columns
        if column.has_dictionary_page
        and column.physical_type == "BYTE_ARRAY"
        and column.total_uncompressed_size * rows > BATCH_BYTES // len(columns)
    ]
    if not large:
        return most
    paths = [column.path_in_schema for column in large]
    file = pq.ParquetFile(source, metadata=footer, read_dictionary=paths, buffer_size=1 << 16)
    first = next(file.iter_batches(batch_size=1, row_groups=[group], columns=paths), None)
    if first is None:
        return most
    repeats = max(1, *(column.num_values // max(1, row_group.num_rows) for column in large))
    longest = sum(_longest(values) for values in first.columns)
    return max(1, min(most, BATCH_BYTES // max(1, longest * repeats)))


def _longest(values: pa.Array) -> int:
    """The lengths of the longest texts of the dictionaries in an array, added up."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return int(pc.max(pc.binary_length(values.dictionary)).as_py() or 0)
    if pa.types.is_struct(kind):
        return sum(_longest(values.field(at)) for at in range(kind.num_fields))
    if pa.types.is_map(kind):
        return _longest(values.keys) + _longest(values.items)
    return _longest(values.values) if pa.types.is_list(kind) or pa.types.is_large_list(kind) else 0
