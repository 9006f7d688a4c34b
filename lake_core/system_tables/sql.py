"""SQL over pools, by DuckDB.

Tables are named as a user writes a revision: `"flights"`, `"flights@12"`, `"flights@main"`, and the lake's own
tables `"flights:objects"`, `"lake:pools"`.  A pool is offered as an Arrow data set whose scan is the pool's scan in
key order; DuckDB asks for columns and a filter, so only those columns are read.  SQL sees a field of JSON as JSON,
with times, dates and bytes as strings.

SQL does not tell upper from lower case and has no empty names.  DuckDB calls a second field of one name `A_1`, and
a field without a name `v4`, by its position.  In an answer a second column `a` is called `a_1`, as DuckDB calls it
in a subquery.  A pool that never had a record has the fields of its key, and no rows.

An answer that is not read to its end keeps DuckDB's threads and objects alive.  When the program ends, answers that
are still open are closed before Python unloads its modules.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, ClassVar

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from lake_core.errors import InvalidInput, LakeError, NotFound
from lake_core.lake import Lake
from lake_core.lake.by_type import Records, records_of
from lake_core.lake.pool import Pool
from lake_core.lake.view import FAIL, View
from lake_core.system_tables.answers import carried, distinct, marked
from lake_core.system_tables.engine import SQL_LIMITS, SqlLimits, connected
from lake_core.system_tables.names import is_system_table, pool_and_shape, system_table
from lake_core.system_tables.statement import table_names
from lake_core.values.nested import Items, mask_of
from lake_core.values.typed_json import shown, typed_inside
from lake_core.values.types import is_json


def query(
    lake: Lake,
    sql: str,
    *,
    on_missing: str = FAIL,
    lease: bool = False,
    reads: Callable[[Pool, View], None] = lambda pool, view: None,
    limits: SqlLimits = SQL_LIMITS,
) -> pa.RecordBatchReader:
    """The result of one SELECT, as a stream; JSON columns carry the lake's mark.

    `on_missing`: as in `Pool.at`.  `lease`: hold a lease on each pool until the answer is read to its end.  `reads`
    is called with each pool that is read, and its view, before the first record.  Raises
    InvalidInput (SQL that cannot be run), NotFound (pool, revision) and what scans raise.
    """
    question = _Question(on_missing, lease=lease, reads=reads, limits=limits)
    try:
        reader, schema = question.ask(lake, sql)
    except BaseException:
        question.close()
        raise
    return pa.RecordBatchReader.from_batches(schema, question.answer(reader, schema))


class _Question:
    """One connection, from the SQL to the last record of the answer."""

    _open: ClassVar[set[_Question]] = set()

    def __init__(
        self, on_missing: str, *, lease: bool, reads: Callable[[Pool, View], None], limits: SqlLimits
    ) -> None:
        self._on_missing, self._lease, self._reads = on_missing, lease, reads
        self._leases, self._engine = ExitStack(), ExitStack()
        self._connection: duckdb.DuckDBPyConnection | None = self._engine.enter_context(connected(limits))
        self._raised: list[LakeError] = []
        self._reader: pa.RecordBatchReader | None = None
        self._open.add(self)

    def ask(self, lake: Lake, sql: str) -> tuple[pa.RecordBatchReader, pa.Schema]:
        """The answer as DuckDB streams it, and the schema with the lake's marks."""
        connection = self._connection
        assert connection is not None
        try:
            names, defined = table_names(connection, sql)
            for name in sorted(names):
                try:
                    connection.register(name, self._table(lake, name))
                except NotFound:
                    if name not in defined:
                        raise
            relation = carried(connection.sql(sql))
            self._reader = reader = relation.to_arrow_reader(65_536)
            fields = zip(reader.schema, distinct(relation.columns), relation.types, strict=True)
            return reader, pa.schema([marked(field.with_name(name), kind) for field, name, kind in fields])
        except duckdb.Error as error:
            raise self._as_ours(error) from error

    def answer(self, reader: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The records of the answer."""
        try:
            for batch in reader:
                columns = [
                    typed_inside(pa.chunked_array([column]), field).combine_chunks()
                    for field, column in zip(schema, batch.columns, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            raise self._as_ours(error) from error
        finally:
            self.close()

    def _table(self, lake: Lake, name: str) -> Any:
        if is_system_table(name):
            return system_table(lake, name)
        table_name, shape = pool_and_shape(name)
        pool_name, _, revision = table_name.partition("@")
        pool, at = lake.pool(pool_name), revision or "main"
        if self._lease:
            leased = pool.leased(at, why="lake query", on_missing=self._on_missing)
            view = self._leases.enter_context(leased)
        else:
            view = pool.at(at, on_missing=self._on_missing)
        self._reads(pool, view)
        return PoolDataset(view, records_of(view, shape), self._raised)

    def _as_ours(self, error: Exception) -> LakeError:
        if self._raised:
            return self._raised[0]
        if isinstance(error, duckdb.PermissionException):
            return InvalidInput(
                f"query: SQL reads pools and no files; load the file first: {_message(error)}"
            )
        if isinstance(error, duckdb.OutOfMemoryException):
            first, _, _ = str(error).partition("\n")
            return InvalidInput(f"query: {first.strip()}: select fewer columns, or a smaller range of keys")
        return InvalidInput(f"query: {_message(error)}")

    def close(self) -> None:
        """Stop, and free everything; may be called again."""
        connection, self._connection = self._connection, None  # held by no caller from now on
        if connection is None:
            return
        self._open.discard(self)
        connection.interrupt()
        if self._reader is not None:
            self._reader.close()
        self._engine.close()
        self._leases.close()

    @classmethod
    def close_all(cls) -> None:
        """At the end of the program: close the answers that were not read to their end."""
        for question in list(cls._open):
            question.close()


atexit.register(_Question.close_all)


def _message(error: Exception) -> str:
    """The message on one line, then DuckDB's lines that show the position with a caret."""
    message, line, position = str(error).partition("\nLINE ")
    shown = "\n" + (line + position).strip("\n") if line else ""
    return " ".join(message.split()) + shown


class PoolDataset(ds.InMemoryDataset):  # type: ignore[misc]
    """A view as an Arrow data set.  For each scan DuckDB asks it for a scanner with columns and a filter."""

    def __init__(self, view: View, records: Records, raised: list[LakeError]) -> None:
        self._view, self._records, self._raised = view, records, raised
        self._stored = records.schema
        if not self._stored.names:
            self._stored = pa.schema(
                [(name, pa.null()) for name in view.key.names] or [("record", pa.null())]
            )
        super().__init__(pa.Table.from_batches([], _offered(self._stored)))

    def scanner(
        self, columns: list[str] | None = None, filter: pc.Expression | None = None, **_: Any
    ) -> _Scanner:
        """The records, projected and filtered.  DuckDB relies on both being done exactly."""
        names = self.schema.names if columns is None else list(columns)
        needed = names if filter is None else self._needed(names, filter)
        schema = pa.schema([self.schema.field(name) for name in names])
        return _Scanner(schema, self._batches(needed, names, filter, schema))

    def _needed(self, names: list[str], filter: pc.Expression) -> list[str]:
        """The columns to read: those that DuckDB wants, and those that the filter names.

        An expression gives its text and not its fields, so the fields are guessed from the text.  If the filter
        cannot be evaluated with the guess, all columns are read.
        """
        filter_text = str(filter)
        needed = names + [name for name in self._stored.names if name not in names and name in filter_text]
        try:
            pa.schema([self._stored.field(name) for name in needed]).empty_table().filter(filter)
        except (pa.ArrowException, KeyError):
            return self._stored.names
        return needed

    def _batches(
        self, needed: list[str], names: list[str], filter: pc.Expression | None, schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        if not self._view.references:
            return
        try:
            for table in self._view.run(self._records.plan(self._view, needed)):
                records = self._records.shown(table, needed)
                texts = _for_sql(records, wrapped=False)  # the filter compares with these texts
                kept = texts if filter is None else texts.filter(filter)
                fields = pa.schema([self._stored.field(name) for name in names])
                yield from _for_sql(kept.select(names), fields, wrapped=True).to_batches()
        except LakeError as error:
            self._raised.append(error)  # DuckDB would turn it into one of its own
            raise


@dataclass(frozen=True)
class _Scanner:
    """The part of a scanner that DuckDB calls.

    Arrow's own scanner reads ahead in a thread that no caller can wait for.  If the program ends while that thread
    is in Python, the program is aborted.  DuckDB's threads have ended when its connection is closed.
    """

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]

    def to_reader(self) -> pa.RecordBatchReader:
        """The records; called once."""
        return pa.RecordBatchReader.from_batches(self.schema, self.batches)


def _for_sql(table: pa.Table, fields: pa.Schema | None = None, *, wrapped: bool) -> pa.Table:
    """The records as SQL sees them: JSON as people read it, durations as text.  `fields` are the stored ones.

    `wrapped` is for a second pass, in which JSON gets Arrow's type for it.
    """
    stored = table.schema if fields is None else fields
    columns = [
        pa.chunked_array(
            [_sql_array(chunk, field, wrapped=wrapped) for chunk in column.chunks],
            _offered_type(field, wrapped=wrapped),
        )
        for field, column in zip(stored, table.columns, strict=True)
    ]
    schema = pa.schema([pa.field(f.name, _offered_type(f, wrapped=wrapped)) for f in stored])
    return pa.table(columns, schema=schema) if columns else table


def _sql_array(array: pa.Array, field: pa.Field, *, wrapped: bool) -> pa.Array:
    """One column as SQL sees it.  Arrow's cast would break records with null members inside of records (Arrow
    26)."""
    kind, target = field.type, _offered_type(field, wrapped=wrapped)
    if is_json(field):
        if wrapped:
            return pa.ExtensionArray.from_storage(pa.json_(), array)
        return shown(pa.chunked_array([array]), field).combine_chunks()
    if pa.types.is_duration(kind):
        if wrapped:
            return array
        return pc.utf8_trim(shown(pa.chunked_array([array]), field), '"').combine_chunks()
    if not pa.types.is_nested(kind):
        return array
    if pa.types.is_struct(kind):
        members = [_sql_array(a, f, wrapped=wrapped) for a, f in zip(array.flatten(), kind, strict=True)]
        return pa.StructArray.from_arrays(members, fields=list(target), mask=mask_of(array))
    items = Items(array)
    if pa.types.is_map(kind):
        keys, values = items.entries
        return items.as_maps(
            _sql_array(keys, kind.key_field, wrapped=wrapped),
            _sql_array(values, kind.item_field, wrapped=wrapped),
            target,
        )
    return items.as_lists(_sql_array(items.values, kind.value_field, wrapped=wrapped), target)


def _offered(schema: pa.Schema) -> pa.Schema:
    """The schema for DuckDB: JSON, at any depth, has Arrow's JSON type; other marks are left out."""
    return pa.schema([pa.field(f.name, _offered_type(f)) for f in schema])


def _offered_type(field: pa.Field, *, wrapped: bool = True) -> pa.DataType:
    kind = field.type
    if is_json(field):
        return pa.json_() if wrapped else pa.string()
    if pa.types.is_duration(kind):  # DuckDB's intervals have microseconds, and months
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _offered_type(f, wrapped=wrapped)) for f in kind])
    if pa.types.is_map(kind):
        key = pa.field("key", _offered_type(kind.key_field, wrapped=wrapped), nullable=False)
        return pa.map_(key, _offered_type(kind.item_field, wrapped=wrapped))
    if pa.types.is_list(kind):
        return pa.list_(_offered_type(kind.value_field, wrapped=wrapped))
    return kind
