"""Decides how many records of a Parquet file are decoded at once.

A column may store a long text once, in its dictionary, and refer to it a million times.  Arrow decodes as many
records as it is asked for, whatever their size.  So this module first finds the longest text of each dictionary
(decision 266).  It does not trust the sizes that the footer states, because the writer of the file may have
forged them.

Called by the container of Parquet, the reader of data objects, and the reader of Parquet files that are loaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lake_core.errors import Corrupt

BATCH_BYTES = 256 << 20
"""The most bytes of the texts of one batch, counted as if each were the longest of its column's dictionary."""

KEYS_BYTES = 1 << 30
"""The most decoded bytes of the keys of a group; writers end a group long before."""


def text_bytes(
    footer: pq.FileMetaData, source: pa.NativeFile, group: int, columns: Sequence[int] | None = None
) -> int:
    """Returns the most bytes of texts that one record of a row group can have in these columns of the file; None
    means all columns.

    Only texts in dictionaries count, and at most as many elements of a list as the file states.  Raises what
    Arrow raises.
    """
    row_group, schema = footer.row_group(group), footer.schema
    numbers = range(row_group.num_columns) if columns is None else columns
    fixed = sum(
        max(0, schema.column(at).length) for at in numbers if _kind(schema, at) == "FIXED_LEN_BYTE_ARRAY"
    )
    texts = [at for at in numbers if _kind(schema, at) == "BYTE_ARRAY"]
    if not texts or row_group.num_rows <= 1:
        return fixed
    paths = [schema.column(at).path for at in texts]  # a chunk's own path may be damaged
    file = pq.ParquetFile(  # not pre-buffered: only the first pages are read
        source, metadata=footer, read_dictionary=paths, pre_buffer=False, buffer_size=1 << 16
    )
    batches = file.iter_batches(batch_size=1, row_groups=[group], columns=paths, use_threads=False)
    first = next(batches, None)
    if first is None:
        return fixed
    repeats = max(1, *(row_group.column(at).num_values // row_group.num_rows for at in texts))
    return fixed + repeats * sum(_longest(values) for values in first.columns)


def rows_at_once(record: int, most: int, *, batch_bytes: int = BATCH_BYTES) -> int:
    """Returns how many records with `record` bytes of texts to decode at once, at `most`, so that a batch has at
    most `batch_bytes`."""
    return max(1, min(most, batch_bytes // max(1, record)))


def keys_of(batches: Iterable[pa.RecordBatch], *, what: str) -> pa.Table:
    """Joins the batches that hold the keys of a group into one table.  Raises Corrupt if they take more bytes than
    the keys of any group that a writer makes."""
    content, gathered = 0, []
    for batch in batches:
        content += batch.nbytes
        if content > KEYS_BYTES:
            raise Corrupt(f"{what} take more than {KEYS_BYTES:,} bytes")
        gathered.append(batch)
    return pa.Table.from_batches(gathered).combine_chunks()


def _kind(schema: pq.ParquetSchema, number: int) -> str:
    return str(schema.column(number).physical_type)


def _longest(values: pa.Array) -> int:
    """Returns the sum of the lengths of the longest texts in the array's dictionaries."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return int(pc.max(pc.binary_length(values.dictionary)).as_py() or 0)
    if pa.types.is_struct(kind):
        return sum(_longest(values.field(at)) for at in range(kind.num_fields))
    if pa.types.is_map(kind):
        return _longest(values.keys) + _longest(values.items)
    return _longest(values.values) if pa.types.is_list(kind) or pa.types.is_large_list(kind) else 0
