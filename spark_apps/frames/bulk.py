"""A data frame imported in bulk: `pyspark_lake.write(df, "logs", bulk=True)` (docs/loading.md).

Each task sorts the records of its partition and cuts them at the bounds of ranges.  Spark's shuffle brings the
pieces to the tasks that build the ranges (`spark_apps.exchange`).  The frame is evaluated once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from lake_core.store import Address
from log_lake.lake.bulk import Built, Bulk, Divider, whole
from log_lake.objects.write import WrittenObject
from log_lake.workers import SortedPiece, Worker
from spark_apps.datasource.writer import WriteWork, blocks_of
from spark_apps.exchange import exchanged


@dataclass(frozen=True)
class FrameBulk(Bulk):
    """A bulk import of a data frame; `names` are the names of its columns."""

    work: WriteWork
    names: tuple[str, ...]

    def give(
        self, worker: Worker, number: int, unit: Iterable[pa.RecordBatch], bounds: tuple[bytes, ...]
    ) -> Iterator[SortedPiece | Built]:
        """Runs in a task: sorts the records of partition `number` and yields them as pieces.  Then yields the
        objects that the worker itself wrote."""
        named = (batch.rename_columns(self.names) for batch in unit)
        for one in self.pieces(worker, blocks_of(self.work, named), bounds):
            yield one if isinstance(one, SortedPiece) else Built(one)


def imported(frame: Any, work: WriteWork, division: Divider) -> list[WrittenObject]:
    """Imports a frame in bulk, and returns the new objects.  Raises InvalidInput, Unavailable."""
    names = tuple(frame.columns)
    numbered = frame.toDF(*(f"c{number}" for number in range(len(names))))  # else Spark takes a.b for a in b
    importing = FrameBulk(work.config, work.job, work, names)
    bounds = division.known
    give = partial(_partition, importing, bounds or ())
    store = Address(work.store)
    return whole(exchanged(numbered, give, importing, store=store, divide=division, bounds=bounds))


def _partition(
    importing: FrameBulk,
    bounds: tuple[bytes, ...],
    worker: Worker,
    number: int,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[tuple[int, SortedPiece | Built]]:
    """Runs in a task: yields the pieces and results of the partition."""
    for one in importing.give(worker, number, batches, bounds):
        yield number, one
