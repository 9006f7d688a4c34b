"""Reading one data object: its records of a key range, in order, a batch at a time.

The footer's first keys say which row groups a range can touch; the ends are cut by binary search, since the
records are sorted.  Columns are chosen by exact name.  Objects never change, so the footers last read are kept, a
few for each store: reading one again costs more than the record that is wanted.
"""

from __future__ import annotations

import threading
import weakref
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from lake_core import naming
from lake_core.errors import Corrupt, ObjectMissing
from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.columns import key_at
from lake_core.objects import metadata
from lake_core.objects.metadata import ObjectMetadata
from lake_core.store import Store

FOOTERS_KEPT = 64
"""Footers that a process keeps for a store; one of a large object takes a few megabytes."""


@dataclass(frozen=True)
class Footer:
    """What a data object says of itself."""

    parquet: pq.FileMetaData
    metadata: ObjectMetadata
    schema: pa.Schema


class Footers:
    """The footers used last, by the objects' names; safe to use from several threads."""

    def __init__(self) -> None:
        self._held: OrderedDict[str, Footer] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, name: str) -> Footer | None:
        """The footer, if it is kept."""
        with self._lock:
            found = self._held.get(name)
            if found is not None:
                self._held.move_to_end(name)
            return found

    def keep(self, name: str, footer: Footer) -> Footer:
        """Keeps it; the one that was used least recently goes."""
        with self._lock:
            self._held[name] = footer
            if len(self._held) > FOOTERS_KEPT:
                self._held.popitem(last=False)
        return footer


_FOOTERS: weakref.WeakKeyDictionary[Store, Footers] = weakref.WeakKeyDictionary()


def footers(store: Store) -> Footers:
    """The footers kept for the store."""
    return _FOOTERS.setdefault(store, Footers())


def _footer(parquet: pq.ParquetFile, name: str) -> Footer:
    described = metadata.decode((parquet.metadata.metadata or {}).get(metadata.KEY), name=name)
    return Footer(parquet.metadata, described, parquet.schema_arrow.remove_metadata())


class DataObject:
    """An open data object; close it, or use it as a context."""

    def __init__(self, store: Store, *, pool: str, object_id: str) -> None:
        self.name = naming.data_object(pool, object_id)
        try:
            self._file = store.open_input(self.name)
        except FileNotFoundError as error:
            raise ObjectMissing(f"{store.uri}/{self.name}: the data object is missing") from error
        known = footers(store).get(self.name)
        try:
            footer = known.parquet if known else None
            self._parquet = pq.ParquetFile(self._file, metadata=footer, pre_buffer=False)
            if known is None:
                known = footers(store).keep(self.name, _footer(self._parquet, self.name))
        except (pa.ArrowInvalid, OSError) as error:
            self._file.close()
            raise Corrupt(f"{store.uri}/{self.name}: not a readable Parquet file: {error}") from error
        except BaseException:
            self._file.close()
            raise
        self.metadata: ObjectMetadata = known.metadata
        self.schema: pa.Schema = known.schema
        """All columns, the hidden ones too."""

    def __enter__(self) -> DataObject:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the file back."""
        self._parquet.close()
        self._file.close()

    def batches(
        self, span: KeyRange, *, key: PoolKey, columns: list[str] | None, batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Records with keys in `span`, sorted; `columns` must contain the key fields where `span` cuts.

        Raises Corrupt where the file cannot be decoded.
        """
        wanted = None if columns is None else [c for c in columns if self.schema.get_field_index(c) >= 0]
        try:
            for batch in self._parquet.iter_batches(
                batch_size=batch_rows, row_groups=self._groups(span), columns=wanted, use_threads=True
            ):
                # Parquet takes a dotted name for a path too: `id` would bring `id.orig_h` along
                exact = batch if wanted is None else batch.select(wanted)
                cut = _cut(exact, span, key, inside=self.inside(span))
                if cut.num_rows:
                    yield cut
        except (pa.ArrowInvalid, OSError) as error:
            raise Corrupt(f"{self.name}: cannot be decoded: {error}") from error

    def rows(self, span: KeyRange) -> int:
        """At most so many records are in the range: those of the row groups that it touches."""
        return sum(self._parquet.metadata.row_group(group).num_rows for group in self._groups(span))

    def inside(self, span: KeyRange) -> bool:
        """Whether the whole object lies in the range, so that nothing has to be cut."""
        return span.low <= self.metadata.low and (span.high is None or self.metadata.high <= span.high)

    def _groups(self, span: KeyRange) -> list[int]:
        firsts = self.metadata.groups
        # the group before the first one at or above `low` may still hold keys from `low` on
        begin = max(0, bisect_left(firsts, span.low) - 1)
        end = len(firsts) if span.high is None else bisect_left(firsts, span.high)
        return list(range(begin, max(begin, end)))


def _cut(batch: pa.RecordBatch, span: KeyRange, key: PoolKey, *, inside: bool) -> pa.RecordBatch:
    if inside or not key.fields:
        return batch
    begin = rows_below(batch, span.low, key)
    end = batch.num_rows if span.high is None else rows_below(batch, span.high, key)
    return batch if begin == 0 and end == batch.num_rows else batch.slice(begin, max(0, end - begin))


class _Keys:
    """The encoded keys of a batch as a sequence, made one at a time for bisection."""

    def __init__(self, batch: pa.RecordBatch | pa.Table, key: PoolKey) -> None:
        self._batch, self._key = batch, key

    def __len__(self) -> int:
        return int(self._batch.num_rows)

    def __getitem__(self, row: int) -> bytes:
        return key_at(self._batch, row, self._key)


def rows_below(records: pa.RecordBatch | pa.Table, limit: bytes, key: PoolKey) -> int:
    """How many leading records of the sorted batch have keys below `limit`."""
    return bisect_left(_Keys(records, key), limit)
