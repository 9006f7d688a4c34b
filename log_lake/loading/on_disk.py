"""Sorts more records than memory holds: sorted runs wait on disk, and are merged into one.

The builder of a load adds sorted tables.  Each becomes a run: pieces of some hundred kilobytes in a `Spool`, an
unnamed file that the system removes when the process ends.  `merged` reads all runs at once, a few pieces of each.
It gives the records by key, and records of equal keys by arrival.  If there are too many runs to be open at once,
they are merged into one, so memory stays within bounds for any number of records (decision 306).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import chain

import pyarrow as pa

from lake_core.keys import PoolKey
from lake_core.schemas import Rule
from lake_core.schemas.hidden import user_fields
from lake_core.schemas.limits import Fields, leaves
from lake_core.schemas.schema import unite_schemas
from lake_core.values.types import is_json
from log_lake.columns.cast import cast_table
from log_lake.columns.keys import key_at
from log_lake.combine.combine import combine_stream
from log_lake.loading.block import WIDE, most_absent
from log_lake.objects.merge import ClosedStream, merge
from log_lake.objects.spool import Spool, SpooledBatch
from log_lake.objects.weight import Sizes

MOST_RUNS = 64
"""The most runs that one merge reads.  More runs need smaller pieces, which costs more than a second pass."""

LEAST_RUNS = 4
"""A merge reads at least this many runs, even if their pieces together exceed their share of the memory."""

MIN_PIECE = 16 << 10
MAX_PIECE = 1 << 20
"""The most bytes of a piece, whatever the memory.  Each piece costs as much as some hundred records."""

COLUMN_BYTES = 512
"""A piece has at least this many bytes for each column: the description of a column takes 100."""

SHARE = 16
"""The pieces that a merge holds take the memory divided by this.  In all, the merge needs about five times as
much as the pieces."""


@dataclass(frozen=True)
class _Run:
    """One sorted run of records on disk."""

    pieces: tuple[SpooledBatch, ...]
    schema: pa.Schema
    low: bytes
    largest: int
    """The bytes of its largest piece."""


class SortedOnDisk:
    """The records of a load as sorted runs in a spool on disk.  `memory`: the budget in bytes; the runs that are
    open at once get a share of it.

    All methods raise Unavailable if the disk refuses to store the records.
    """

    def __init__(self, spool: Spool, *, key: PoolKey, rule: Rule, memory: int) -> None:
        self.records = 0
        self._spool, self._key, self._rule = spool, key, rule
        self._share = memory // SHARE
        self._schema = pa.schema([])
        self._values = 0
        self._levels: list[list[_Run]] = [[]]
        """Runs that were merged as often as their level says; those of a higher level are older."""

    def takes(self, schema: pa.Schema, records: int) -> bool:
        """Whether records of the schema can be in one run with the records that were added before.

        They cannot if the fields would be too many, a key field would have no order, or more than half of the
        values would be missing (`builder.groups`).
        """
        united = unite_schemas([self._schema, schema])
        if any(is_json(united.field(name)) for name in self._key.names) or Fields().take(user_fields(united)):
            return False
        columns = _columns(united)
        values = self._values + records * _columns(schema)
        missing = (self.records + records) * columns - values
        return missing <= max(values if columns < WIDE else 0, most_absent(columns))

    def add(self, table: pa.Table) -> None:
        """Writes a table as the next run.  Its records must be sorted by key and then by arrival; records of equal
        keys must be combined."""
        self._schema = unite_schemas([self._schema, table.schema])
        self._values += table.num_rows * _columns(table.schema)
        self.records += table.num_rows
        self._levels[0].append(self._stored([table], table.schema))
        for level in range(len(self._levels)):
            if self._is_full(self._levels[level]):
                runs, self._levels[level] = self._levels[level], []
                if level + 1 == len(self._levels):
                    self._levels.append([])
                with closing(self._merge(runs, self._spool.take)) as tables:
                    self._levels[level + 1].append(self._stored(tables, self._united(runs)))

    def merged(self) -> Iterator[pa.Table]:
        """Yields all records in order, combined by the rule; every call begins with the first record."""
        return self._merge(list(chain.from_iterable(reversed(self._levels))), self._spool.read)

    def _is_full(self, runs: list[_Run]) -> bool:
        size = sum(run.largest for run in runs)
        return len(runs) >= MOST_RUNS or (len(runs) >= LEAST_RUNS and size > self._share)

    def _stored(self, tables: Iterator[pa.Table] | list[pa.Table], schema: pa.Schema) -> _Run:
        pieces: list[SpooledBatch] = []
        low, sizes = b"", Sizes.of(schema)
        least = max(MIN_PIECE, min(MAX_PIECE, self._share // MOST_RUNS), COLUMN_BYTES * sizes.leaves)
        for table in tables:
            low = low if pieces else key_at(table, 0, self._key)
            rows = max(1, int(least // sizes.record(table)))
            for at in range(0, table.num_rows, rows):
                batches = table.slice(at, rows).combine_chunks().to_batches()
                pieces += map(self._spool.put, batches)
        return _Run(tuple(pieces), schema, low, max(piece.unpacked for piece in pieces))

    def _united(self, runs: list[_Run]) -> pa.Schema:
        return unite_schemas(run.schema for run in runs)

    def _merge(
        self, runs: list[_Run], take: Callable[[SpooledBatch, pa.Schema], pa.RecordBatch]
    ) -> Generator[pa.Table]:
        schema = self._united(runs)
        streams = []
        for age, run in enumerate(runs):
            at_once = max(1, self._share // (len(runs) * run.largest))
            streams.append(ClosedStream(run.low, age, 0, partial(_read, run, schema, at_once, take)))
        with closing(merge(streams, key=self._key)) as tables:
            yield from combine_stream(tables, self._key, self._rule)


def _read(
    run: _Run, schema: pa.Schema, at_once: int, take: Callable[[SpooledBatch, pa.Schema], pa.RecordBatch]
) -> Iterator[pa.Table]:
    """Yields the records of a run in the schema, `at_once` pieces at a time."""
    for at in range(0, len(run.pieces), at_once):
        batches = [take(piece, run.schema) for piece in run.pieces[at : at + at_once]]
        yield cast_table(pa.Table.from_batches(batches), schema, what="the load").combine_chunks()


def _columns(schema: pa.Schema) -> int:
    return sum(1 for _ in leaves(schema))
