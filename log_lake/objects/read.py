"""Reads one data object: the records of a key range, in order, a batch at a time.

The first keys in the footer show which groups a range can touch.  Binary search cuts the first and the last
group, because the records are sorted.  Columns are chosen by exact name.

Every object is opened here.  Its bytes are on the store, or, if it is inlined, in the reference that names it
(`Located`).
"""

from __future__ import annotations

import contextlib
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from lake_core import naming
from lake_core.errors import Corrupt, InvalidInput
from lake_core.ids import without_home
from lake_core.keys import KeyRange, PoolKey
from lake_core.records.decoding import decoding
from lake_core.store import Store, planned
from log_lake.columns.keys import key_at
from log_lake.objects.checksums import Sums
from log_lake.objects.containers import Container, Footer
from log_lake.objects.containers.parquet import open_parquet
from log_lake.objects.containers.parquet_rows import keys_of
from log_lake.objects.containers.zng import open_zng
from log_lake.objects.containers.zst import open_zst
from log_lake.objects.failures import missing, reading, unreadable
from log_lake.objects.footers import footers
from log_lake.objects.located import Locates
from log_lake.objects.metadata import ObjectMetadata
from log_lake.objects.weight import Sizes, Weight

SELECTIONS_KEPT = 16
"""For how many sets of columns a process remembers the bytes of a record, per footer."""

BATCH_ROWS, BATCH_BYTES = 65_536, 8 << 20
"""The records and the decoded bytes of a batch, unless the caller sets others."""

FIRST_ROWS = 256
"""How many records a reader decodes first. Their size decides how many it then decodes at a time (decision
33)."""

LARGE_RECORD = 512
"""Bytes.  A batch of larger records gets half as many bytes, because Arrow copies their texts once more to order
them."""

KEYS_FIRST = 3
"""If a read needs at least this many columns per key field, it finds a narrow range by reading the keys first
(decision 122)."""

FIRST_RECORD = 4 << 10
"""Bytes.  If a batch may have only few bytes, a record counts as at least this large until one was decoded."""


class Open(Protocol):
    """A function that opens an object of one format.  `footer` is what an earlier reader read; None: read it now.

    `whole`: a tiny Parquet object is decoded as a whole when it is opened, and its records stay in memory if
    they take at most this many bytes; with 0 it is not decoded as a whole.  Other formats ignore it.
    """

    def __call__(
        self, file: pa.NativeFile, footer: Footer | None, /, *, name: str, object_id: str, whole: int
    ) -> Container:
        """Raises Corrupt, and what Arrow raises."""
        ...


OPEN: dict[str, Open] = {naming.PARQUET: open_parquet, naming.ZNG: open_zng, naming.ZST: open_zst}

SPELLED = {naming.PARQUET: "Parquet", naming.ZNG: "ZNG", naming.ZST: "ZST"}


class DataObject:
    """An open data object; close it, or use it as a context."""

    def __init__(
        self,
        store: Store,
        *,
        pool_id: str,
        object_id: str,
        size: int | None = None,
        share: int = BATCH_BYTES,
        data: bytes = b"",
        whole: int = BATCH_BYTES,
    ) -> None:
        """`size`: the bytes that the object has according to a reference. `share`: the most bytes per request to a
        server.

        `data`: the bytes of an inlined object. `whole`: the most decoded bytes of a tiny object that may be
        kept.

        Raises ObjectMissing, Corrupt (also if the object has another size), Unavailable.
        """
        self.name = naming.data_object(pool_id, object_id)
        self.format = naming.format_of(object_id)
        self._where = store.uri
        self._is_inlined = bool(data)
        kept = footers(store).get(self.name)
        try:
            self._file = pa.BufferReader(data) if data else store.open_input(self.name, size=size)
            if kept is None:
                planned.fetch_tail(self._file, share=share)
        except FileNotFoundError as error:
            raise missing(store.uri, self.name, object_id=object_id) from error
        try:
            with reading(f"{store.uri}/{self.name}", f"not a readable {SPELLED[self.format]} file"):
                if size is not None and self._file.size() != size:
                    raise Corrupt(
                        f"{store.uri}/{self.name}: this object has {self._file.size():,} bytes; {size:,} are on "
                        "record: it is damaged, or another object took its name"
                    )
                self._container = OPEN[self.format](
                    self._file, kept, name=self.name, object_id=without_home(object_id), whole=whole
                )
        except BaseException as error:
            self._forget_damaged(error)
            self._file.close()
            raise
        self._footer = self._container.footer
        if kept is None:
            footers(store).keep(self.name, self._footer)
        self.metadata: ObjectMetadata = self._footer.metadata
        self.schema: pa.Schema = self._footer.schema
        """All columns, the hidden ones too."""

    @classmethod
    def at(
        cls, store: Store, one: Locates, *, pool_id: str, share: int = BATCH_BYTES, whole: int = BATCH_BYTES
    ) -> DataObject:
        """Opens the object that a reference or an action names.  Raises what the constructor raises."""
        return cls(
            store,
            pool_id=pool_id,
            object_id=one.object,
            size=one.size,
            share=share,
            data=one.data,
            whole=whole,
        )

    def __enter__(self) -> DataObject:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _forget_damaged(self, error: BaseException) -> None:
        """Drops the object from caches, so that the next reader asks the store, which may then have a whole
        object."""
        if isinstance(error, Corrupt):
            planned.forget(self._file)

    def close(self) -> None:
        """Closes the file.  A failure is ignored, because the records were read without error."""
        for file in (self._container, self._file):
            with contextlib.suppress(Exception):
                file.close()

    def batches(
        self,
        key_range: KeyRange,
        *,
        key: PoolKey,
        columns: list[str] | None,
        batch_rows: int = BATCH_ROWS,
        batch_bytes: int = BATCH_BYTES,
        record_bytes: int = 0,
        groups: list[int] | None = None,
        took: float = 0.0,
    ) -> Iterator[pa.RecordBatch]:
        """Yields the records with keys in `key_range`, sorted.  If the range cuts the object, `columns` must
        contain the key fields.

        A batch has at most `batch_rows` records and about `batch_bytes`, or one record that is larger; each
        record counts as `record_bytes` at least.  `groups` are some of `self.groups(key_range)`; None: all of
        them. `took`: decoded bytes of a record of this object, as measured before; 0 if none was decoded yet.

        Raises Corrupt if the file cannot be decoded.
        """
        inside = self.inside(key_range)
        size = BatchSize(batch_rows, batch_bytes, record_bytes)
        groups = self.groups(key_range) if groups is None else groups
        try:
            planned.plan(self._file, lambda: self._container.ranges(groups, columns), share=batch_bytes)
            if len(groups) == 1 and self._is_narrow(key_range, key, columns):
                cuts = self._few(groups[0], key_range, key, columns, size)
            else:
                decoded = self._decoded(groups, columns, size, took)
                cuts = (_cut(batch, key_range, key, inside=inside) for batch in decoded)
            for cut in cuts:
                if self._is_inlined:  # few bytes; the writer of a crafted entry makes its checksum, too
                    cut.validate(full=True)  # Arrow's reader does not check UTF-8
                if cut.num_rows:
                    yield cut
        except InvalidInput as error:  # a value that no object has; who reads it cannot correct that
            planned.forget(self._file)
            raise Corrupt(f"{self.name}: {error}") from error
        except FileNotFoundError as error:
            raise missing(self._where, self.name) from error
        except Exception as error:  # Arrow raises classes of many families
            failure = unreadable(self.name, "cannot be decoded", error)
            self._forget_damaged(failure)
            raise failure from (None if failure is error else error)

    def _is_narrow(self, key_range: KeyRange, key: PoolKey, columns: list[str] | None) -> bool:
        """Whether to read the keys of a group before its other columns."""
        width = len(self.schema) if columns is None else len(columns)
        return (
            self.format == naming.PARQUET  # other formats decode whole records
            and bool(key.fields)
            and not self.inside(key_range)
            and width >= KEYS_FIRST * len(key.fields)
        )

    def _few(
        self, group: int, key_range: KeyRange, key: PoolKey, columns: list[str] | None, size: BatchSize
    ) -> Iterator[pa.RecordBatch]:
        """Yields the records of the range in one group. The group's keys are read first; they show where the range
        ends, and no record after that is decoded."""
        batches = self._container.batches([group], list(key.names), rows=self._rows(group))
        keys = keys_of(batches, what=f"{self.name}: the keys of group {group}")
        begin = rows_below(keys, key_range.low, key)
        end = keys.num_rows if key_range.high is None else _end(keys, key_range.high, key, begin)
        if begin >= end:
            return
        stored = self.schema.names
        names = stored if columns is None else [name for name in columns if name in stored]
        others = [name for name in names if name not in keys.schema.names]
        at = 0
        for batch in self._decoded([group], others, size, 0.0, until=end) if others else keys.to_batches():
            first = min(batch.num_rows, max(0, begin - at))
            cut = batch.slice(first, max(0, end - at - first))
            if cut.num_rows:
                yield _beside(keys.slice(at + first, cut.num_rows), cut, names)
            at += batch.num_rows

    def _decoded(
        self,
        groups: list[int],
        columns: list[str] | None,
        size: BatchSize,
        took: float,
        *,
        until: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yields batches of the groups. The decoded bytes of one batch decide how many records the next one has.

        `until`: reads only the first records of one group, this many.
        """
        sizes: Sizes | None = None
        at = 0
        while at < len(groups):
            planned.release(self._file, lambda: self._container.begin(groups[at]))  # noqa: B023
            weighed = self._container.weigh(groups[at : at + 1], columns).record
            first = size.first_rows(weighed)
            if not took and self._rows(groups[at]) > first:
                took = self._tried(groups[at], first, columns)
            rows = size.rows(max(took, weighed))
            run = [groups[at]]
            run_rows = self._rows(groups[at])
            if took:
                for group in groups[at + 1 :]:
                    if run_rows + self._rows(group) > rows:
                        break
                    run.append(group)
                    run_rows += self._rows(group)
                rows = -(
                    -run_rows // -(-run_rows // rows)
                )  # even batches: a merge is as slow as the smallest makes it
            else:
                rows = first
            rows = rows if until is None else min(rows, until)
            gathered: list[pa.RecordBatch] = []
            decoded = 0
            for batch in self._container.batches(run, columns, rows=rows):
                sizes = sizes or Sizes.of(batch.schema)
                took = sizes.record(batch)
                gathered.append(batch)
                decoded += batch.num_rows
                if until is not None and decoded >= until:
                    yield _joined(gathered)
                    return
                if sum(b.num_rows for b in gathered) + rows > size.rows(took):
                    yield _joined(gathered)
                    gathered = []
            if gathered:
                yield _joined(gathered)
            at += len(run)

    def _tried(self, group: int, rows: int, names: list[str] | None) -> float:
        """Returns the decoded bytes of a record: as measured before, otherwise measured by decoding the first
        records of the group.

        Decoding these records twice costs less than decoding the whole group so few at a time (decision 50).
        """
        columns = None if names is None else tuple(names)
        measured = self._footer.took
        took = measured.get(columns)
        if took is None:
            batch = next(self._container.batches([group], names, rows=rows))
            took = Sizes.of(batch.schema).record(batch)
            if len(measured) < SELECTIONS_KEPT:
                measured[columns] = took
        return took

    def _rows(self, group: int) -> int:
        return self._footer.group_rows[group]

    @property
    def size(self) -> int:
        """The number of bytes of the object."""
        with reading(self.name):
            return int(self._file.size())

    @property
    def written_schema(self) -> pa.Schema:
        """The schema of all columns as they were written."""
        with decoding(self.name, "its schema cannot be read"):
            return self._container.written_schema

    @property
    def group_rows(self) -> Sequence[int]:
        """The number of records of each group."""
        return self._footer.group_rows

    @property
    def group_offsets(self) -> list[int]:
        """The position in the file at which each group begins."""
        return [self._container.begin(group) for group in range(len(self.group_rows))]

    def column_sizes(self, names: Collection[str]) -> dict[str, int]:
        """Returns the stored bytes of each of the columns that the object has."""
        return self._container.column_sizes(names)

    def check_bytes(self) -> None:
        """Reads all data and compares their checksums.  Raises Corrupt, Unavailable."""
        footer = self.metadata
        with reading(self.name):
            Sums(footer.blocks, footer.data_end, 0, footer.data_end).check_open(self._file, name=self.name)

    def weigh(self, key_range: KeyRange, columns: list[str]) -> Weight:
        """Returns the decoded bytes of the groups that the range touches, according to the footer."""
        return self._container.weigh(self.groups(key_range), columns)

    def rows(self, key_range: KeyRange) -> int:
        """Returns the number of records in the groups that the range touches: at least as many as in the range."""
        return sum(self._rows(group) for group in self.groups(key_range))

    def sums(self, key_range: KeyRange) -> Sums:
        """Returns the checksums of the groups that the range touches."""
        touched, begin, end = self.groups(key_range), 0, self.metadata.data_end
        if touched:
            begin = self._container.begin(touched[0])
            if touched[-1] + 1 < len(self.metadata.groups):
                end = self._container.begin(touched[-1] + 1)
        return Sums(self.metadata.blocks, self.metadata.data_end, begin, end if touched else begin)

    def inside(self, key_range: KeyRange) -> bool:
        """Whether the whole object lies in the range."""
        return key_range.low <= self.metadata.low and (
            key_range.high is None or self.metadata.high <= key_range.high
        )

    def groups(self, key_range: KeyRange) -> list[int]:
        """Returns the numbers of the groups in which keys of the range may be."""
        firsts = self.metadata.groups
        # the group before the first one at or above `low` may still hold keys from `low` on
        begin = max(0, bisect_left(firsts, key_range.low) - 1)
        end = len(firsts) if key_range.high is None else bisect_left(firsts, key_range.high)
        return list(range(begin, max(begin, end)))


@dataclass(frozen=True)
class BatchSize:
    """How many records and bytes a batch may have; each record counts as at least `least` bytes."""

    most_rows: int
    most_bytes: int
    least: int

    def rows(self, record: float) -> int:
        """Returns how many records of `record` bytes fit into a batch."""
        size = max(1.0, record, self.least)
        most = self.most_bytes / 2 if size > LARGE_RECORD else self.most_bytes
        return max(1, min(self.most_rows, int(most / size)))

    def first_rows(self, record: float) -> int:
        """Returns how many records the first batch may have.

        So far only the footer shows how large a record is, and it may state too little.
        """
        return min(self.rows(record), FIRST_ROWS, max(1, self.most_bytes // FIRST_RECORD))


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _beside(keys: pa.Table, others: pa.RecordBatch, names: list[str]) -> pa.RecordBatch:
    """Returns the records with the columns `names`, in this order, joined from their keys and their other
    columns."""
    (keys_batch,) = keys.to_batches()
    sources = [others if name in others.schema.names else keys_batch for name in names]
    fields = [source.schema.field(name) for source, name in zip(sources, names, strict=True)]
    return pa.RecordBatch.from_arrays(
        [source.column(name) for source, name in zip(sources, names, strict=True)],
        schema=pa.schema(fields, metadata=others.schema.metadata),
    )


def _cut(batch: pa.RecordBatch, key_range: KeyRange, key: PoolKey, *, inside: bool) -> pa.RecordBatch:
    if inside or not key.fields:
        return batch
    begin = rows_below(batch, key_range.low, key)
    end = batch.num_rows if key_range.high is None else rows_below(batch, key_range.high, key)
    return batch if begin == 0 and end == batch.num_rows else batch.slice(begin, max(0, end - begin))


class _Keys:
    """The encoded keys of a batch as a sequence, made one at a time for bisection."""

    def __init__(self, batch: pa.RecordBatch | pa.Table, key: PoolKey) -> None:
        self._batch, self._key = batch, key

    def __len__(self) -> int:
        return int(self._batch.num_rows)

    def __getitem__(self, row: int) -> bytes:
        return key_at(self._batch, row, self._key)


def _end(records: pa.Table, limit: bytes, key: PoolKey, begin: int) -> int:
    """Like `rows_below`, but searches near `begin` first, because most ranges are narrow."""
    keys, ahead = _Keys(records, key), 2
    while begin + ahead <= len(keys) and keys[begin + ahead - 1] < limit:
        ahead *= 4
    return bisect_left(keys, limit, begin, min(len(keys), begin + ahead))


def rows_below(records: pa.RecordBatch | pa.Table, limit: bytes, key: PoolKey) -> int:
    """Returns how many records of the sorted batch have keys below `limit`."""
    return bisect_left(_Keys(records, key), limit)
