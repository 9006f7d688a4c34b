"""Tiny Parquet files, decoded as a whole when they are opened.

A file of ten records takes longer to look at than to decode.  Arrow plans a read of all column chunks before it
reads the first, so the decoding is also the check of the column chunks (`column_chunks`).  Texts are read with
their dictionaries, which take no more than their pages; then their longest text says whether the records fit in
memory.  What the footer says is not trusted, as in `parquet_rows`.

Called by the container of Parquet (decision 336).
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

MOST_BYTES = 64 << 10
"""Bytes of a tiny file, with its footer."""

MOST_RECORDS = 4_096
"""Records of a tiny file."""

MOST_COLUMNS = 64
"""Columns of a tiny file; of more, a reader often needs a few only."""

MOST_WIDTH = 64
"""Bytes of a value of fixed length."""

TEXT_BYTES = 8 << 20
"""Bytes of the texts of all records at most, if each is the longest of its dictionary."""


@dataclass(frozen=True)
class Whole:
    """All records of a tiny file, if they are few bytes, and the bytes of the longest text of each column that has
    texts."""

    records: pa.Table | None
    longest: dict[str, int]


def read_whole(
    file: pa.NativeFile, footer: pq.FileMetaData, schema: pa.Schema, most_bytes: int
) -> Whole | None:
    """A tiny file; None if it is not tiny, or has lists or records in its fields.

    Its records, if they take at most `most_bytes`: each batch that a reader takes of them holds them all.

    Raises what Arrow raises if the file is damaged, or describes impossible column chunks.
    """
    if (
        footer.num_rows > MOST_RECORDS
        or footer.num_columns > MOST_COLUMNS
        or footer.num_columns != len(schema)
        or footer.num_row_groups != 1
        or file.size() > MOST_BYTES
        or not all(_is_plain(field.type) for field in schema)
    ):
        return None
    texts = [field.name for field in schema if _is_text(field.type)]
    opened = pq.ParquetFile(
        file, metadata=footer, read_dictionary=texts, pre_buffer=True, page_checksum_verification=True
    )
    records = opened.read(use_threads=False)
    if records.num_rows != footer.num_rows or records.num_columns != len(schema):
        return None
    longest = {name: _longest(records.column(name)) for name in texts}
    texts_bytes = sum(longest.values()) * records.num_rows
    if texts_bytes > TEXT_BYTES:
        return None
    others = sum(
        column.nbytes
        for column, field in zip(records.columns, schema, strict=True)
        if field.name not in longest
    )
    if others + texts_bytes > most_bytes:
        return Whole(None, longest)
    columns = [
        column.cast(field.type) if field.name in longest else column
        for column, field in zip(records.columns, schema, strict=True)
    ]
    return Whole(pa.table(columns, schema=schema.remove_metadata()), longest)  # fields keep their marks


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _is_plain(kind: pa.DataType) -> bool:
    if pa.types.is_nested(kind) or pa.types.is_dictionary(kind):
        return False
    return _is_text(kind) or pa.types.is_null(kind) or kind.bit_width <= 8 * MOST_WIDTH


def _longest(column: pa.ChunkedArray) -> int:
    lengths = (pc.max(pc.binary_length(chunk.dictionary)).as_py() for chunk in column.chunks)
    return max((int(length or 0) for length in lengths), default=0)
