"""Reads Avro.  The schema in the file gives the types (`avro_types`); fastavro reads the values as Python values.

If the file's schema is a union, records of its several types become one table, in the order of the file.  A
value that the lake cannot hold makes a bad record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lake_core.errors import LakeError
from lake_core.schemas.limits import schema_fault
from log_lake.loading.block import Block, Reading, Rejected, batch_rows
from log_lake.loading.formats.avro_container import TooLarge, open_container
from log_lake.loading.formats.avro_types import Form, Types, Unsupported
from log_lake.loading.formats.avro_values import values_of
from log_lake.loading.formats.calendars import Calendar
from log_lake.loading.opening import open_unpacked
from log_lake.loading.typed_records import TypedRecords, united_records, with_declared
from log_lake.texts.typed_json import dumps_shown
from log_lake.texts.value import NotReadable

BATCH_ROWS = 16_384

_NO_VALUES = (NotReadable, pa.ArrowException, ValueError, OverflowError)
"""The exceptions that mean that a value does not fit its type. Arrow raises the last two: for text that is not
UTF-8, and for numbers that are too large."""


def read_avro(reading: Reading) -> Iterator[Block]:
    """Yields the file's records, in blocks.  Raises InvalidInput."""
    with open_unpacked(reading) as file:
        with _naming(reading):
            container = open_container(file)
            calendar = Calendar.of_spark({name.encode(): value for name, value in container.metadata.items()})
            types = Types(calendar)
            forms = types.alternatives(container.schema)
            wire = [types.wrapped(form, number) for number, form in enumerate(forms)]
            schema = wire if isinstance(container.schema, list) else wire[0]
        rows = _Rows(reading, forms, calendar)
        batches = _batches(values_of(container, schema, reading.expansion), rows.most, reading.block_bytes)
        first = 1
        while True:  # bounded by the file
            with _naming(reading):
                values = next(batches, None)
            if values is None:
                return
            yield rows.block(values, first)
            first += len(values)


def _batches(values: Iterable[tuple[Any, int]], most: int, most_bytes: int) -> Iterator[list[dict[str, Any]]]:
    """Yields the values in lists of at most `most`, and of fewer if they have `most_bytes` in binary form."""
    batch: list[dict[str, Any]] = []
    size = 0
    for value, taken in values:
        batch.append(value)
        size += taken
        if len(batch) >= most or size >= most_bytes:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


@contextmanager
def _naming(reading: Reading) -> Iterator[None]:
    """Within the block every exception becomes InvalidInput, because fastavro raises many classes for a damaged
    file."""
    try:
        yield
    except LakeError:
        raise
    except (Unsupported, TooLarge) as error:
        reading.unreadable(0, str(error))
    except EOFError:
        reading.unreadable(0, "not a readable Avro file: it ends within its header")
    except KeyError as error:
        reading.unreadable(0, f"not a readable Avro file: its header or its schema has no {error}")
    except Exception as error:
        reading.unreadable(0, f"not a readable Avro file: {str(error) or type(error).__name__}")


class _Rows:
    """Makes blocks from the values of one file.  Raises InvalidInput if none of the file's types is a
    record."""

    def __init__(self, reading: Reading, forms: list[Form], calendar: Calendar) -> None:
        self._reading, self._forms, self._calendar = reading, forms, calendar
        if not any(form.members for form in forms):
            fault = _fault(forms[0]) if forms else "its schema is a union of no types"
            reading.unreadable(0, f"{fault}; a pool holds records with fields")
        self._faults = ["" if form.members else _fault(form) for form in forms]
        schemas = [pa.schema(form.kind.type) for form in forms if form.members]
        for schema in schemas:
            if fault := schema_fault(schema):
                reading.unreadable(0, fault)
        self.most = min(batch_rows(schema, BATCH_ROWS) for schema in schemas)

    def block(self, values: list[dict[str, Any]], first: int) -> Block:
        """Returns the values as a block of records; `first` is the number that the first of them has in the
        file."""
        rows: list[list[int]] = [[] for _ in self._forms]
        rejected: list[Rejected] = []
        for at, value in enumerate(values):
            number = int(next(iter(value))[1:])
            if self._faults[number]:
                rejected.append(self._reading.reject(first + at, self._faults[number], None))
            else:
                rows[number].append(at)
        parts: list[_Part] = []
        for number, (form, chosen) in enumerate(zip(self._forms, rows, strict=True)):
            if chosen:
                records = [values[at][f"f{number}"] for at in chosen]
                part, bad = _part(form, records, chosen)
                rejected += [
                    self._reading.reject(first + chosen[at], why, _raw(form, records[at])) for at, why in bad
                ]
                parts.append(part)
        united = self._united(parts)
        numbers = np.sort(np.concatenate([part.rows for part in parts])) if parts else np.arange(0)
        return Block(
            united.table,
            tuple(sorted(rejected, key=lambda one: one.line)),
            locate=lambda row: (first + int(numbers[row]), united.text(row)),
            faults=united.faults,
        )

    def _united(self, parts: list[_Part]) -> TypedRecords:
        """Returns all records, in the order of the file."""
        typed = [with_declared(self._calendar.rebased(part.table), self._reading) for part in parts]
        if len(typed) <= 1:
            return typed[0] if typed else TypedRecords(pa.table({}))
        order = np.argsort(np.concatenate([part.rows for part in parts]), kind="stable")
        return united_records(typed, order, what=self._reading.file)


@dataclass(frozen=True)
class _Part:
    """The records of one type, and where in the block they were."""

    table: pa.Table
    rows: np.ndarray[Any, np.dtype[np.int64]]


def _fault(form: Form) -> str:
    """Returns why values of the form are not records."""
    if pa.types.is_null(form.kind.type):
        return "a value that is null, and no record"
    is_record = isinstance(form.wire, dict) and form.wire["type"] == "record"
    return "its records have no fields" if is_record else f"its values are no records, but {_said(form)}"


def _said(form: Form) -> str:
    return "JSON" if form.kind.metadata else f"of type {form.kind.type}"


def _part(form: Form, records: list[Any], rows: list[int]) -> tuple[_Part, list[tuple[int, str]]]:
    """Returns the records as a table without those that have a bad value, and the reasons for these by their
    number."""
    bad: dict[int, str] = {}
    try:
        return _Part(_table(form, records), np.array(rows, np.int64)), []
    except _NO_VALUES:  # one of them, or several: each value is tried alone
        for name, member in _columns(form):
            for at, record in enumerate(records):
                if why := _why_not(member, record[name[0]]):
                    bad.setdefault(at, f"field {name[1]!r}: {why}")
        if not bad:
            raise
    good = [at for at in range(len(records)) if at not in bad]
    table = _table(form, [records[at] for at in good])
    return _Part(table, np.array([rows[at] for at in good], np.int64)), sorted(bad.items())


def _columns(form: Form) -> list[tuple[tuple[str, str], Form]]:
    """Returns for each field of a record the name by which fastavro reads it, its own name, and its form."""
    return [((f"f{at}", name), member) for at, (name, member) in enumerate(form.members)]


def _table(form: Form, records: list[Any]) -> pa.Table:
    columns = [
        pa.array([member.stored(record[name]) for record in records], member.kind.type)
        for (name, _), member in _columns(form)
    ]
    return pa.table(columns, schema=pa.schema(form.kind.type))


def _why_not(form: Form, value: Any) -> str:
    """Returns why the value does not fit its type; "" if it fits."""
    try:
        pa.array([form.stored(value)], form.kind.type)
    except NotReadable as error:
        return str(error)
    except UnicodeError:
        return "not UTF-8"
    except _NO_VALUES as error:
        return str(error)
    return ""


def _raw(form: Form, record: Any) -> str:
    """Returns a bad record as JSON.  A value that has no text is shown as the file has it."""
    shown: dict[str, Any] = {}
    for (name, own), member in _columns(form):
        try:
            shown[own] = member.shown(record[name])
        except NotReadable:
            shown[own] = repr(record[name])
    return dumps_shown(shown)
