"""Limits how much the rows of a checkpoint may hold: a row group is read only if all rows that a reader keeps stay
within it.

References are read a row group at a time, and few groups are kept, so the limit applies to each such group.  A
reader keeps all rows of the other sections, so for them the limit applies to all rows together.

A dictionary stores a value once, however many rows have it: a checkpoint of 12 KB could decode to 40 GB.  So
texts are read as dictionaries, and their bytes are counted before they are expanded.  Sizes that the file
itself states are not trusted, because its writer may have forged them.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lake_core.checkpoints.layout import ROW

TEXTS = [field.name for field in ROW if pa.types.is_string(field.type) or pa.types.is_binary(field.type)]
"""The columns that are read as dictionaries."""

FREE = 1 << 28
"""Bytes that the kept rows of any checkpoint may hold, whatever its size."""
TIMES, LARGE = 1_000, 1 << 30
"""A larger limit for large checkpoints: `TIMES` times the bytes of the checkpoint, at most `LARGE` bytes. Files
that are loaded have the same factor (decision 152)."""
FEW_TIMES = 20
"""The limit for the largest checkpoints: this many times the bytes of the checkpoint, without a maximum."""

SMALL = 1 << 16
"""A column of at most this many bytes is not counted."""


def most_content(size: int) -> int:
    """Returns how many bytes the rows that a reader keeps may have, for a checkpoint file of `size` bytes."""
    return max(FREE, min(TIMES * size, LARGE), FEW_TIMES * size)


def read_group(
    file: pq.ParquetFile, number: int, columns: Sequence[str], *, most: int, use_threads: bool
) -> tuple[pa.Table, int] | None:
    """Reads the rows of a row group, in a file opened with `TEXTS`.  Returns them and the number of their
    bytes.  Returns None if they hold more than `most` bytes."""
    names = [field.name for field in ROW if field.name in columns]
    schema = pa.schema([ROW.field(name) for name in names])
    batches: list[pa.RecordBatch] = []
    content = 0
    for batch in file.iter_batches(1 << 16, [number], names, use_threads=use_threads):
        content += sum(map(_content_of, batch.columns))
        if content > most:
            return None
        arrays = [
            one.dictionary_decode() if pa.types.is_dictionary(one.type) else one for one in batch.columns
        ]
        batches.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return pa.Table.from_batches(batches, schema), content


def _content_of(array: pa.Array) -> int:
    """Returns the bytes of the values; a value in a dictionary counts each time it occurs."""
    if not pa.types.is_dictionary(array.type):
        return int(array.nbytes)
    longest = array.dictionary.nbytes
    if longest * len(array) <= SMALL:  # cannot be much, so nothing is counted
        return len(array)
    lengths = pc.binary_length(array.dictionary).cast(pa.int64())
    return int(pc.sum(lengths.take(array.indices)).as_py() or 0)
