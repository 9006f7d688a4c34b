"""Decodes very small objects one after another, and orders their records by one sort.

A stream of a merge costs about a millisecond, whatever its size: for its thread, its batches, its bounds.  A
pool with a thousand loads of ten records would spend its time on that.  So very small objects that follow each
other by age become one stream.  It reads them all when the merge reaches the first of them, and sorts their
records once.  A few stored bytes may expand to many decoded ones.  If the records take more memory than a
stream may have, the objects are merged like others, one stream each.

`small_clusters_joined` does the same for objects that share no key: neighbours become one cluster.  The first
clusters stay alone, so that a reader who wants few records reads few objects.

Called by `scan` (decision 336).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby

import pyarrow as pa

from lake_core.history import Reference
from lake_core.keys import PoolKey
from log_lake.columns.owned import owned
from log_lake.objects.merge import ClosedStream, in_order
from log_lake.objects.weight import Sizes
from log_lake.reading.limits import ScanLimits
from log_lake.reading.merge.clusters import Cluster

READERS = 8
"""Threads that read objects of a store side by side: each waits for its requests."""

LEAST = 3
"""The least number of tiny neighbours that share a stream; with fewer, a stream for each costs no more."""

Read = Callable[[Reference], Iterator[pa.Table]]
"""A function that yields the records of one reference, with all columns that order them."""


@dataclass(frozen=True)
class Gathering:
    """Makes one stream of very small references.

    `schema`: the columns of the merge, with those of `hidden.ORDER` if `has_sequence`.  `most_bytes`: how many
    decoded bytes the stream may hold.  `instead`: a function that merges references whose records take more.
    """

    read: Read
    key: PoolKey
    schema: pa.Schema
    has_sequence: bool
    most_bytes: int
    batch_bytes: int
    instead: Callable[[Sequence[Reference]], Iterator[pa.Table]]

    def stream(self, group: Sequence[Reference]) -> ClosedStream:
        """Returns the records of references, which must be given by age, as one stream."""
        first = group[0]
        return ClosedStream(
            min(r.low for r in group),
            first.seq,
            first.ordinal,
            lambda: self._records(group),
            self.has_sequence,
        )

    def _records(self, group: Sequence[Reference]) -> Iterator[pa.Table]:
        tables: list[pa.Table] = []
        size = 0
        threads = ThreadPoolExecutor(READERS)
        try:
            for table in _read_all(self.read, group, threads):
                tables.append(owned(table))
                size += table.nbytes
                if size > self.most_bytes:
                    break
            else:
                yield from self._sorted(tables, threads)
                return
        finally:  # if the reader stops early too: objects that were not begun are not read
            threads.shutdown(cancel_futures=True)
        del tables, table
        yield from self.instead(group)

    def _sorted(self, tables: list[pa.Table], threads: Executor) -> Iterator[pa.Table]:
        """Yields the records in order, about a batch at a time; `tables` must come by age."""
        whole = [table for table in tables if table.num_rows]
        if not whole:
            return
        for table in in_order(
            whole, self.key, threads, self.schema, self.batch_bytes, has_sequence=self.has_sequence
        ):
            rows = max(1, int(self.batch_bytes // Sizes.of(table.schema).record(table)))
            for start in range(0, table.num_rows, rows):
                yield table.slice(start, rows)


def _read_all(read: Read, group: Sequence[Reference], threads: Executor) -> Iterator[pa.Table]:
    """Yields the tables of the references, in this order.  Inlined objects need no request, and so no
    thread."""
    for is_inlined, references in groupby(group, key=lambda r: bool(r.data)):
        if is_inlined:
            for reference in references:
                yield from read(reference)
            continue
        for first, rest in threads.map(lambda reference: _begun(read(reference)), references):
            if first is not None:
                yield first
                yield from rest


def _begun(tables: Iterator[pa.Table]) -> tuple[pa.Table | None, Iterator[pa.Table]]:
    return next(tables, None), tables


def is_tiny(reference: Reference, limits: ScanLimits) -> bool:
    """Whether the object is so small that a stream of its own costs more than its records."""
    return reference.size <= limits.max_tiny_bytes and reference.records <= limits.max_tiny_records


def tiny_runs(by_age: Iterable[Reference], limits: ScanLimits) -> Iterator[list[Reference]]:
    """Yields the references in the given order, in groups: tiny neighbours that may be read at once share a group,
    others are alone.

    A group has only references that overlap its first one. So if the reader wants few records, few objects of a
    long chain of neighbours are read.
    """
    run: list[Reference] = []
    size = requests = 0
    for reference in by_age:
        more = not reference.data
        if run and (
            not is_tiny(reference, limits)
            or not is_tiny(run[-1], limits)
            or reference.low > run[0].high
            or reference.high < run[0].low
            or size + reference.size > limits.max_gathered_bytes
            or requests + more > limits.max_gathered
        ):
            yield run
            run, size, requests = [], 0, 0
        run.append(reference)
        size += reference.size
        requests += more
    if run:
        yield run


def small_clusters_joined(clusters: Iterable[Cluster], limits: ScanLimits) -> Iterator[Cluster]:
    """Yields the clusters; neighbours with only very small references are joined, at first few, then more."""
    joined: list[Reference] = []
    size, most = 0, 1
    for cluster in clusters:
        is_small = all(is_tiny(r, limits) for r in cluster)
        more = sum(r.size for r in cluster)
        if joined and (
            not is_small or len(joined) + len(cluster) > most or size + more > limits.max_gathered_bytes
        ):
            yield tuple(joined)
            joined, size = [], 0
            most = min(limits.max_gathered, 2 * most)
        if is_small:
            joined += cluster
            size += more
        else:
            yield cluster
    if joined:
        yield tuple(joined)
