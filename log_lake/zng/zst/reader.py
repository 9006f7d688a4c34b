"""Reads ZST: opens a file from its end, and gives its values as columns, in their order.

`ZstFile.open` reads the trailer and the reassembly section.  `batches` reads only segments of the requested
fields, and stops at the last requested row; the source may join neighbouring segments into one request.
`lines` prints the reassembly maps as text.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain as joined

import numpy as np
import pyarrow as pa

from log_lake.columns.arrays import Ints
from log_lake.zng.columns import Column
from log_lake.zng.reader import read
from log_lake.zng.rows import Batch, Rows
from log_lake.zng.text import type_text
from log_lake.zng.types import Record, Type, plain
from log_lake.zng.wire import Cursor, corrupt
from log_lake.zng.zst.columns import RecordReader, Values
from log_lake.zng.zst.layout import TRAILER_BYTES, Trailer, find_trailer
from log_lake.zng.zst.maps import (
    RecordMap,
    Segments,
    checked_segments,
    read_map,
    read_segments,
    segments_of,
)
from log_lake.zng.zst.projection import Path, projected
from log_lake.zng.zst.source import SegmentSource

BATCH_ROWS = 65_536
"""Rows per batch, unless their types have very many fields."""

_BATCH_CELLS = 1 << 20
"""The most values in the columns of one batch, nulls included; a batch with more has fewer rows."""


@dataclass(frozen=True)
class ZstFile:
    """An open file of ZST: its super types (the types of top-level values), and where the columns of each
    are."""

    name: str
    file: pa.NativeFile
    trailer: Trailer
    types: tuple[Type, ...]
    root: Segments
    maps: tuple[RecordMap, ...]
    first: int = 0
    """The number of super types in the file before those of this part."""

    def part(self, *, begin: int, end: int, types: range) -> ZstFile:
        """Returns the values between two positions of the data section, as a file of its own.

        `types`: the numbers of the part's super types in the whole file.  `ZstWriter.end_part` makes such
        parts.
        """
        root = tuple(segment for segment in self.root if begin <= segment.offset < end)
        kinds, maps = self.types[types.start : types.stop], self.maps[types.start : types.stop]
        return ZstFile(self.name, self.file, self.trailer, kinds, root, maps, self.first + types.start)

    @staticmethod
    def open(file: pa.NativeFile, *, name: str) -> ZstFile:
        """Opens a file; `name` is for errors.  Raises Corrupt if it is damaged, or not a ZST file."""
        size = file.size()
        tail_bytes = min(size, TRAILER_BYTES)
        tail = file.read_at(tail_bytes, size - tail_bytes)
        trailer, _ = find_trailer(tail, size=size, name=name)
        begin = trailer.sections[0]
        types, root, maps = _assembly(_reassembly(file, trailer, name), name=name, offset=begin)
        segments = list(joined(root, *(segments_of(column_map) for column_map in maps)))
        checked_segments(segments, data_bytes=begin, name=name, offset=begin)
        return ZstFile(name, file, trailer, types, root, maps)

    def batches(
        self, *, fields: Sequence[str | Path] | None = None, start: int = 0, stop: int | None = None
    ) -> Iterator[Batch]:
        """Yields the values from position `start` to before `stop`, with only the wanted fields.

        A field is named by its path as text (`id.orig_h`), or by the names in the path.  Raises Corrupt with
        the offset of the damage.
        """
        chosen = [
            projected(kind, record_map, fields)
            for kind, record_map in zip(self.types, self.maps, strict=True)
        ]
        types = [kind for kind, _ in chosen]
        needed = joined(self.root, *(segments_of(record_map) for _, record_map in chosen))
        source = SegmentSource(self.file, name=self.name, needed=needed)
        root = Values(self.root, source)
        readers = [RecordReader(_record(kind), record_map, source) for kind, record_map in chosen]
        nodes = np.array([kind.nodes for kind in types], np.int64)
        position = 0
        while stop is None or position < stop:  # ends: each round takes rows of the root
            ids = self._ids(root, BATCH_ROWS if stop is None else min(BATCH_ROWS, stop - position), nodes)
            if not len(ids):
                return
            present, kinds = np.unique(ids, return_inverse=True)
            counts = np.bincount(kinds)
            columns: list[Column] = [
                readers[at].take(rows) for at, rows in zip(present.tolist(), counts.tolist(), strict=True)
            ]
            batch = Batch(
                [types[at] for at in present.tolist()],
                kinds,
                columns,
                [self.types[at] for at in present.tolist()],
            )
            low = max(start - position, 0)
            position += len(ids)
            if low < len(ids):
                yield batch.part(low, len(ids)) if low else batch

    def _ids(self, root: Values, most: int, nodes: Ints) -> Ints:
        """Returns the super types of the next values, at most `most` of them; none at the end of the file.

        `nodes` has for each super type how many types it contains; each becomes a column.  The method takes
        fewer values if the batch would otherwise become too large.
        """
        slices = root.peek(most)
        ids = slices.signed() - self.first
        wrong = (ids < 0) | (ids >= len(self.types))
        if wrong.any():
            at = int(np.argmax(wrong))
            what = f"super type {ids[at] + self.first}, where there are {len(self.types)}"
            raise slices.buffer.corrupt(slices.start[at], what)
        if not len(ids):
            return ids
        cells = np.cumsum(nodes[ids])
        count = max(1, int(np.searchsorted(cells, _BATCH_CELLS, side="right")))
        root.take(count)
        return ids[:count]

    def lines(self) -> Iterator[str]:
        """Yields the reassembly maps as text: the super types, the root, a map for each type, and the trailer
        last."""
        section = _reassembly(self.file, self.trailer, self.name)
        for rows in read(io.BytesIO(section), name=self.name, offset=self.trailer.sections[0]):
            for row in range(len(rows)):
                yield rows.text(row)
        trailer = self.trailer
        yield (
            f'{{magic:"zst",version:1(int32),skew_thresh:{trailer.skew_bytes}(int32),'
            f"segment_thresh:{trailer.segment_bytes}(int32),sections:[{trailer.sections[0]},{trailer.sections[1]}]}}"
        )


def _record(kind: Type) -> Record:
    plain_kind = plain(kind)
    assert isinstance(plain_kind, Record)
    return plain_kind


def _reassembly(file: pa.NativeFile, trailer: Trailer, name: str) -> bytes:
    begin, size = trailer.sections
    section: bytes = file.read_at(size, begin)
    if len(section) < size:
        raise corrupt(name, begin + len(section), "the file ends within the reassembly section")
    return section


def _assembly(
    section: bytes, *, name: str, offset: int
) -> tuple[tuple[Type, ...], Segments, tuple[RecordMap, ...]]:
    """Returns the super types, the segments of the root, and the map of each type."""
    here = Cursor(b"", name=name, offset=offset)
    values = _values(section, name=name, offset=offset)
    types: list[Type] = []
    root: Segments | None = None
    for kind, body in values:
        if _is_super_type(kind, body, name, offset):
            types.append(kind)
            continue
        fields = dict(
            zip(_record(kind).names, Cursor(body or b"", name=name, offset=offset).values(), strict=False)
        )
        if "root" not in fields:
            raise here.corrupt("the reassembly section has no root")
        position = _record(kind).names.index("root")
        root = read_segments(plain(_record(kind).children[position]), fields["root"], here)
        break
    if root is None:
        raise here.corrupt("the reassembly section has no root")
    maps: list[RecordMap] = []
    for kind in types:
        next_value = next(values, None)
        if next_value is None:
            raise here.corrupt(f"the reassembly section has {len(maps)} maps for {len(types)} super types")
        read_back = read_map(kind, *next_value, here)
        assert isinstance(read_back, RecordMap)
        maps.append(read_back)
    if next(values, None) is not None:
        raise here.corrupt("the reassembly section has more values than maps")
    return tuple(types), root, tuple(maps)


def _values(section: bytes, *, name: str, offset: int) -> Iterator[tuple[Type, bytes | None]]:
    rows: Rows
    for rows in read(io.BytesIO(section), name=name, offset=offset):
        for row, kind in enumerate(rows.kinds.tolist()):
            yield rows.types[kind], rows.body(row)


def _is_super_type(kind: Type, body: bytes | None, name: str, offset: int) -> bool:
    record = plain(kind)
    if not isinstance(record, Record):
        raise corrupt(name, offset, f"a super type <{type_text(kind)}>, which is no record")
    return not body or Cursor(body, name=name, offset=offset).value() is None
