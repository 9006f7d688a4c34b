"""Joins the records of a source to batches of other records, and says what a MERGE does with each pair.

The source lies in a locked connection, on disk if it does not fit into memory.  The target comes a batch at a time,
and stays in Arrow: the join returns only the numbers of records, so values of types that SQL does not have stay
unchanged.  Called by `sql_writes`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from lake_core.errors import InvalidInput
from log_lake.columns.json_text import typed_inside
from log_lake.system_tables.answers import carried, distinct, marked, quoted
from log_lake.system_tables.columns import Renamed, as_type, sql_names, stored_type
from log_lake.system_tables.dataset import as_sql_sees
from log_lake.system_tables.expressions import ROW, Expression, FieldSetter, numbered, wrong
from log_lake.system_tables.stopping import QueryStop

_SOURCE, _PAIRS, _MET, _PICKED = (quoted(name) for name in ("=source", "=pairs", "=met", "=picked"))
_ROW = quoted(ROW)


@dataclass(frozen=True)
class Cases:
    """The conditions of a MERGE's clauses, by the clauses' numbers and in their order. "" is a condition that
    always holds."""

    conditions: tuple[tuple[int, str], ...]

    @property
    def sql(self) -> str:
        """A SQL expression for the number of the first clause whose condition holds; NULL if none does."""
        whens = "".join(f" WHEN ({sql or 'true'}\n) THEN {number}" for number, sql in self.conditions)
        return f"CASE{whens} END" if whens else "NULL::INTEGER"


@dataclass(frozen=True)
class MergeJoin:
    """Holds the source in a connection, and joins records to it.

    `name` and `source_name` are the table names of both sides in expressions, `on` is the condition that joins
    them. The numbers in `acts` are those of clauses that change or delete; at most one of these may apply to a
    record.
    """

    connection: duckdb.DuckDBPyConnection
    stop: QueryStop
    name: str
    source_name: str
    on: str
    matched: Cases
    unsourced: Cases
    unmatched: Cases
    acts: frozenset[int]
    fields: Renamed = field(default_factory=Renamed)
    """The fields of both sides that have other names in SQL."""

    def hold(self, source: pa.RecordBatchReader) -> None:
        """Stores the records of the source in the connection. Raises InvalidInput, and what reading them
        raises."""
        self.fields.add(self.source_name, source.schema)
        self._take(source.schema.empty_table(), 0, f"CREATE TEMP TABLE {_SOURCE} AS")
        count = 0
        for batch in source:
            self._take(pa.Table.from_batches([batch]), count, f"INSERT INTO {_SOURCE}")
            count += batch.num_rows
        self._run(f"CREATE TEMP TABLE {_MET} (source BIGINT)")

    def _take(self, records: pa.Table, first: int, into: str) -> None:
        """Inserts records. DuckDB gets a table and no stream of Python's, so that none of its threads waits for
        Python."""
        rows = pa.array(range(first, first + records.num_rows), pa.int64())
        self.connection.register("incoming", as_sql_sees(records).append_column(ROW, rows))
        self._run(f"{into} SELECT * FROM incoming")
        self.connection.unregister("incoming")

    @property
    def is_empty(self) -> bool:
        """Whether the source has no records."""
        return not self._table(f"SELECT 1 FROM {_SOURCE} LIMIT 1").num_rows

    def values(self, column: str, *, most: int) -> pa.ChunkedArray | None:
        """Returns the values of a column of the source, each once, without NULL; None if there are more than
        `most`."""
        sql = f"SELECT DISTINCT {quoted(column)} FROM {_SOURCE} WHERE {quoted(column)} IS NOT NULL LIMIT {most + 1}"
        values = self._table(sql).column(0)
        return None if len(values) > most else values

    def bounds(self, column: str) -> pa.Table:
        """Returns the least and the greatest value of a column of the source."""
        return self._table(f"SELECT min({quoted(column)}), max({quoted(column)}) FROM {_SOURCE}")

    def decided(self, records: pa.Table, *, is_new: bool = True) -> pa.Table:
        """Decides which clause applies to records of the target. Returns the columns `target`, `source` and
        `clause`, ordered by target.

        `is_new`: these records are given for the first time, so the records of the source that they match are
        marked as matched. Raises InvalidInput if two changing clauses apply to one record.
        """
        self.connection.register("records", numbered(records))
        self.fields.add(self.name, records.schema)
        t, s = quoted(self.name), quoted(self.source_name)
        self._run(
            f"CREATE OR REPLACE TEMP TABLE {_PAIRS} AS SELECT {t}.{_ROW} AS target, {s}.{_ROW} AS source, "
            f"{self.matched.sql} AS clause FROM records AS {t} JOIN {_SOURCE} AS {s} ON ({self.on}\n)"
        )
        if is_new:
            self._run(f"INSERT INTO {_MET} SELECT DISTINCT source FROM {_PAIRS}")
        alone = ""
        if self.unsourced.conditions:
            alone = (
                f" UNION ALL SELECT {t}.{_ROW}, NULL, {self.unsourced.sql} FROM records AS {t} "
                f"WHERE NOT EXISTS (FROM {_PAIRS} WHERE target = {t}.{_ROW})"
            )
        acts = ", ".join(map(str, sorted(self.acts))) or "NULL"
        chosen = self._table(
            f"SELECT * FROM (SELECT * FROM {_PAIRS}{alone}) WHERE clause IN ({acts}) ORDER BY target"
        )
        targets = chosen.column("target")
        if (
            len(targets) > 1
            and pc.any(pc.equal(targets.slice(1), targets.slice(0, len(targets) - 1))).as_py()
        ):
            raise InvalidInput(
                "MERGE: several records of the source match one record of the pool, so which one changes it is not "
                "said; let the source have one record for it (GROUP BY, DISTINCT ON)"
            )
        return chosen

    def setter(self, expressions: Sequence[Expression]) -> FieldSetter:
        """Returns an object that sets fields of records; call `pick` before each use."""
        t, s, p = quoted(self.name), quoted(self.source_name), _PICKED
        beside = f"JOIN {p} ON {p}.{_ROW} = {t}.{_ROW} LEFT JOIN {_SOURCE} AS {s} ON {s}.{_ROW} = {p}.source"
        return FieldSetter(expressions, verb="MERGE", name=self.name, beside=beside)

    def pick(self, sources: pa.ChunkedArray) -> None:
        """Sets which record of the source belongs to each of the records that the setter gets next."""
        rows = pa.array(range(len(sources)), pa.int64())
        self.connection.register("=picked", pa.table({ROW: rows, "source": sources}))

    def inserted(
        self, number: int, values: Sequence[tuple[str, str]], source: pa.Schema, *, batch_rows: int
    ) -> Iterator[pa.Table]:
        """Yields the records that a clause inserts. Their fields are the values of expressions over the source,
        which has this stored schema."""
        names = [name for name, _ in values]
        chosen = ", ".join(
            f"({sql}\n) AS {quoted(name)}" for name, (_, sql) in zip(distinct(names), values, strict=True)
        )
        s = quoted(self.source_name)
        sql = (
            f"SELECT {chosen} FROM {_SOURCE} AS {s} WHERE NOT EXISTS (FROM {_MET} WHERE source = {s}.{_ROW}) "
            f"AND {self.unmatched.sql} = {number}"
        )
        renamed = Renamed()
        renamed.add(self.source_name, source)
        try:
            relation = carried(self.connection.sql(sql))
            if len(relation.columns) != len(names):
                raise InvalidInput("MERGE: INSERT: an expression gives several values; it must give one")
            reader = relation.to_arrow_reader(batch_rows)
            fields = [
                marked(f.with_name(name), k)
                for f, name, k in zip(reader.schema, names, relation.types, strict=True)
            ]
            stored = pa.schema([field.with_type(stored_type(field.type, renamed.stored)) for field in fields])
            for batch in reader:
                self.stop.check()
                columns = [
                    as_type(typed_inside(pa.chunked_array([column]), field).combine_chunks(), kind)
                    for field, kind, column in zip(fields, stored.types, batch.columns, strict=True)
                ]
                yield pa.Table.from_arrays(columns, schema=stored)
        except duckdb.Error as error:
            self.stop.check()
            raise wrong(error, verb="MERGE", fields=self.fields) from error

    def meets(self, records: pa.Table, others: pa.Table) -> bool:
        """Whether the records have the same values as the others in all columns of the others; NULL equals
        NULL."""
        self.connection.register("there", as_sql_sees(records))
        self.connection.register("others", as_sql_sees(others))
        equal = " AND ".join(
            f"there.{quoted(name)} IS NOT DISTINCT FROM others.{quoted(name)}"
            for name in sql_names(others.schema.names)
        )
        return self._table(f"SELECT 1 FROM there SEMI JOIN others ON {equal} LIMIT 1").num_rows > 0

    def _run(self, sql: str) -> None:
        self.stop.check()
        try:
            self.connection.execute(sql)
        except duckdb.Error as error:
            self.stop.check()
            raise wrong(error, verb="MERGE", fields=self.fields) from error

    def _table(self, sql: str) -> pa.Table:
        self.stop.check()
        try:
            return carried(self.connection.sql(sql)).to_arrow_table()
        except duckdb.Error as error:
            self.stop.check()
            raise wrong(error, verb="MERGE", fields=self.fields) from error


def source_columns(source: pa.Schema, source_name: str) -> tuple[tuple[str, str], ...]:
    """Returns the stored fields of a source, each with the expression of its value."""
    names = sql_names(source.names)
    return tuple(
        (stored, f"{quoted(source_name)}.{quoted(name)}")
        for stored, name in zip(source.names, names, strict=True)
    )
