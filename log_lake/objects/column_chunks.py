"""Checks whether the column chunks that a Parquet file's footer describes are possible.

pyarrow reads the description of a column chunk unchecked.  If its sizes, size statistics or encryption
contradict the schema, C++ throws, and the whole process ends (`terminate called after throwing`).  So
`check_column_chunks` first lets Arrow plan a read of all chunks, which makes the same checks but reports
errors.  The plan is for a file that has no bytes, so no data are read.  This costs less than opening the file
(decision 193).

Called by the container of Parquet, and by the reader of Parquet files that are loaded, before they read a
chunk.
"""

from __future__ import annotations

import io
import os

import pyarrow as pa
import pyarrow.parquet as pq


class _OnlyPlanned(io.RawIOBase):
    """A file of a given size without bytes.  It counts positions, and knows whether Arrow began to read.

    It raises nothing.  If it did, Arrow would keep the Python error and its traceback, which refers to Arrow's
    reader, so neither would ever be freed.
    """

    def __init__(self, size: int) -> None:
        self._size, self._at = size, 0
        self.is_planned = False

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        return self._at

    def read(self, size: int = -1) -> bytes:
        self.is_planned = True
        return b""


def check_column_chunks(footer: pq.FileMetaData, *, size: int) -> None:
    """Raises an error of Arrow if a column chunk is impossible; `size` is that of the file, in bytes."""
    groups = list(range(footer.num_row_groups))
    file = _OnlyPlanned(size)
    planned = pq.ParquetFile(pa.PythonFile(file, mode="r"), metadata=footer, pre_buffer=True)
    try:
        planned.read_row_groups(groups, use_threads=False)
    except (OSError, pa.ArrowException):
        if not file.is_planned:
            raise
