"""Holds batches on disk, for work whose records do not fit in memory: merges of many streams, large files of CSV.

A Parquet reader holds the row group that it decodes: sixty streams hold sixty row groups, however small the
batches are.  So a stream whose row groups exceed its share writes one decoded row group at a time to the spool,
as Arrow batches, and reads them back one by one.  Its reader holds no row group meanwhile.  A reader of CSV
knows the types of a file only at its end; until then the spool holds the values.

One unnamed file in `TMPDIR` serves all streams of a merge.  It takes one file descriptor, and the system
removes it when the process ends.  The space of a batch is used again after the batch was read back, so a
merge's file stays about as large as the open row groups.  Several threads may use a spool at the same time.
"""

from __future__ import annotations

import logging
import os
import tempfile
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType

import pyarrow as pa

from lake_core.errors import Unavailable
from lake_core.phrases import human_size

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SpooledBatch:
    """The place of a batch in the file; `unpacked` is the batch's size in memory, in bytes."""

    at: int
    size: int
    room: int
    unpacked: int


class Spool:
    """A context that stores batches in a temporary file, which is made when the first batch is put.

    `work` names the owner of the batches in messages.  `packed`: batches are compressed, which takes less disk
    space and no more processor time (decision 50).
    """

    def __init__(self, work: str, *, packed: bool = False) -> None:
        self._work = work
        self._codec = pa.Codec("lz4_raw") if packed else None
        self._file: int | None = None
        self._closes: Callable[[], object] = int
        self._end = 0
        self._written = 0
        self._free: dict[int, list[int]] = defaultdict(list)
        self._lock = threading.Lock()
        self.turn = threading.Lock()
        """Held by the stream that decodes a row group for the spool."""

    def __enter__(self) -> Spool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Frees the space on disk; all batches are lost."""
        if self._file is not None:
            self._closes()
            self._file = None
            log.info(
                "%s wrote %s to disk, at most %s at a time",
                self._work,
                human_size(self._written),
                human_size(self._end),
            )

    @property
    def used(self) -> bool:
        """Whether a batch was ever written."""
        return self._file is not None

    def put(self, batch: pa.RecordBatch) -> SpooledBatch:
        """Writes a batch.  Raises Unavailable if the disk refuses it."""
        data = batch.serialize()
        unpacked = data.size
        if self._codec is not None:
            data = self._codec.compress(data)
        piece = self._space(data.size, unpacked)
        # Arrow's buffer of packed bytes shows all the room that it had, beyond its size
        view, at = memoryview(data)[: data.size], piece.at
        try:
            while view:  # a write may take only a part; every turn takes some
                written = os.pwrite(self._opened(), view, at)
                view, at = view[written:], at + written
        except OSError as error:
            raise self._refused(error) from error
        return piece

    def take(self, piece: SpooledBatch, schema: pa.Schema) -> pa.RecordBatch:
        """Reads a batch back, and frees its space on disk.  Raises Unavailable."""
        batch = self.read(piece, schema)
        with self._lock:
            self._free[piece.room].append(piece.at)
        return batch

    def read(self, piece: SpooledBatch, schema: pa.Schema) -> pa.RecordBatch:
        """Reads a batch back, and leaves it on disk.  Raises Unavailable."""
        data = pa.allocate_buffer(piece.size)
        view, at = memoryview(data), piece.at
        try:
            while view:
                read = os.preadv(self._opened(), [view], at)
                if not read:
                    raise OSError("the file is shorter than what was written")
                view, at = view[read:], at + read
        except OSError as error:
            raise self._refused(error) from error
        if self._codec is not None:
            data = self._codec.decompress(data, piece.unpacked)
        return pa.ipc.read_record_batch(data, schema)

    def _refused(self, error: OSError) -> Unavailable:
        return Unavailable(
            f"{tempfile.gettempdir()}: {self._work} cannot use its temporary file: {error}; free space, "
            "or set TMPDIR to another folder"
        )

    def _opened(self) -> int:
        with self._lock:
            if self._file is None:
                with tempfile.TemporaryFile(prefix="lake-") as file:
                    self._file = os.dup(file.fileno())
                    self._closes = weakref.finalize(self, os.close, self._file)
            return self._file

    def _space(self, size: int, unpacked: int) -> SpooledBatch:
        """Finds space for `size` bytes.  Rounds up to an eighth of a power of two, so that freed space fits
        again."""
        step = max(4096, (1 << size.bit_length()) >> 4)
        room = -(-size // step) * step
        with self._lock:
            self._written += size
            if self._free[room]:
                return SpooledBatch(self._free[room].pop(), size, room, unpacked)
            at, self._end = self._end, self._end + room
        return SpooledBatch(at, size, room, unpacked)
