"""Decodes tiny Parquet files as a whole when they are opened.

A file of ten records takes longer to examine than to decode.  Arrow plans a read of all column chunks before it
reads the first, so decoding also checks the column chunks (`column_chunks`).  Texts are first read with their
dictionaries, which take no more memory than their pages.  The longest text then shows whether the records fit
in memory.  Sizes in the footer are not trusted, as in `parquet_rows`.

Called by the container of Parquet (decision 336).
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

MOST_BYTES = 64 << 10
"""The most bytes of a tiny file, with its footer."""

MOST_RECORDS = 4_096
"""The most records of a tiny file."""

MOST_COLUMNS = 64
"""The most columns of a tiny file. From a file with more, a reader often needs only a few."""

MOST_WIDTH = 64
"""The most bytes of a value of fixed length in a tiny file."""

TEXT_BYTES = 8 << 20
"""The most bytes of the texts of all records, if each text were the longest of its dictionary."""


@dataclass(frozen=True)
class Whole:
    """A tiny file that was decoded as a whole: all of its records, if they take few bytes; and, for each column
    that has texts, the bytes of its longest text."""

    records: pa.Table | None
    longest: dict[str, int]


def read_whole(
    file: pa.NativeFile, footer: pq.FileMetaData, schema: pa.Schema, most_bytes: int
) -> Whole | None:
    """Decodes a tiny file.  Returns None if the file is not tiny, or if a field is a list or a record.

    The result has the records only if they take at most `most_bytes`: each batch cut from them keeps all of
    them in memory.  Raises what Arrow raises if the file is damaged, or describes impossible column chunks.
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
