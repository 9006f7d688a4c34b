"""Runs SQL over pools, by DuckDB.

A statement names tables as a user writes a revision: `"flights"`, `"flights@12"`, `"flights@main"`, and the
lake's own tables `"flights:objects"`, `"lake:pools"`.  A pool is a `PoolDataset`.  Fields whose names are equal
in SQL have other names in statements (`columns`), and their own names in the answer.  A second column `a` of an
answer is named `a_1`, as DuckDB names it in a subquery.  A pool that never had a record has the fields of its
key and no rows.

An answer that is not read to its end keeps DuckDB's threads and objects alive.  When the program ends, answers
that are still open are closed before Python unloads its modules.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, ClassVar

import duckdb
import pyarrow as pa

from lake_core.errors import InvalidInput, LakeError, NotFound
from lake_core.keys.ranges import EVERYTHING
from log_lake.columns.json_text import typed_inside
from log_lake.lake import Lake
from log_lake.lake.by_type import records_of
from log_lake.lake.pool import Pool
from log_lake.lake.view import FAIL, View
from log_lake.system_tables.aggregates import aggregates_of
from log_lake.system_tables.answers import carried, distinct, marked
from log_lake.system_tables.columns import Renamed, as_type, stored_type
from log_lake.system_tables.dataset import PoolDataset
from log_lake.system_tables.ends import End, end_of
from log_lake.system_tables.engine import SQL_LIMITS, SqlLimits, connected
from log_lake.system_tables.from_state import FromState
from log_lake.system_tables.names import is_system_table, pool_and_shape, system_table
from log_lake.system_tables.pool_reads import PoolReads, Reads
from log_lake.system_tables.statement import Statement, parsed
from log_lake.system_tables.stopping import QueryStop
from log_lake.texts.is_text import require_text

log = logging.getLogger(__name__)


def query(
    lake: Lake,
    sql: str,
    *,
    on_missing: str = FAIL,
    lease: bool = False,
    reads: Callable[[Pool, View], None] = lambda pool, view: None,
    limits: SqlLimits = SQL_LIMITS,
    files: Sequence[str] = (),
    stop: QueryStop | None = None,
    time: str = "",
    transaction: str = "",
) -> pa.RecordBatchReader:
    """Returns the result of one SELECT, as a stream; JSON columns have the lake's mark.

    Several pools are read at one moment: the newest, or as they were at `time` (ISO 8601).

    - `transaction`: the id of a transaction over pools; its writes are visible.
    - `on_missing`: as in `Pool.at`.
    - `lease`: keeps a lease on each pool until the answer is read to its end.
    - `reads`: called with each pool that is read, and its view, before the first record.
    - `files`: local files and folders that the statement may read too, as DuckDB reads them: `FROM
      'codes.csv'`.
    - `stop`: ends the query from another thread.

    Raises InvalidInput (SQL that cannot be run, a query that was stopped), NotFound (pool, revision, file) and
    what scans raise.
    """
    require_text(sql, "query", example="'SELECT * FROM logs'")
    check_files(files)
    moment = Reads(time, transaction)
    question = _Question(
        on_missing, lease=lease, reads=reads, limits=limits, files=files, stop=stop or QueryStop()
    )
    try:
        reader, schema = question.ask(lake, sql, moment)
    except BaseException:
        question.close()
        raise
    stored = question.stored(schema)
    return pa.RecordBatchReader.from_batches(stored, question.answer(reader, schema, stored))


def check_files(files: Sequence[str]) -> None:
    """Raises NotFound if one of the files and folders that SQL may read is not on this machine."""
    for name in files:
        if not os.path.exists(name):
            raise NotFound(f"query: there is no file {name!r} on this machine; SQL reads no other files")


class _Question:
    """One query: its connection, from the SQL to the last record of the answer."""

    _open: ClassVar[set[_Question]] = set()

    def __init__(
        self,
        on_missing: str,
        *,
        lease: bool,
        reads: Callable[[Pool, View], None],
        limits: SqlLimits,
        files: Sequence[str],
        stop: QueryStop,
    ) -> None:
        self._on_missing, self._lease, self._reads, self._files = on_missing, lease, reads, files
        self._stop, self._batch_rows = stop, limits.batch_rows
        self._leases, self._engine = ExitStack(), ExitStack()
        self._connection: duckdb.DuckDBPyConnection | None = self._engine.enter_context(
            connected(limits, files=files)
        )
        self._engine.enter_context(stop.interrupting(self._connection.interrupt))
        self._renamed = Renamed()
        self._raised: list[LakeError] = []
        self._reader: pa.RecordBatchReader | None = None
        self._open.add(self)

    def ask(self, lake: Lake, sql: str, moment: Reads) -> tuple[pa.RecordBatchReader, pa.Schema]:
        """Returns the answer as DuckDB streams it, and the schema with the lake's marks."""
        connection = self._connection
        assert connection is not None
        try:
            statement = parsed(connection, sql)
            datasets: dict[str, PoolDataset] = {}
            pools = PoolReads(lake, statement.tables, moment)
            for name in sorted(statement.tables):
                self._stop.check()
                try:
                    table = self._table(pools, name)
                    connection.register(name, table)
                    if isinstance(table, PoolDataset):
                        datasets[name] = table
                except (NotFound, InvalidInput) as error:
                    if self._is_file(name):  # a pool of that name comes first
                        continue
                    if isinstance(error, InvalidInput):
                        raise
                    if name not in statement.defined:
                        raise _with_advice(name, error, sql=sql) from error
            statement.check_columns(self._renamed)
            self._stop.check()
            relation, reader = self._answered(connection, sql, statement, datasets)
            self._reader = reader
            columns = [self._renamed.stored.get(name, name) for name in relation.columns]
            fields = zip(reader.schema, distinct(columns), relation.types, strict=True)
            return reader, pa.schema([marked(field.with_name(name), kind) for field, name, kind in fields])
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            raise self._as_ours(error) from error

    def _answered(
        self,
        connection: duckdb.DuckDBPyConnection,
        sql: str,
        statement: Statement,
        datasets: Mapping[str, PoolDataset],
    ) -> tuple[Any, pa.RecordBatchReader]:
        """Returns the statement's relation and its answer: from the state, from one end of the key, or from all
        records."""
        for dataset in datasets.values() if len(statement.tables) == 1 else ():
            aggregates = aggregates_of(statement.tree, dataset.fields) if dataset.is_united else None
            if aggregates is None:
                continue
            from_state = FromState(connection, dataset, aggregates)
            if statement.explains:
                return _explained(connection, sql, from_state)
            if (answer := self._from_state(connection, sql, from_state)) is not None:
                return answer
        end = None if statement.explains else end_of(statement.tree)
        if end is not None and end.table in datasets:
            return self._at_end(connection, sql, end, datasets[end.table])
        return _asked(connection, sql, self._batch_rows)

    def _from_state(
        self, connection: duckdb.DuckDBPyConnection, sql: str, from_state: FromState
    ) -> tuple[Any, pa.RecordBatchReader] | None:
        """Returns the answer from statistics and the objects whose statistics do not suffice; None if all must be
        read."""
        whole = carried(connection.sql(sql))  # binds, and reads nothing
        columns, types = whole.columns, whole.types  # now, since each look binds again
        try:
            answer = from_state.relation(columns)
            if answer is not None:
                answer = carried(answer)
                if answer.columns == columns and answer.types == types:
                    log.info("query: %s", from_state.division.text)
                    return answer, answer.to_arrow_reader(self._batch_rows)
        except (duckdb.Error, pa.ArrowException):
            if self._raised or self._stop.why:
                raise
        from_state.undo()
        return None

    def _at_end(
        self, connection: duckdb.DuckDBPyConnection, sql: str, end: End, dataset: PoolDataset
    ) -> tuple[Any, pa.RecordBatchReader]:
        """Returns the answer from a range at one end of the key if that suffices, otherwise from all
        records."""
        for key_range in dataset.ranges(end):
            dataset.key_range = key_range
            relation, reader = _asked(connection, sql, self._batch_rows)
            answer = reader.read_all()
            if end.is_whole(answer):
                return relation, answer.to_reader()
        dataset.key_range = EVERYTHING
        return _asked(connection, sql, self._batch_rows)

    def stored(self, schema: pa.Schema) -> pa.Schema:
        """Returns the schema with the own names of fields inside records."""
        names = self._renamed.stored
        return pa.schema([field.with_type(stored_type(field.type, names)) for field in schema])

    def answer(
        self, reader: pa.RecordBatchReader, schema: pa.Schema, stored: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        """Yields the records of the answer in the schema `stored`."""
        try:
            for batch in reader:
                self._stop.check()
                columns = [
                    as_type(typed_inside(pa.chunked_array([column]), field).combine_chunks(), kind)
                    for field, kind, column in zip(schema, stored.types, batch.columns, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=stored)
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            raise self._as_ours(error) from error
        finally:
            self.close()

    def _is_file(self, name: str) -> bool:
        """Whether a table's name is a file that the caller allows, or one in a folder that the caller allows,
        however it is spelled.

        DuckDB opens the file, and resolves its name once more.
        """
        path = os.path.abspath(name)
        for one in self._files:
            given = os.path.abspath(one)
            if path.startswith(os.path.join(given, "")) if os.path.isdir(given) else path == given:
                return True
        return False

    def _table(self, pools: PoolReads, name: str) -> Any:
        pools.check(name)
        if is_system_table(name):
            return system_table(pools.lake, name)
        table, shape = pool_and_shape(name)
        pool, at, newest = pools.place(table)
        if self._lease:
            leased = pool.leased(at, why="lake query", on_missing=self._on_missing, newest=newest)
            view = self._leases.enter_context(leased)
        else:
            view = pool.at(at, on_missing=self._on_missing, newest=newest)
        self._reads(pool, view)
        dataset = PoolDataset(view, records_of(view, shape), self._raised)
        self._renamed.add(name, dataset.stored)
        return dataset

    def _as_ours(self, error: Exception) -> LakeError:
        if self._stop.why:
            return InvalidInput(f"query: {self._stop.why}")
        if self._raised:
            return self._raised[0]
        if isinstance(error, duckdb.PermissionException):
            return InvalidInput(
                "query: SQL reads pools, and no files but those of --files; name the file so, or load it: "
                f"{_message(error)}"
            )
        if isinstance(error, duckdb.OutOfMemoryException):
            first, _, _ = str(error).partition("\n")
            return InvalidInput(f"query: {first.strip()}: select fewer columns, or a smaller range of keys")
        if hint := self._renamed.hint(str(error)):
            return InvalidInput(f"query: {hint}")
        return InvalidInput(f"query: {_message(error, more=how_to_quote(str(error)))}")

    def close(self) -> None:
        """Stops the query and frees its connection; may be called again."""
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
        """Closes all answers that were not read to their end, when the program ends."""
        for question in list(cls._open):
            question.close()


def _explained(
    connection: duckdb.DuckDBPyConnection, sql: str, from_state: FromState
) -> tuple[Any, pa.RecordBatchReader]:
    """Returns the answer of an EXPLAIN, with a last row that says which objects the statement reads."""
    try:
        text = from_state.division.text
    except (duckdb.Error, pa.ArrowException):
        text = "reads all objects that the condition leaves"
    from_state.undo()
    relation = carried(connection.sql(sql))
    rows = relation.to_arrow_table()
    added = pa.table([["objects"], [text]], schema=rows.schema)
    return relation, pa.concat_tables([rows, added]).to_reader()


def _asked(
    connection: duckdb.DuckDBPyConnection, sql: str, batch_rows: int
) -> tuple[Any, pa.RecordBatchReader]:
    relation = carried(connection.sql(sql))
    return relation, relation.to_arrow_reader(batch_rows)


def how_to_quote(message: str) -> str:
    """Says what to do if an error of DuckDB shows that quotes are missing or must be double; "" for other
    errors."""
    if 'Referenced column "' in message:
        return " (a text stands in single quotes)"
    if any(f'syntax error at or near "{sign}"' in message for sign in "@:$"):
        return ' (such a name stands in double quotes: "POOL@REVISION", "POOL:objects", "POOL.$rejected")'
    return ""


def _with_advice(name: str, error: NotFound, *, sql: str) -> NotFound:
    """Returns the error with advice if the table looks like a table of a pool, or like a file: how SQL names
    these."""
    if of_pool := re.search(rf"(\w+)\s*:\s*{re.escape(name)}\b", sql):
        return NotFound(f'{error}; a table of a pool stands in double quotes: "{of_pool[1]}:{name}"')
    if os.sep not in name and not os.path.isfile(name):
        return error
    return NotFound(f"{error}; if {name!r} is a local file, let the SQL read it: --files {name}")


atexit.register(_Question.close_all)


def _message(error: Exception, *, more: str = "") -> str:
    """Returns the message and `more` on one line, then DuckDB's lines that show the position with a caret."""
    message, line, position = str(error).partition("\nLINE ")
    shown = "\n" + (line + position).strip("\n") if line else ""
    return " ".join(message.split()) + more + shown
