"""Data objects as Parquet files: a group is a row group, and the footer's pair `lake` holds the metadata.

Columns are chosen by exact name.  Called by `objects.read` and `objects.write`.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import pyarrow as pa
import pyarrow.parquet as pq

from lake_core.errors import Corrupt
from lake_core.schemas.schema import stored_schema, with_text_names
from lake_core.store.planned import Range, chunk_range
from log_lake.objects import metadata
from log_lake.objects.checksums import check_tail
from log_lake.objects.column_chunks import check_column_chunks
from log_lake.objects.containers import Footer
from log_lake.objects.containers.parquet_rows import rows_at_once, text_bytes
from log_lake.objects.containers.parquet_tiny import Whole, read_whole
from log_lake.objects.containers.stored_names import fields_of_columns, renamed
from log_lake.objects.weight import Weight, leaves_of, weigh

FOOTER_GROWTH = 3
"""About how many decoded bytes a stored byte of a footer takes."""

BUFFERED_GROUP = 32 << 20
"""Bytes.  In a row group of this size or more, the reader takes columns a part at a time; otherwise it would hold
the whole group (decision 33).  The writer makes such groups of very large records, and of thousands of columns."""

FEW_RECORDS = 2_048
"""At most this many records are decoded by one thread: handing columns to other threads takes three times as long
(decision 336)."""

BUFFERS = 16 << 20
"""The bytes of such parts that a reader holds at a time, for all columns together."""


TEXTS_KEPT = 256
"""For how many pairs of a group and a set of columns a process remembers the longest text, per object."""


@dataclass(frozen=True)
class ParquetFooter(Footer):
    """The footer of a Parquet file, decoded."""

    parquet: pq.FileMetaData = None
    leaves: dict[str, range] = None  # type: ignore[assignment]
    largest_group: int = 0
    fields: dict[str, str] = None  # type: ignore[assignment]
    """The field of each column whose name in the file differs from its field's."""
    texts: dict[tuple[int, tuple[int, ...] | None], int] = field(default_factory=dict)
    """By group and leaf columns: the most bytes of texts that one record can have (`parquet_rows`)."""
    longest: dict[str, int] = field(default_factory=dict)
    """The bytes of the longest text of each column, if the file is tiny and was decoded as a whole."""


def open_parquet(
    file: pa.NativeFile, footer: Footer | None, *, name: str, object_id: str, whole: int
) -> ParquetContainer:
    """Opens an object.  Reads and checks the footer, unless the caller passes one from an earlier reader.

    `whole`: how many decoded bytes of a tiny file the container may keep in memory; with 0 no file is decoded
    as a whole. Raises Corrupt if the object is damaged, is another object, or contradicts itself.
    """
    kept = footer if isinstance(footer, ParquetFooter) else None
    parquet = _opened(file, kept)
    decoded = kept or _footer(parquet, name, object_id)
    if kept is None:
        check_tail(file, decoded.parquet.metadata or {}, decoded.metadata.data_end, name=name)
        if tiny := _whole(file, decoded.parquet, parquet.schema_arrow, whole):
            decoded.longest.update(tiny.longest)
            return ParquetContainer(name, file, parquet, decoded, tiny.records)
        check_column_chunks(decoded.parquet, size=file.size())
    if decoded.largest_group > BUFFERED_GROUP:
        parquet = _opened(file, decoded, buffer_size=max(4 << 10, BUFFERS // decoded.parquet.num_columns))
    return ParquetContainer(name, file, parquet, decoded)


def _whole(file: pa.NativeFile, footer: pq.FileMetaData, schema: pa.Schema, most_bytes: int) -> Whole | None:
    """Decodes a tiny file as a whole. Returns None if the file is not tiny, or is damaged; a later read reports
    the damage if it needs the damaged columns."""
    try:
        return read_whole(file, footer, schema, most_bytes) if most_bytes else None
    except Exception:  # Arrow raises classes of many families
        return None


def _opened(file: pa.NativeFile, footer: ParquetFooter | None, *, buffer_size: int = 0) -> pq.ParquetFile:
    stored = footer.parquet if footer else None
    return pq.ParquetFile(
        file, metadata=stored, pre_buffer=False, buffer_size=buffer_size, page_checksum_verification=True
    )


def _footer(parquet: pq.ParquetFile, name: str, object_id: str) -> ParquetFooter:
    file_metadata = parquet.metadata
    described = metadata.decode((file_metadata.metadata or {}).get(metadata.KEY), name=name)
    columns = with_text_names(parquet.schema_arrow).remove_metadata()
    fields = fields_of_columns(columns.names, described.stored_as, name=name)
    schema = renamed(columns, fields)
    groups = [file_metadata.row_group(number) for number in range(file_metadata.num_row_groups)]
    described.check(object_id, records=file_metadata.num_rows, groups=len(groups), name=name)
    rows = tuple(group.num_rows for group in groups)
    if sum(rows) != described.records:  # Arrow takes memory for as many as a group has
        raise Corrupt(f"{name}: damaged: its row groups have {sum(rows)} records, not {described.records}")
    return ParquetFooter(
        described,
        schema,
        rows,
        FOOTER_GROWTH * int(file_metadata.serialized_size),
        parquet=file_metadata,
        leaves=leaves_of(schema),
        largest_group=max((group.total_byte_size for group in groups), default=0),
        fields=fields,
    )


@dataclass(frozen=True)
class ParquetContainer:
    """A Parquet object, open for reading."""

    name: str
    file: pa.NativeFile
    parquet: pq.ParquetFile
    footer: ParquetFooter
    whole: pa.Table | None = None
    """All records of a tiny file, if it was decoded when it was opened and its records take few bytes
    (`parquet_tiny`)."""

    @property
    def written_schema(self) -> pa.Schema:
        """Returns all columns as they were written, from Arrow's own copy of the schema: Parquet renames the
        elements of lists."""
        stored = (self.footer.parquet.metadata or {}).get(b"ARROW:schema")
        if stored is None:
            return self.footer.schema
        columns = stored_schema(base64.b64decode(stored)).remove_metadata()
        return renamed(columns, self.footer.fields)

    def weigh(self, groups: Sequence[int], columns: Sequence[str] | None) -> Weight:
        """Returns the decoded bytes of the groups in these columns, according to the footer."""
        leaves = self.footer.leaves
        if columns is not None and leaves.keys() <= set(columns):
            columns = None
        return weigh(self.footer.parquet, groups, None if columns is None else self._chunks(columns))

    def _chunks(self, columns: Sequence[str]) -> list[int]:
        return [leaf for name in columns for leaf in self.footer.leaves.get(name, ())]

    def batches(
        self, groups: Sequence[int], columns: Sequence[str] | None, *, rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Yields the records of the groups in batches, decoded on all cores."""
        present = None if columns is None else [c for c in columns if c in self.footer.leaves]
        all_of_them = present is None or len(present) == len(self.footer.schema)
        stored_as, fields = self.footer.metadata.stored_as, self.footer.fields
        names = None if all_of_them else [stored_as.get(name, name) for name in present or ()]
        missing = sum(self.footer.group_rows[group] for group in groups)
        if self.whole is not None:
            yield from self._of_whole(groups, present, rows)
            return
        rows = min(rows_at_once(self._text_bytes(group, present), rows) for group in groups)
        select: bool | None = None  # as the first batch tells
        for batch in self.parquet.iter_batches(
            batch_size=rows, row_groups=list(groups), columns=names, use_threads=missing > FEW_RECORDS
        ):
            if fields:
                batch = batch.rename_columns([fields.get(name, name) for name in batch.schema.names])
            # Parquet takes a dotted name for a path too: `id` would bring `id.orig_h` along
            if select is None:
                select = present is not None and batch.schema.names != present
            missing -= batch.num_rows
            yield batch.select(present) if select else batch
        if missing > 0:  # Arrow skips a page whose header says that it is of an unknown kind, or empty
            raise Corrupt(f"{self.name}: damaged: {missing} records of the row groups {groups} are missing")

    def _of_whole(
        self, groups: Sequence[int], present: Sequence[str] | None, rows: int
    ) -> Iterator[pa.RecordBatch]:
        assert self.whole is not None
        whole = self.whole.rename_columns(self.footer.schema.names)
        whole = whole if present is None else whole.select(present)
        begins = [0, *accumulate(self.footer.group_rows)]
        for group in groups:
            part = whole.slice(begins[group], self.footer.group_rows[group])
            yield from part.to_batches(max_chunksize=rows)

    def _text_bytes(self, group: int, columns: Sequence[str] | None) -> int:
        """Returns the most bytes of texts in one record of a group, computed from its dictionaries."""
        if self.footer.longest:
            return sum(self.footer.longest.values())
        leaves = None if columns is None else tuple(self._chunks(columns))
        size = self.footer.texts.get((group, leaves))
        if size is None:
            size = text_bytes(self.footer.parquet, self.file, group, leaves)
            if len(self.footer.texts) < TEXTS_KEPT:
                self.footer.texts[group, leaves] = size
        return size

    def begin(self, group: int) -> int:
        """Returns the position in the file at which the row group begins."""
        return chunk_range(self.footer.parquet.row_group(group).column(0)).begin

    def ranges(self, groups: Sequence[int], columns: Sequence[str] | None) -> Iterator[Range]:
        """Yields the byte ranges of the groups' column chunks.  Groups so large that their columns are read in
        parts are left out."""
        leaves = range(self.footer.parquet.num_columns) if columns is None else self._chunks(columns)
        for number in groups:
            group = self.footer.parquet.row_group(number)
            if self.footer.largest_group <= BUFFERED_GROUP or group.total_byte_size <= BUFFERED_GROUP:
                yield from (chunk_range(group.column(leaf)) for leaf in leaves)

    def column_sizes(self, names: Collection[str]) -> dict[str, int]:
        """Returns the stored bytes of each of the columns that the object has."""
        leaves = {name: leaves for name, leaves in self.footer.leaves.items() if name in names}
        sizes = dict.fromkeys(leaves, 0)
        for index in range(self.footer.parquet.num_row_groups):
            group = self.footer.parquet.row_group(index)
            for name, of_name in leaves.items():
                sizes[name] += sum(group.column(leaf).total_compressed_size for leaf in of_name)
        return sizes

    def close(self) -> None:
        """Closes pyarrow's reader of the file."""
        with contextlib.suppress(Exception):
            self.parquet.close()
