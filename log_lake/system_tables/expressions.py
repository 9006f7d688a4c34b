"""Sets fields of records to the values of SQL expressions over the fields of the same record.

The connection is locked as that of `sql`, and sees the records as `sql` shows them: JSON as JSON, durations as
text, fields that differ in case by their other names.  Called by `sql_writes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from lake_core.errors import InvalidInput
from lake_core.values.types import is_json
from log_lake.columns.json_text import typed_inside
from log_lake.system_tables.answers import carried, marked, quoted
from log_lake.system_tables.columns import Renamed
from log_lake.system_tables.dataset import as_sql_sees
from log_lake.system_tables.engine import SQL_LIMITS, SqlLimits, connected
from log_lake.system_tables.sql import how_to_quote
from log_lake.system_tables.stopping import QueryStop

ROW = "=row"
"""The column that keeps the order.  No field has this name in SQL: it would begin with `==`."""


@dataclass(frozen=True)
class Expression:
    """An expression, and the field that takes its values."""

    field: pa.Field
    sql: str


@contextmanager
def setting(
    expressions: Sequence[Expression],
    *,
    table: str,
    limits: SqlLimits = SQL_LIMITS,
    stop: QueryStop | None = None,
) -> Iterator[Callable[[pa.Table], pa.Table]]:
    """Yields a function that sets the fields of records to the values of their expressions.

    Expressions may call the records `table`; `stop` ends the work from another thread.  The function raises
    InvalidInput for an expression that is wrong, and for a value that the field's type cannot hold.  Raises
    InvalidInput for a field that cannot be set.
    """
    setter = FieldSetter(expressions, verb="UPDATE", name=table)
    stopped = stop or QueryStop()
    with connected(limits) as connection, stopped.interrupting(connection.interrupt):
        yield lambda records: setter.set(connection, records, stopped)


class FieldSetter:
    """Sets the fields of records to the values of expressions, in a connection.

    `name`: the table name of the records in expressions. `beside`: joins of other tables, in the form in which
    they follow FROM; each must have one row for each record, whose number is in the column `ROW`. `verb`: the
    kind of the statement, for errors.
    """

    def __init__(self, expressions: Sequence[Expression], *, verb: str, name: str, beside: str = "") -> None:
        for one in expressions:
            if _holds_records(one.field.type):
                raise InvalidInput(
                    f"{verb}: field {one.field.name!r} holds records, which SQL does not set here"
                )
        self._expressions, self._verb = expressions, verb
        chosen = ", ".join(
            f"to_json({one.sql}\n)" if is_json(one.field) else f"({one.sql}\n)" for one in expressions
        )
        row = f"{quoted(name)}.{quoted(ROW)}"
        self._sql = f"SELECT {chosen}, {row} FROM records AS {quoted(name)} {beside} ORDER BY {row}"

    def set(self, connection: duckdb.DuckDBPyConnection, records: pa.Table, stop: QueryStop) -> pa.Table:
        """Returns the records with the new values.  Raises InvalidInput."""
        if not self._expressions:
            return records
        seen = numbered(records)
        connection.register("records", seen)
        try:
            relation = carried(connection.sql(self._sql))
            answer = relation.to_arrow_table()
        except duckdb.Error as error:
            stop.check()
            fields = Renamed()
            fields.add("records", records.schema)
            raise wrong(error, verb=self._verb, fields=fields) from error
        expressions = self._expressions
        rows = seen.column(ROW).combine_chunks()
        if answer.num_columns != len(expressions) + 1 or not answer.columns[-1].combine_chunks().equals(rows):
            raise InvalidInput(
                f"{self._verb}: an expression gives no value, or several, for a record; it must give one"
            )
        kinds = [marked(field, kind) for field, kind in zip(answer.schema, relation.types, strict=True)]
        result = records
        for one, column, kind in zip(expressions, answer.columns[:-1], kinds[:-1], strict=True):
            place = records.schema.get_field_index(one.field.name)
            old = (records.column(place), seen.column(place))
            values = _in_field(column, one.field, kind, old=old, verb=self._verb)
            field = records.schema.field(place)
            if pa.types.is_null(field.type):  # its first values give it a type
                field = field.with_type(values.type)
            result = result.set_column(place, field, values)
        return result


def numbered(records: pa.Table) -> pa.Table:
    """Returns the records as SQL sees them, with the column `ROW`."""
    return as_sql_sees(records).append_column(ROW, pa.array(range(records.num_rows), pa.int64()))


def wrong(error: duckdb.Error, *, verb: str, fields: Renamed | None = None) -> InvalidInput:
    """Turns an error of DuckDB about a statement into InvalidInput, in one line.

    If the statement names fields that SQL takes for one, the line says their other names.
    """
    if fields and (hint := fields.hint(str(error))):
        return InvalidInput(f"{verb}: {hint}")
    first, _, _ = str(error).partition("\n")
    return InvalidInput(f"{verb}: {first.strip()}{how_to_quote(first)}")


def _holds_records(kind: pa.DataType) -> bool:
    inside = (kind.field(place).type for place in range(kind.num_fields))
    return pa.types.is_struct(kind) or (pa.types.is_list(kind) and any(map(_holds_records, inside)))


def _in_field(
    column: pa.ChunkedArray,
    field: pa.Field,
    kind: pa.Field,
    *,
    old: tuple[pa.ChunkedArray, pa.ChunkedArray],
    verb: str,
) -> pa.ChunkedArray:
    """Returns the values in the field's type. A value of JSON that the expression has not changed stays exactly as
    it is stored."""
    values = typed_inside(column, kind).combine_chunks()
    if pa.types.is_null(field.type):  # a field without a value has no type yet
        return pa.chunked_array([values])
    try:
        values = values.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        first, _, _ = str(error).partition("\n")
        advice = "SQL cannot set it" if pa.types.is_duration(field.type) else "cast it"
        raise InvalidInput(
            f"{verb}: field {field.name!r} is {field.type}, and does not take the new value: {first}; {advice}"
        ) from error
    if is_json(field):
        stored, shown = (one.combine_chunks() for one in old)
        same = pc.equal(column.combine_chunks().cast(pa.string()), shown.storage)
        values = pc.if_else(pc.fill_null(same, False), stored, values)
    return pa.chunked_array([values])
