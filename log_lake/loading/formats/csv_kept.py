"""Keeps the texts that the first reading of a CSV file found, until the types of its columns are known (decision
50).

The text of a small file stays in memory.  The values of a larger one go to a spool on disk: each column of a
block in the type of its values in that block, or as text.  A later block may show that this type is not the
column's, and that texts cannot be restored: a double 5.0 may have been written `5`, which matters if the column
becomes text. Then nothing is kept, and the file is read again.  The same happens for a file with a bad record,
and for one that would take too much of the disk.

The spool does not have the raw text of records.  If a record must be shown as it was written, it is found by
reading the file again.  Called by `csv`.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType

import pyarrow as pa

from lake_core.errors import Unavailable, without_secrets
from log_lake.loading.block import Reading, silent
from log_lake.loading.formats.csv_lines import Dialect
from log_lake.loading.formats.csv_text import Body, CsvText, same_bodies
from log_lake.loading.formats.csv_types import becomes
from log_lake.objects.spool import Spool, SpooledBatch

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Spooled:
    """A block whose records are on disk."""

    schema: pa.Schema
    pieces: list[SpooledBatch]
    first: int
    dialect: Dialect
    read: float
    numbers: list[int] | None


class Kept:
    """Keeps the texts of a file between its two readings: `add` takes those of the first one, then `texts` returns
    them.  Use it as a context, which removes its temporary file."""

    def __init__(self, reading: Reading) -> None:
        self.marks: list[int] = []
        """Marks of all bodies of the first reading, kept or not: the second reading must find the same."""
        self._reading = reading
        self._spool = Spool(f"the load of {reading.file}", packed=True)
        self._again = _Again(reading, self.marks)
        self._texts: list[CsvText] = []
        self._spooled: list[_Spooled] = []
        self._kinds: dict[str, set[pa.DataType]] = {}
        self._bytes = 0
        self._why_not = ""

    def __enter__(self) -> Kept:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._again.close()
        self._spool.close()

    def add(self, text: CsvText, kinds: Mapping[str, pa.DataType]) -> None:
        """Keeps one more text, unless an earlier one could not be kept; `kinds` are the types of the columns so
        far."""
        self.marks.append(text.mark)
        if self._why_not:
            return
        if not self._spooled:
            self._texts.append(text)
            self._bytes += len(text.body()) + int(text.table.nbytes)
            self._bytes += sum(int(values.nbytes) for values in text.values.values())
            if self._bytes <= self._reading.limits.kept_csv:
                return
            self._bytes = 0
        waiting, self._texts = self._texts or [text], []
        for one in waiting:
            self._why_not = self._why_not or self._put(one)
        for name, before in self._kinds.items():
            if any(not becomes(kind, kinds[name]) for kind in before):
                self._why_not = f"the values of field {name!r} are of several types"
        if self._why_not:
            self._spooled.clear()
            self._spool.close()  # the load may need the room
            log.info("%s is read twice: %s", without_secrets(self._reading.file), self._why_not)

    def texts(self) -> Iterator[CsvText] | None:
        """Returns the file's texts in their order; None if they were not all kept.  Raises Unavailable."""
        if self._why_not:
            return None
        return self._read_back() if self._spooled else self._from_memory()

    def _from_memory(self) -> Iterator[CsvText]:
        self._reading.progress(self._reading.file, sum(text.read for text in self._texts))
        yield from self._texts

    def _read_back(self) -> Iterator[CsvText]:
        for one in self._spooled:
            batches = [self._spool.take(piece, one.schema) for piece in one.pieces]
            table = pa.Table.from_batches(batches, one.schema)
            values = {
                name: column
                for name, column in zip(table.schema.names, table.columns, strict=True)
                if name in self._kinds and not pa.types.is_string(column.type)
            }
            body = partial(self._again.body, one.first)
            self._reading.progress(self._reading.file, one.read)
            yield CsvText(table, one.first, one.dialect, one.read, body, numbers=one.numbers, values=values)

    def _put(self, text: CsvText) -> str:
        """Writes the text to disk.  Returns why that is not possible; "" if it is done."""
        if text.rejected:
            return "it has bad records"
        names = text.table.schema.names
        table = pa.table([text.values.get(name, text.table.column(name)) for name in names], names)
        try:
            pieces = [self._spool.put(batch) for batch in table.to_batches()]
        except Unavailable as error:
            return str(error)
        for name, values in text.values.items():
            self._kinds.setdefault(name, set()).add(values.type)
        self._bytes += sum(piece.size for piece in pieces)
        if self._bytes > self._reading.limits.spooled_csv:
            return f"it takes more than {self._reading.limits.spooled_csv >> 20} MiB of the disk"
        self._spooled.append(
            _Spooled(table.schema, pieces, text.first, text.dialect, text.read, text.numbers)
        )
        return ""


class _Again:
    """Reads the bodies of a file again, in order, each up to the one that is asked for."""

    def __init__(self, reading: Reading, marks: Sequence[int]) -> None:
        self._reading, self._marks = replace(reading, progress=silent, tell=silent), marks
        self._bodies: Generator[Body] | None = None
        self._behind = 0

    def body(self, first: int) -> bytes:
        """Returns the bytes of the body whose first line has this number.  Raises InvalidInput if the file has
        changed."""
        if self._bodies is None or first < self._behind:
            self.close()
            self._bodies = same_bodies(self._reading, self._marks)
        for body in self._bodies:
            self._behind = body.first + 1
            if body.first == first:
                return body.data
        raise AssertionError(
            f"no body begins in line {first}"
        )  # each has a mark, and the number is part of it

    def close(self) -> None:
        """Closes the file."""
        if self._bodies is not None:
            self._bodies.close()
            self._bodies = None
