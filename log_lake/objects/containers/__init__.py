"""The containers of data objects: files of groups of sorted records, in one of several formats.

`DataObject` (`objects.read`) knows key ranges, batches and checks; `ObjectWriter` (`objects.write`) knows order
and statistics.  This room has the differences between formats: how to find a footer, how to decode groups to
Arrow batches, and how to write tables as groups.  Each format is a module with a class for an opened file
(`Container`) and one for a file that is written (`Sink`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from lake_core.store.planned import Range
from log_lake.objects.metadata import ObjectMetadata
from log_lake.objects.weight import Weight


@dataclass(frozen=True)
class Footer:
    """The decoded end of a data object.  Objects never change, so a process may cache it."""

    metadata: ObjectMetadata
    schema: pa.Schema
    """All columns, the hidden ones too."""
    group_rows: tuple[int, ...]
    """The number of records of each group."""
    size: int
    """About how many bytes the decoded footer takes."""
    took: dict[tuple[str, ...] | None, float] = field(default_factory=dict)
    """How many decoded bytes a record takes, as earlier reads have measured, for each set of columns read; the key
    None means all columns."""


class Container(Protocol):
    """A data object's file, open for reading.  Its methods may raise whatever Arrow raises (`objects.failures`)."""

    @property
    def footer(self) -> Footer:
        """The decoded footer of the file."""
        ...

    @property
    def written_schema(self) -> pa.Schema:
        """Returns the schema of all columns as they were written."""
        ...

    def weigh(self, groups: Sequence[int], columns: Sequence[str] | None) -> Weight:
        """Returns the decoded bytes of the groups in these columns; None means all columns."""
        ...

    def batches(
        self, groups: Sequence[int], columns: Sequence[str] | None, *, rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Yields the records of the groups, about `rows` at a time, with those of the `columns` that the object
        has."""
        ...

    def begin(self, group: int) -> int:
        """Returns the position in the file at which the group begins."""
        ...

    def ranges(self, groups: Sequence[int], columns: Sequence[str] | None) -> Iterator[Range]:
        """Yields the byte ranges that `batches` of these groups will read, if planning them is worthwhile."""
        ...

    def column_sizes(self, names: Collection[str]) -> dict[str, int]:
        """Returns the stored bytes of each of these columns that the object has."""
        ...

    def close(self) -> None:
        """Closes what this object opened itself; the caller closes the file."""
        ...


class Sink(Protocol):
    """A data object's file, open for writing.  The caller must close it even if it did not finish it."""

    def write(self, table: pa.Table, groups: Sequence[int]) -> None:
        """Writes the next records as groups of these sizes, at least one."""
        ...

    def finish(self, described: ObjectMetadata) -> None:
        """Ends the file with the metadata, after adding the checksums to it."""
        ...

    def close(self) -> None:
        """Closes what this object opened itself; the caller closes the file."""
        ...
