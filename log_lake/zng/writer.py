"""Writes ZNG: typedefs before their first use, values, and the end of the stream.

Values are gathered and written as compressed blocks, as the original program does.  A block ends before the
value with which it would exceed `block_bytes`.  If LZ4 does not make a block smaller, it is written
uncompressed.  Typedefs are written before the values that still wait; this is allowed, because they only add
types.
"""

from __future__ import annotations

from itertools import pairwise
from typing import BinaryIO

import lz4.block
import numpy as np

from lake_core.errors import InvalidInput
from log_lake.columns.arrays import Bytes, Ints
from log_lake.zng.reader import COMPRESSED, END, WIDE_VALUE
from log_lake.zng.rows import Batch, Rows, rows_of
from log_lake.zng.slices import Pieces, interleaved, made, uvarints
from log_lake.zng.typedefs import TypeWriter
from log_lake.zng.types import Type
from log_lake.zng.wire import MAX_VALUE_BYTES, uvarint

BLOCK_BYTES = 16_384
"""Bytes of values that are compressed together, as in the original program; 0 switches compression off."""


class ZngWriter:
    """Writes one stream to an open file.  `close` ends the stream, not the file."""

    def __init__(self, output: BinaryIO, *, block_bytes: int = BLOCK_BYTES) -> None:
        self._output = output
        self._block_bytes = block_bytes
        self._types = TypeWriter()
        self._waiting: list[Bytes] = []
        self._waiting_bytes = 0
        self._written = False

    def write(self, values: Rows | Batch) -> None:
        """Writes values, in their order."""
        if not len(values):
            return
        rows = rows_of(values) if isinstance(values, Batch) else values
        self._written = True
        ids, definitions = self._ids(values.types, values.kinds)
        length = np.maximum(rows.length, 0)
        if int(length.max()) > MAX_VALUE_BYTES:
            raise InvalidInput(f"a value of {length.max():,} bytes; ZNG holds at most {MAX_VALUE_BYTES:,}")
        data, offsets = interleaved(
            [_type_ids(ids), uvarints(length).bodies(), (rows.buffer, rows.start, length)]
        )
        bounds = [*definitions, len(values)]
        for first, stop in pairwise(bounds):
            self._output.write(definitions[first])
            self._blocks(data, offsets[first : stop + 1])

    def close(self) -> None:
        """Ends the stream.  If no value was written, nothing is written: the output stays empty."""
        if self._written:
            self._flush()
            self._output.write(bytes([END]))

    def _ids(self, types: list[Type], kinds: Ints) -> tuple[Ints, dict[int, bytes]]:
        """Returns the type id of each value, and, by row, the typedefs to write before that row.  Row 0 always has
        an entry."""
        present, first = np.unique(kinds, return_index=True)
        ids = np.zeros(len(types), np.int64)
        definitions = {0: b""}
        for at in np.argsort(first):
            typedefs = bytearray()
            ids[present[at]] = self._types.id_of(types[present[at]], typedefs)
            if typedefs:
                definitions[int(first[at])] = bytes(typedefs)
        return ids[kinds], definitions

    def _blocks(self, data: Bytes, offsets: Ints) -> None:
        if not self._block_bytes:
            self._output.write(data[offsets[0] : offsets[-1]].data)
            return
        row, rows = 0, len(offsets) - 1
        while row < rows:  # ends: each round takes a value at least, or empties what waits
            room = self._block_bytes - self._waiting_bytes
            stop = int(np.searchsorted(offsets, offsets[row] + room, side="right")) - 1
            if stop <= row:
                if self._waiting_bytes:
                    self._flush()
                    continue
                stop = row + 1
            part = data[offsets[row] : offsets[stop]]
            self._waiting.append(part)
            self._waiting_bytes += len(part)
            row = stop

    def _flush(self) -> None:
        block = b"".join(part.tobytes() for part in self._waiting)
        self._waiting, self._waiting_bytes = [], 0
        if not block:
            return
        packed = lz4.block.compress(block, store_size=False)
        header = bytes([COMPRESSED, 0]) + uvarint(len(block)) + uvarint(len(packed))
        self._output.write(header + packed if len(header) + len(packed) < len(block) else block)


def _type_ids(ids: Ints) -> Pieces:
    if int(ids.max()) < WIDE_VALUE:
        return _single_bytes(ids)
    wide = ids >= WIDE_VALUE
    rest = uvarints(np.where(wide, ids - WIDE_VALUE, 0))
    code = _single_bytes(np.where(wide, WIDE_VALUE, ids))
    number = (rest.buffer, rest.start, np.where(wide, rest.length, 0))
    data, offsets = interleaved([code, number])
    return made(data), offsets[:-1], np.diff(offsets)


def _single_bytes(numbers: Ints) -> Pieces:
    """Returns each number as a piece of one byte."""
    count = len(numbers)
    return made(numbers.astype(np.uint8)), np.arange(count), np.ones(count, np.int64)
