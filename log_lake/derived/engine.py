"""Computes touched groups, and their new records, in DuckDB.

The source comes a table at a time, so no thread of the engine waits for Python.  The touched groups lie in a table
of the connection, and so do the records of the source that belong to them; both go to disk if they are large.
The query itself runs unchanged: over the records of the touched groups, or over all records.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb
import msgspec
import pyarrow as pa

from lake_core.errors import InvalidInput, LakeError
from lake_core.keys import KeyRange
from lake_core.keys.encoding import AFTER, from_array
from lake_core.keys.ranges import united
from log_lake.columns.json_text import typed_inside
from log_lake.derived.bounds import field_bounds
from log_lake.derived.definition import Definition, Functions, definition_of
from log_lake.lake.by_type import records_of
from log_lake.lake.view import View
from log_lake.system_tables.aggregates import SqlNode
from log_lake.system_tables.answers import carried, marked, quoted
from log_lake.system_tables.bounds import is_compared
from log_lake.system_tables.columns import as_type, folded, sql_names, stored_type
from log_lake.system_tables.dataset import PoolDataset, as_sql_sees
from log_lake.system_tables.engine import SQL_LIMITS, SqlLimits, connected
from log_lake.system_tables.expressions import wrong
from log_lake.system_tables.statement import parsed

MOST_RANGES = 1_000
"""Ranges of keys that one read of the source names; of more, it reads from the first to the last."""

LEAST_READ, READ_SHARE = 500_000, 16
"""A step gathers at most LEAST_READ records, or 1/READ_SHARE of the source if that is more.  If the touched groups
have more, the query runs over all records, and the touched groups are taken from its answer: a record costs a
tenth then."""

BATCH_ROWS = 65_536

_TOUCHED, _KEYS, _RECORDS, _PIECE = (quoted(name) for name in ("=touched", "=keys", "=records", "=piece"))


@functools.lru_cache(maxsize=1)
def functions() -> Functions:
    """Returns which functions of DuckDB are aggregates, which are steady, and which may change."""
    with connected() as connection:
        rows = connection.execute(
            "SELECT lower(function_name), function_type, stability FROM duckdb_functions()"
        ).fetchall()
    stability: dict[str, set[str]] = {}
    for name, _, stable in rows:
        stability.setdefault(name, set()).add(stable or "")
    changing = {
        name: "has another value at each call" if "VOLATILE" in kinds else "is another value at another time"
        for name, kinds in stability.items()
        if "VOLATILE" in kinds or kinds == {"CONSISTENT_WITHIN_QUERY"}
    }
    aggregates = frozenset(name for name, kind, _ in rows if kind == "aggregate")
    steady = frozenset(name for name, kinds in stability.items() if "CONSISTENT" in kinds)
    return Functions(aggregates, changing, steady)


@contextmanager
def computing(view: View, sql: str, *, limits: SqlLimits = SQL_LIMITS) -> Iterator[Computing]:
    """Gives a query over a version of its source.  Raises InvalidInput if the query cannot be kept."""
    with connected(limits) as connection:
        definition, columns = _defined(connection, view, sql)
        yield Computing(connection, view, sql, definition, columns)


def _defined(connection: duckdb.DuckDBPyConnection, view: View, sql: str) -> tuple[Definition, list[str]]:
    try:
        statement = parsed(connection, sql)
        if statement.explains or len(statement.tables) != 1 or statement.defined:
            raise InvalidInput("derive: the query cannot be kept: it must be one SELECT from one pool")
        (table,) = statement.tables
        schema = records_of(view).schema
        names = sql_names(schema.names)
        connection.register(table, as_sql_sees(schema.empty_table()))
        columns = connection.sql(sql).columns
        connection.unregister(table)
    except duckdb.Error as error:
        raise wrong(error, verb="derive") from error
    by_stored = dict(zip(schema.names, names, strict=True))
    key = [by_stored.get(name, name) for name in view.key.names]
    fields = set(names)
    return (
        definition_of(statement.tree, columns=columns, fields=fields, key=key, functions=functions()),
        list(columns),
    )


@dataclass
class Computing:
    """A query over the version `view` of its source, in a connection."""

    connection: duckdb.DuckDBPyConnection
    view: View
    sql: str
    definition: Definition
    columns: list[str]

    def __post_init__(self) -> None:
        self.records = records_of(self.view)
        keys = [_column(name) for name in self._key_names]
        self._has_keys = f"SELECT {', '.join(quoted(name) for name in self._key_names)}"
        groups = [group.node | {"alias": f"=g{at}"} for at, group in enumerate(self.definition.groups)]
        star = self._tree("SELECT * FROM t")["select_list"]
        self._groups = self._text(self.definition.selects(groups))
        self._grouped = self._text(self.definition.selects([*groups, *star]))
        self._keyed = self._text(self.definition.selects([*groups, *keys]))
        empty = as_sql_sees(self.schema.empty_table().select(self.fields))
        self._register(self.definition.table, empty)
        self._run(f"CREATE TEMP TABLE {_TOUCHED} AS {self._groups}")
        self._run(f"CREATE TEMP TABLE {_RECORDS} AS SELECT * FROM {quoted(self.definition.table)}")
        if not self.has_keys:
            return
        self._run(f"CREATE TEMP TABLE {_KEYS} AS {self._has_keys} FROM {quoted(self.definition.table)}")
        keyed = self.connection.sql(f"FROM {_KEYS}")
        self._types = {name: str(kind) for name, kind in zip(keyed.columns, keyed.types, strict=True)}

    @property
    def schema(self) -> pa.Schema:
        """The fields of the source, in their stored types."""
        return self.records.schema

    @property
    def fields(self) -> list[str]:
        """The stored names of the fields that the query uses, and of the key."""
        names = self.schema.names
        if self.definition.fields is None:
            return list(names)
        called = dict(zip(names, sql_names(names), strict=True))
        used = {
            folded(name) for name in names if {folded(name), folded(called[name])} & self.definition.fields
        }
        return [name for name in names if folded(name) in used or name in self.view.key.names]

    @property
    def _key_names(self) -> list[str]:
        called = dict(zip(self.schema.names, sql_names(self.schema.names), strict=True))
        return [called[name] for name in self.view.key.names if name in called]

    @property
    def has_keys(self) -> bool:
        """Whether SQL sees every part of the source's key as a field; False if one is a path into records."""
        return len(self._key_names) == len(self.view.key.names)

    # --- touched groups

    def touch(self, tables: Iterable[pa.Table]) -> None:
        """Marks the groups of these records as touched."""
        for table in tables:
            self._register(self.definition.table, as_sql_sees(self._whole(table)))
            self._run(f"INSERT INTO {_TOUCHED} SELECT DISTINCT * FROM ({self._groups})")

    def note_keys(self, tables: Iterable[pa.Table]) -> None:
        """Stores keys of the source; `touch_keys` then touches their groups."""
        for table in tables:
            self._register(_PIECE.strip('"'), as_sql_sees(table))
            self._run(f"INSERT INTO {_KEYS} {self._has_keys} FROM {_PIECE}")
            self.connection.unregister(_PIECE.strip('"'))

    def touch_keys(self, views: Sequence[View]) -> None:
        """Marks the groups as touched that records of the noted keys have in these versions."""
        ranges = self._ranges(
            f"SELECT {{0}} AS low, {{0}} AS high FROM {_KEYS}".format(quoted(self._key_names[0]))
        )
        same = " AND ".join(
            f"r.{quoted(name)} IS NOT DISTINCT FROM k.{quoted(name)}" for name in self._key_names
        )
        for view in views:
            for table in self._read(view, ranges):
                self._register(self.definition.table, as_sql_sees(self._whole(table)))
                chosen = ", ".join(f'r."=g{at}"' for at in range(len(self.definition.groups)))
                self._run(
                    f"INSERT INTO {_TOUCHED} SELECT DISTINCT {chosen} FROM ({self._keyed}) AS r "
                    f"SEMI JOIN {_KEYS} AS k ON {same}"
                )

    def touched(self) -> pa.Table:
        """The touched groups, each once, under the names of their fields."""
        chosen = ", ".join(
            f'"=g{at}" AS {quoted(group.name)}' for at, group in enumerate(self.definition.groups)
        )
        return self._answered(f"SELECT DISTINCT {chosen} FROM {_TOUCHED}").read_all()

    def touched_between(self) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
        """Returns the least and the greatest first value that `touch_between` has stored, each as a column of one
        value."""
        table = self._answered(f"SELECT low, high FROM {_TOUCHED}").read_all()
        return table.column(0), table.column(1)

    def touch_between(self) -> None:
        """Marks every group as touched whose first value lies between the least and the greatest touched one."""
        self._run(
            f'CREATE OR REPLACE TEMP TABLE {_TOUCHED} AS SELECT min("=g0") AS low, max("=g0") AS high, '
            f'bool_or("=g0" IS NULL) AS has_null FROM {_TOUCHED}'
        )

    # --- answers

    def answer_of_touched(self, *, between: bool = False) -> pa.RecordBatchReader:
        """Returns the answer of the query for the touched groups.  `between`: the groups are those of
        `touch_between`."""
        ranges = self._ranges_of_touched(between=between)
        if ranges is not None and self._gathers(ranges, between=between):
            self.connection.unregister(self.definition.table)
            self._run(f"CREATE TEMP VIEW {quoted(self.definition.table)} AS FROM {_RECORDS}")
            return self._answered(self.sql)
        names = [group.name for group in self.definition.groups]
        same = self._same(names, between=between)
        whole = self._text(self.definition.node)
        return self._over_all(f"SELECT r.* FROM ({whole}) AS r SEMI JOIN {_TOUCHED} AS k ON {same}")

    def _gathers(self, ranges: Sequence[KeyRange], *, between: bool) -> bool:
        """Gathers the records of the touched groups; False if these are so many that reading all is faster."""
        left = max(LEAST_READ, self.view.records // READ_SHARE)
        groups = [f"=g{at}" for at in range(len(self.definition.groups))]
        left_out, same = ", ".join(map(quoted, groups)), self._same(groups, between=between)
        for table in self._read(self.view, ranges):
            left -= table.num_rows
            if left < 0:
                return False
            self._register(self.definition.table, as_sql_sees(self._whole(table)))
            self._run(
                f"INSERT INTO {_RECORDS} SELECT r.* EXCLUDE ({left_out}) FROM ({self._grouped}) AS r "
                f"SEMI JOIN {_TOUCHED} AS k ON {same}"
            )
        return True

    def _same(self, names: Sequence[str], *, between: bool) -> str:
        """The condition that a record with these columns, `r`, is of a touched group, `k`."""
        if between:
            first = f"r.{quoted(names[0])}"
            return f"{first} BETWEEN k.low AND k.high OR (k.has_null AND {first} IS NULL)"
        pairs = enumerate(names)
        return " AND ".join(f'r.{quoted(name)} IS NOT DISTINCT FROM k."=g{at}"' for at, name in pairs)

    def _ranges_of_touched(self, *, between: bool) -> list[KeyRange] | None:
        """The ranges of keys in which the records of the touched groups lie; None if none are known."""
        if between:
            return self._bounds(0, "low", "high")
        count = len(self.definition.groups)
        bounds = (self._bounds(at, f'"=g{at}"', f'"=g{at}"') for at in range(count))
        return next((one for one in bounds if one is not None), None)

    def answer(self) -> pa.RecordBatchReader:
        """Returns the answer of the query over the whole source."""
        return self._over_all(self.sql)

    def _over_all(self, sql: str) -> pa.RecordBatchReader:
        """The answer of a statement over all records."""
        raised: list[LakeError] = []
        dataset = PoolDataset(self.view, self.records, raised)
        self.connection.unregister(self.definition.table)
        self.connection.register(self.definition.table, dataset)
        return self._answered(sql, raised)

    # --- reading

    def _read(self, view: View, ranges: Sequence[KeyRange] | None) -> Iterator[pa.Table]:
        fields = self.fields_of(view)
        if ranges is None:
            yield from view.scan(columns=fields)
        elif ranges:
            yield from view.scan(columns=fields, ranges=ranges)

    def fields_of(self, view: View) -> list[str]:
        """Those of `fields` that another version has."""
        return [name for name in self.fields if name in view.schema.names]

    def _whole(self, table: pa.Table) -> pa.Table:
        """Returns the records with all fields that the query uses; those that an older version lacks are
        null."""
        for name in self.fields:
            if name not in table.schema.names:
                field = self.schema.field(name)
                table = table.append_column(field, pa.nulls(table.num_rows, field.type))
        return table.select(self.fields)

    def _bounds(self, at: int, low: str, high: str) -> list[KeyRange] | None:
        """Returns the ranges of keys in which the touched groups lie, as the group column with number `at` shows;
        None if it shows none."""
        if not self.has_keys:
            return None
        node, field = self.definition.groups[at].node, self._key_names[0]
        lows, highs = field_bounds(node, field=field, value=low), field_bounds(node, field=field, value=high)
        if lows is None or highs is None:
            return None
        return self._ranges(f"SELECT {lows.low} AS low, {highs.high} AS high FROM {_TOUCHED}")

    def _ranges(self, bounds: str) -> list[KeyRange] | None:
        """The ranges of keys between bounds of the first field; None if that is unknown."""
        name = self._key_names[0]
        if not is_named(self.schema.field(self.view.key.names[0])):
            return None
        kind = self._types[name]
        sql = f"SELECT DISTINCT TRY_CAST(low AS {kind}) AS low, TRY_CAST(high AS {kind}) AS high FROM ({bounds})"
        try:
            table = carried(self.connection.sql(sql)).to_arrow_table()
            lows, highs = (from_array(table.column(name)) for name in ("low", "high"))
            descends = self.view.key.fields[0].descending
            ranges = []
            for low, high in zip(lows, highs, strict=True):
                if low is None or high is None:
                    return None
                first, last = (high, low) if descends else (low, high)
                ranges.append(KeyRange(self.view.bound([first]), self.view.bound([last]) + AFTER))
        except (duckdb.Error, InvalidInput, pa.ArrowException):
            return None
        spans = united(ranges)
        return [KeyRange(spans[0].low, spans[-1].high)] if len(spans) > MOST_RANGES else list(spans)

    # --- statements

    def _answered(self, sql: str, raised: Sequence[LakeError] = ()) -> pa.RecordBatchReader:
        try:
            relation = carried(self.connection.sql(sql))
            reader = relation.to_arrow_reader(BATCH_ROWS)
        except duckdb.Error as error:
            raise wrong(error, verb="derive") from error
        renamed = dict(zip(sql_names(self.schema.names), self.schema.names, strict=True))
        kinds = [marked(field, kind) for field, kind in zip(reader.schema, relation.types, strict=True)]
        stored = pa.schema(
            [
                kind.with_name(renamed.get(field.name, field.name)).with_type(stored_type(kind.type, renamed))
                for field, kind in zip(reader.schema, kinds, strict=True)
            ]
        )
        return pa.RecordBatchReader.from_batches(stored, _batches(reader, kinds, stored, raised))

    def _register(self, name: str, table: pa.Table) -> None:
        self.connection.register(name, table)

    def _run(self, sql: str) -> None:
        try:
            self.connection.execute(sql)
        except duckdb.Error as error:
            raise wrong(error, verb="derive") from error

    def _tree(self, sql: str) -> SqlNode:
        ((answer,),) = self.connection.execute("SELECT json_serialize_sql(?)", [sql]).fetchall()
        node: SqlNode = msgspec.json.decode(answer)["statements"][0]["node"]
        return node

    def _text(self, node: SqlNode) -> str:
        tree = msgspec.json.encode({"error": False, "statements": [{"node": node}]}).decode()
        ((sql,),) = self.connection.execute("SELECT json_deserialize_sql(?)", [tree]).fetchall()
        return str(sql)


def is_named(field: pa.Field) -> bool:
    """Whether keys and conditions order the field's values as DuckDB does; both have NaN at the end."""
    return is_compared(field) or pa.types.is_floating(field.type)


def _column(name: str) -> SqlNode:
    return {"class": "COLUMN_REF", "type": "COLUMN_REF", "alias": "", "column_names": [name]}


def _batches(
    reader: pa.RecordBatchReader, kinds: Sequence[pa.Field], stored: pa.Schema, raised: Sequence[LakeError]
) -> Iterator[pa.RecordBatch]:
    try:
        for batch in reader:
            columns = [
                as_type(typed_inside(pa.chunked_array([column]), kind).combine_chunks(), field.type)
                for kind, field, column in zip(kinds, stored, batch.columns, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=stored)
    except (duckdb.Error, pa.ArrowException) as error:
        if raised:
            raise raised[0] from error
        raise InvalidInput(f"derive: {str(error).partition(chr(10))[0]}") from error
