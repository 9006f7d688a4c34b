"""A load that commits nothing: `lake load --dry-run` (decision 35).

A dry run reads the files, sorts their records and writes them as objects, in the same memory as a load.  But
the objects are discarded (`Nowhere`), and `Branch` only checks whether its draft could be committed on the
newest state.  So a dry run refuses whatever a load would refuse.  It keeps only counts, the united schema, the
first records and the first bad records.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import pyarrow as pa

from lake_core.naming import NOKEY
from lake_core.schemas.schema import unite_schemas
from lake_core.store import Store
from log_lake.columns.cast import cast_table
from log_lake.loading.block import Block, Rejected
from log_lake.loading.builder import ObjectBuilder

SHOWN = 5
"""The most records that a dry run shows."""

SHOWN_REJECTED = 20
"""The most bad records that a dry run shows."""


@dataclass(frozen=True)
class Preview:
    """The result of a dry run.

    `schema` and `sample` describe the records that have the key; `rejected` are the first of the `bad` records.
    `fails`: a load would fail, because of its bad records.  `why`: the error message if there are too many bad
    records. `changes`: a line for each field that the load would change.
    """

    schema: pa.Schema
    sample: pa.Table
    records: int
    nokey: int
    bad: int
    rejected: tuple[Rejected, ...]
    fails: bool = False
    why: str = ""
    notes: tuple[str, ...] = field(default=())
    changes: tuple[str, ...] = ()


class Nowhere:
    """A store like the given one, except that it discards new objects."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    @contextmanager
    def open_output(self, name: str) -> Iterator[BinaryIO]:
        """Opens a file that discards what is written to it."""
        with open(os.devnull, "wb") as nothing:
            yield nothing


@dataclass
class PreviewBuilder(ObjectBuilder):
    """Builds objects on a store that discards them, and collects what a dry run shows."""

    _schema: pa.Schema = field(default_factory=lambda: pa.schema([]))
    _sample: list[pa.Table] = field(default_factory=list)
    _rejected: list[Rejected] = field(default_factory=list)
    _records: int = 0
    _nokey: int = 0
    _bad: int = 0

    def add(self, block: Block) -> None:
        """Adds a block of records, as a load does."""
        self._bad += len(block.rejected)
        self._rejected += block.rejected[: SHOWN_REJECTED - len(self._rejected)]
        super().add(block)

    def _gather(self, sub: str, table: pa.Table) -> None:
        if sub == NOKEY:
            self._nokey += table.num_rows
        elif not sub:
            self._schema = unite_schemas([self._schema, table.schema])
            if self._records < SHOWN and table.num_rows:
                self._sample.append(table.slice(0, SHOWN - self._records))
            self._records += table.num_rows
        super()._gather(sub, table)

    def preview(self) -> Preview:
        """Returns what a dry run shows; call it after all blocks were added."""
        sample = [cast_table(table, self._schema, what="the load") for table in self._sample]
        return Preview(
            self._schema,
            pa.concat_tables([self._schema.empty_table(), *sample]),
            self._records,
            self._nokey,
            self._bad,
            tuple(self._rejected),
        )
