"""Decodes an ORC file a few records at a time, whatever the size of a stripe.

A stripe of some kilobytes may hold gigabytes: one text in its dictionary that each record names.  So Arrow
decodes batches of few records, and small batches are joined.  If Arrow refuses a timestamp, pyorc reads the
fields with timestamps from there on, as pairs (`orc_times`).  Called by `orc`.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

import pyarrow as pa

from log_lake.loading.formats.orc_times import are_plain, has_times, read_pairs

DECODED_ROWS = 256
"""Records that Arrow decodes at a time; it holds about five such batches. Smaller batches are slow: with 64
records, reading takes twice as long."""

JOINED_ROWS = 131_072
JOINED_BYTES = 32 << 20
"""About how many bytes of records become one block."""

_OUT_OF_RANGE = "out of range for nanosecond resolution"
"""The beginning of Arrow's message about a timestamp that its nanoseconds cannot hold."""


class _Shared(io.RawIOBase):
    """A file with a position of its own, because Arrow reads in a thread while pyorc reads the same file."""

    def __init__(self, file: BinaryIO, shared: threading.Lock) -> None:
        self._file, self._shared, self._at = file, shared, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        with self._shared:
            if whence == io.SEEK_CUR:
                offset, whence = self._at + offset, io.SEEK_SET
            self._at = self._file.seek(offset, whence)
        return self._at

    def read(self, size: int = -1) -> bytes:
        with self._shared:
            self._file.seek(self._at)
            data = self._file.read(size)
        self._at += len(data)
        return data


def batches(opened: BinaryIO, file: Any) -> Iterator[pa.RecordBatch]:
    """Yields the records of an ORC file; Arrow has opened `opened` as `file`.

    Raises what Arrow and pyorc raise for a damaged file.
    """
    gathered: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in _small(opened, file):
        if gathered and (
            rows + batch.num_rows > JOINED_ROWS
            or size + batch.nbytes > JOINED_BYTES
            or batch.schema != gathered[0].schema
        ):
            yield pa.concat_batches(gathered)
            gathered, rows, size = [], 0, 0
        gathered.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
    if gathered:
        yield pa.concat_batches(gathered)


def _small(opened: BinaryIO, file: Any) -> Iterator[pa.RecordBatch]:
    shared, done = threading.Lock(), 0
    try:
        for batch in _decoded(_Shared(opened, shared), file, None):
            yield batch
            done += batch.num_rows
    except pa.ArrowInvalid as error:
        if _OUT_OF_RANGE not in str(error):
            raise
    else:
        return
    yield from _with_pairs(opened, shared, file, done)


def _with_pairs(opened: BinaryIO, shared: threading.Lock, file: Any, first: int) -> Iterator[pa.RecordBatch]:
    """Yields the records from number `first` on, with pairs in place of timestamps."""
    names = file.schema.names
    others = [field.name for field in file.schema if not has_times(field.type)] if are_plain(names) else []
    timed = [field for field in file.schema if field.name not in others]
    pairs = read_pairs(cast(BinaryIO, _Shared(opened, shared)), first, timed)
    if not others:
        while columns := pairs(DECODED_ROWS):  # bounded by the file
            yield _batch(columns, names)
        return
    done = 0
    for batch in _decoded(_Shared(opened, shared), file, others):
        begin = min(batch.num_rows, max(0, first - done))
        done += batch.num_rows
        if (rest := batch.slice(begin)).num_rows:
            beside = [(rest.column(field.name), field) for field in rest.schema]
            yield _batch([*beside, *pairs(rest.num_rows)], names)


def _batch(columns: list[tuple[pa.Array, pa.Field]], names: list[str]) -> pa.RecordBatch:
    by_name = {field.name: (array, field) for array, field in columns}
    chosen = [by_name[name] for name in names]
    return pa.record_batch([array for array, _ in chosen], schema=pa.schema([field for _, field in chosen]))


def _decoded(opened: _Shared, file: Any, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
    """Yields batches of few records.  If Arrow would take the file's names for paths, it yields whole
    stripes."""
    if not are_plain(file.schema.names):
        yield from map(file.read_stripe, range(file.nstripes))
        return
    from pyarrow import dataset

    fragment = dataset.OrcFileFormat().make_fragment(pa.PythonFile(opened, mode="r"))
    scanner = dataset.Scanner.from_fragment(
        fragment,
        schema=file.schema,
        columns=columns,
        batch_size=DECODED_ROWS,
        batch_readahead=0,
        fragment_readahead=0,
        use_threads=False,
    )
    yield from scanner.to_batches()
