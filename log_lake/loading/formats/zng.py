"""Reads ZNG, ZST and their text form.  Values have types of their own; their records become blocks of one schema
each.

`read_values` gives the values unchanged, for programs that need no schema.  `read_zng` makes blocks of them:
types become Arrow's (decision 62).  Neighbouring records of several types become one table in the order of the
file, as records of several files do (decision 51).

A bad record is a top-level value that is null or not a record, one whose bytes do not fit its type, or one that
Arrow or the lake cannot express.  If the file itself is damaged (its types, lengths, segments), no single record
can be named.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from lake_core.errors import Corrupt, InvalidInput
from lake_core.schemas.limits import schema_fault
from log_lake.columns.arrays import Ints
from log_lake.loading.block import MAX_CELLS, QUARANTINE, Block, Reading, Rejected
from log_lake.loading.opening import line_blocks, open_seekable, open_text, open_unpacked
from log_lake.loading.typed_records import TypedRecords, united_records, with_declared
from log_lake.objects.containers.rows import row_columns
from log_lake.objects.normalize import check_types
from log_lake.objects.storable import unstorable
from log_lake.zng.arrow_types import arrow_schema
from log_lake.zng.columns import arrow_values
from log_lake.zng.reader import read
from log_lake.zng.rows import Batch, Rows, batch_of, rows_of
from log_lake.zng.text import type_text
from log_lake.zng.text_reader import read_text
from log_lake.zng.to_arrow import record_batches
from log_lake.zng.types import Array, Map, Named, Record, Type, plain
from log_lake.zng.wire import ADVICE
from log_lake.zng.zst.reader import ZstFile

VALUE_FORMATS = ("zng", "zst", "zson")

UNITED = "records of several types have one type together, with the fields of all"
"""The note that is shown for records that lose types of their own."""

_MOST_BAD = 1_000
"""The most values of one group whose bytes do not fit their types. Finding each of them takes a search, so with
more the whole file counts as damaged."""

_PART_ROWS = 131_072
"""How many values are examined together: a group of very small ones may have millions, all of them bad."""

_REMEMBERED = 10_000
"""How many types have their faults remembered. A file may have any number of streams with types of their
own."""


def read_values(reading: Reading, format: str) -> Iterator[Rows | Batch]:
    """Yields the values of a file in groups. Raises InvalidInput for a damaged file, and for text that is not a
    value."""
    rejected: list[Rejected] = []
    for values, _ in _groups(reading, format, rejected):
        yield values


def _groups(
    reading: Reading, format: str, rejected: list[Rejected]
) -> Iterator[tuple[Rows | Batch, Ints | None]]:
    """Yields the values in groups, with the lines of text in which they begin; text that is not a value is
    rejected."""

    def bad(line: int, why: str, text: bytes) -> None:
        rejected.append(reading.reject(line, why, text))

    with _naming():
        if format == "zst":
            with open_seekable(reading) as file:
                batches = ZstFile.open(pa.PythonFile(file, mode="r"), name=reading.file).batches()
                yield from ((batch, None) for batch in batches)
        elif format == "zng":
            with open_unpacked(reading) as file:
                yield from ((rows, None) for rows in read(file, name=reading.file))
        else:
            with open_text(reading) as file:
                lines = (line for _, block in line_blocks(file, reading) for line in io.BytesIO(block))
                yield from read_text(lines, name=reading.file, bad=bad)


@contextmanager
def _naming() -> Iterator[None]:
    """Within the block, Corrupt becomes InvalidInput, because the file is not an object of the lake."""
    try:
        yield
    except Corrupt as error:
        raise InvalidInput(str(error)) from error


def read_zng(reading: Reading, format: str) -> Iterator[Block]:
    """Yields the file's records, in blocks.  Raises InvalidInput."""
    blocks = _Blocks(reading)
    rejected: list[Rejected] = []
    first = 1
    for values, lines in _groups(reading, format, rejected):
        numbers = np.arange(first, first + len(values)) if lines is None else lines
        first += len(values)
        for low, high in _parts(values):
            block = blocks.block(values.part(low, high), numbers[low:high])
            if rejected:
                both = sorted([*rejected, *block.rejected], key=lambda one: one.line)
                block = replace(block, rejected=tuple(both))
                rejected.clear()
            yield block
    if rejected:
        yield Block(pa.table({}), tuple(rejected))


def _parts(values: Rows | Batch) -> Iterator[tuple[int, int]]:
    """Yields ranges of rows whose tables stay within the limit of values, absent ones included."""
    stack = [(0, len(values))]
    elements = _elements(values)
    while stack:  # ends: each round gives a part, or halves one
        low, high = stack.pop()
        nodes = sum(values.types[kind].nodes for kind in np.unique(values.kinds[low:high]).tolist())
        most = (high - low) * nodes + int(elements[low:high].sum())
        if high - low > 1 and (most > MAX_CELLS or high - low > _PART_ROWS):
            middle = (low + high) // 2
            stack += [(middle, high), (low, middle)]
        else:
            yield low, high


def _elements(values: Rows | Batch) -> Ints:
    """Returns for each row how many values its arrays and maps may have at most, absent ones included."""
    elements = np.zeros(len(values), np.int64)
    for number in np.unique(values.kinds).tolist():
        if inside := _inside(values.types[number]):
            rows = np.flatnonzero(values.kinds == number)
            if isinstance(values, Rows):  # an element takes a byte at least
                elements[rows] = np.maximum(values.length[rows], 0) * inside
            else:
                total = arrow_values(values.types[number], values.columns[number])
                elements[rows] = total // len(rows)
    return elements


def _inside(kind: Type) -> int:
    """Returns the number of nodes of the largest type that a value may have many times, in its arrays and
    maps."""
    if isinstance(kind, (Array, Map)):
        return sum(child.nodes for child in kind.children)
    return max(map(_inside, kind.children), default=0)


@dataclass
class _Blocks:
    """Makes blocks from the values of one file."""

    reading: Reading
    _faults: dict[Type, str] = field(default_factory=dict)
    _good: int = 0
    """The number of types that were found to have no fault."""

    def block(self, values: Rows | Batch, numbers: Ints) -> Block:
        """Returns the records of the values as a block, with the bad ones; `numbers` has the number of each value
        in the file."""
        bad = self._of_bad_types(values)
        tables = None if bad else _tables_or_none(values)
        if tables is not None:
            united = self._united(*tables)
            return Block(
                united.table,
                faults=united.faults,
                locate=lambda at: (int(numbers[at]), _located(values, at)),
                rows=self._rows(values, tables[0]),
            )
        rows = values if isinstance(values, Rows) else rows_of(values)
        good = np.delete(np.arange(len(rows)), list(bad))
        rejected = [self._rejected(rows, at, why, numbers) for at, why in sorted(bad.items())]
        while (tables := _tables_or_none(rows.chosen(good))) is None:  # ends: each round finds a bad row
            more = self._bad_values(rows, good, numbers)
            if not more:
                self.reading.unreadable(int(numbers[good[0]]), _why_not(rows.chosen(good), self.reading.file))
            rejected += [self._rejected(rows, at, why, numbers) for at, why in more.items()]
            good = np.setdiff1d(good, list(more))
        united = self._united(*tables)
        return Block(
            united.table,
            tuple(sorted(rejected, key=lambda one: one.line)),
            faults=united.faults,
            locate=lambda at: (int(numbers[good[at]]), _located(rows, int(good[at]))),
            rows=self._rows(rows.chosen(good), tables[0]),
        )

    def _rows(self, values: Rows | Batch, tables: list[pa.Table]) -> pa.Table | None:
        """Returns the records in their original form; null for a record with a field for which the pool declares a
        type."""
        if not self.reading.keeps_rows:
            return None
        whole = row_columns(values)
        changed = [
            number
            for number, table in zip(np.unique(values.kinds).tolist(), tables, strict=True)
            if any(table.schema.get_field_index(name) >= 0 for name in self.reading.declared)
        ]
        if not changed:
            return whole
        kept = pa.array(np.arange(len(values)), mask=np.isin(values.kinds, changed))
        return whole.take(kept)

    def _rejected(self, rows: Rows, at: int, why: str, numbers: Ints) -> Rejected:
        return self.reading.reject(int(numbers[at]), why, _located(rows, at))

    def _of_bad_types(self, values: Rows | Batch) -> dict[int, str]:
        """Returns, with the reason, the rows that are null or have a type that the lake cannot store."""
        bad: dict[int, str] = {}
        for number in np.unique(values.kinds).tolist():
            if fault := self._fault(values.types[number]):
                bad |= dict.fromkeys(np.flatnonzero(values.kinds == number).tolist(), fault)
        if isinstance(values, Rows):
            for at in np.flatnonzero(values.length < 0).tolist():
                bad.setdefault(at, "a top-level null: a pool holds records")
        return bad

    def _fault(self, kind: Type) -> str:
        if kind not in self._faults:
            if len(self._faults) >= _REMEMBERED:
                self._faults.clear()
            self._faults[kind] = self._fault_of(kind)
            self._good += not self._faults[kind]
            if self._good == 2 and not self.reading.keeps_rows:
                self.reading.tell(UNITED)
        return self._faults[kind]

    def _fault_of(self, kind: Type) -> str:
        if not isinstance(plain(kind), Record):
            return f"a value of type {_shown(kind)}, which is no record; make it a field of one"
        if isinstance(kind, Named) and not self.reading.keeps_rows:
            self.reading.tell(f"the name of the record type {kind.name!r} is not kept")
        try:
            schema = arrow_schema(kind)
            if fault := schema_fault(schema):
                return fault
            check_types(schema)
        except InvalidInput as error:
            return str(error)
        return ""

    def _bad_values(self, rows: Rows, good: Ints, numbers: Ints) -> dict[int, str]:
        """Returns the rows with bytes that do not fit their types, found by halving; only the first one if that
        already fails the load."""
        bad: dict[int, str] = {}
        stack = [good]
        while stack:  # ends: each round halves a part, or names a row
            part = stack.pop()
            why = _why_not(rows.chosen(part), self.reading.file)
            if why and len(part) > 1:
                middle = len(part) // 2
                stack += [part[middle:], part[:middle]]
            elif why:
                bad[int(part[0])] = why
                if self.reading.bad_records != QUARANTINE:
                    break
                if len(bad) > _MOST_BAD:
                    self.reading.unreadable(
                        int(numbers[part[0]]), f"{why}; so are {_MOST_BAD:,} before it{ADVICE}"
                    )
        return bad

    def _united(self, tables: list[pa.Table], batch: Batch) -> TypedRecords:
        """Returns all records as one table, in the order of the file."""
        typed = [with_declared(self._with_a_field(table), self.reading) for table in tables]
        if len(typed) <= 1:
            return typed[0] if typed else TypedRecords(self._with_a_field(pa.table({})))
        return united_records(typed, batch.order, what=self.reading.file)

    def _with_a_field(self, table: pa.Table) -> pa.Table:
        """Returns the table.  If it has no field, it gets the fields of the key, all null."""
        if table.num_columns or not self.reading.key:
            return table
        return pa.table({name: pa.nulls(table.num_rows) for name in self.reading.key})


def _located(values: Rows | Batch, at: int) -> bytes:
    """Returns the text of the record in row `at`."""
    part = values.part(at, at + 1)
    return _text(part if isinstance(part, Rows) else rows_of(part)).encode(errors="surrogateescape")


def _tables(values: Rows | Batch) -> tuple[list[pa.Table], Batch]:
    """Returns a table for each type that occurs.  Raises Corrupt and InvalidInput for values that Arrow cannot
    express."""
    batch = values if isinstance(values, Batch) else batch_of(values)
    present = np.unique(batch.kinds)
    kinds = np.searchsorted(present, batch.kinds)
    batch = Batch([batch.types[at] for at in present], kinds, [batch.columns[at] for at in present])
    if len(values) == 1 and (size := arrow_values(batch.types[0], batch.columns[0])) > MAX_CELLS:
        raise InvalidInput(
            f"{size:,} values, absent ones counted; a record may have at most {MAX_CELLS:,}: every field of "
            "records in an array becomes a column"
        )
    tables = [pa.Table.from_batches([records]) for records in record_batches(batch)]
    if len(tables) > 1:  # before uniting makes one value of what may have to be looked into
        _check_storable(tables)
    return tables, batch


def _check_storable(tables: list[pa.Table]) -> None:
    for table in tables:
        for one, column in zip(table.schema, table.columns, strict=True):
            for why in unstorable(column, one).values():
                raise InvalidInput(f"field {one.name!r}: {why}")


def _tables_or_none(values: Rows | Batch) -> tuple[list[pa.Table], Batch] | None:
    try:
        return _tables(values)
    except (Corrupt, InvalidInput):
        return None


def _why_not(rows: Rows, file: str) -> str:
    """Returns why Arrow cannot express the values; "" if it can."""
    try:
        tables, _ = _tables(rows)
        if len(tables) == 1:
            _check_storable(tables)
    except (Corrupt, InvalidInput) as error:
        return str(error).removeprefix(f"{file}: ").removesuffix(ADVICE)
    return ""


def _text(rows: Rows) -> str:
    """Returns the first value as readable text, or its bytes if they do not fit its type."""
    try:
        return rows.text(0)
    except Corrupt:
        return f"0x{(rows.body(0) or b'').hex()} ({_shown(rows.types[int(rows.kinds[0])])})"


def _shown(kind: Type) -> str:
    text = type_text(kind)
    return text if len(text) <= 100 else text[:97] + "..."
