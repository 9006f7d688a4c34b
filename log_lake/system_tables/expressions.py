"""The values of SQL expressions over the fields of each record of a table.

The connection is locked as that of `sql`, and sees the records as `sql` shows them: JSON as JSON, durations as
text, fields that differ in case by their other names.  Called by `sql_writes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from lake_core.errors import InvalidInput
from lake_core.values.types import is_json
from log_lake.columns.json_text import typed_inside
from log_lake.system_tables.answers import carried, marked, quoted
from log_lake.system_tables.columns import as_type, sql_names, stored_type
from log_lake.system_tables.dataset import as_sql_sees
from log_lake.system_tables.engine import SQL_LIMITS, SqlLimits, connected

_ROW = "=row"
"""The column that keeps the order.  No field has this name in SQL: it would begin with `==`."""


@dataclass(frozen=True)
class Expression:
    """An expression, and the field that takes its values."""

    field: pa.Field
    sql: str


def values_of(
    expressions: Sequence[Expression], records: pa.Table, *, table: str, limits: SqlLimits = SQL_LIMITS
) -> list[pa.ChunkedArray]:
    """The value of each expression for each record, in the type of its field; expressions may call these `table`.

    Raises InvalidInput for an expression that is wrong, and for a value that the field's type cannot hold.
    """
    names = sql_names(records.schema.names)
    seen = as_sql_sees(records).append_column(_ROW, pa.array(range(records.num_rows), pa.int64()))
    stored = dict(zip(names, records.schema.names, strict=True))
    chosen = ", ".join(
        f"to_json({one.sql}\n)" if is_json(one.field) else f"({one.sql}\n)" for one in expressions
    )
    with connected(limits) as connection:
        connection.register("records", seen)
        try:
            relation = carried(
                connection.sql(f'SELECT {chosen} FROM records AS {quoted(table)} ORDER BY "{_ROW}"')
            )
            answer = relation.to_arrow_table()
        except duckdb.Error as error:
            first, _, _ = str(error).partition("\n")
            raise InvalidInput(f"UPDATE: {first.strip()}") from error
        kinds = [marked(field, kind) for field, kind in zip(answer.schema, relation.types, strict=True)]
    if answer.num_rows != records.num_rows:
        raise InvalidInput("UPDATE: an expression gives several values for a record; it must give one")
    return [
        _in_field(column, kind.with_type(stored_type(kind.type, stored)), one.field, kind)
        for column, kind, one in zip(answer.columns, kinds, expressions, strict=True)
    ]


def _in_field(column: pa.ChunkedArray, own: pa.Field, field: pa.Field, kind: pa.Field) -> pa.ChunkedArray:
    values = as_type(typed_inside(column, kind).combine_chunks(), own.type)
    try:
        return pa.chunked_array([values.cast(field.type)])
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        first, _, _ = str(error).partition("\n")
        raise InvalidInput(
            f"UPDATE: field {field.name!r} is {field.type}, and does not take the new value: {first}; cast it"
        ) from error
