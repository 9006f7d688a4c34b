"""SQL over pools, by DuckDB.

Tables are named as a user writes a revision: `"flights"`, `"flights@12"`, `"flights@main"`, and the lake's
own tables `"flights:objects"`, `"lake:pools"`.  A pool is offered as an Arrow data set whose scan is the
pool's scan in key order; DuckDB hands down the columns and the conditions it wants applied, so only those columns
are read.  JSON fields keep their type: they come back as the values they were.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from lake_core.errors import InvalidInput, LakeError, NotFound
from lake_core.lake import Lake
from lake_core.objects.types import is_json, json_field
from lake_core.query import meta
from lake_core.records.transactions import PLACES
from lake_core.scan.scan import result_schema
from lake_core.view import View

META = ("branches", "log", "objects", "references")


def query(lake: Lake, sql: str) -> pa.RecordBatchReader:
    """The result of one SELECT, as a stream; JSON columns carry the lake's mark.

    Raises InvalidInput (SQL that cannot be run), NotFound (pool, revision) and what scans raise.
    """
    connection = duckdb.connect(
        config={"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    )
    raised: list[LakeError] = []
    try:
        for name in sorted(connection.get_table_names(sql)):
            connection.register(name, _table(lake, name, raised))
        connection.execute("SET enable_external_access = false")
        result = connection.sql(sql)
        if result is None:
            raise InvalidInput("query: the statement gives no rows; write one SELECT")
        reader = result.to_arrow_reader(65_536)
    except duckdb.Error as error:
        raise raised[0] if raised else InvalidInput(f"query: {_one_line(error)}") from error
    schema = pa.schema([_marked(f) for f in reader.schema])
    return pa.RecordBatchReader.from_batches(schema, _batches(reader, schema, connection, raised))


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _table(lake: Lake, name: str, raised: list[LakeError]) -> Any:
    base, colon, kind = name.rpartition(":")
    if colon and base == "lake":
        if kind != "pools":
            raise NotFound(f'table "{name}" does not exist; there is "lake:pools"')
        return meta.pools_table(lake.pools())
    if colon:
        return meta_table(lake, base, kind)
    pool, _, revision = name.partition("@")
    return PoolDataset(lake.pool(pool).at(revision or "main"), raised)


def meta_table(lake: Lake, pool_name: str, kind: str) -> pa.Table:
    """One of the pool's own tables; raises NotFound."""
    pool_name, _, revision = pool_name.partition("@")
    pool = lake.pool(pool_name)
    view = pool.at(revision or "main")
    snapshot = view.state.branches[view.branch].snapshot
    match kind:
        case "branches":
            return meta.branches_table(view.state)
        case "log":
            return meta.log_table((n, t) for n, t in pool.log() if n <= view.n)
        case "objects" | "references":
            held = [r for sub in ("", *snapshot.sub_pools()) for r in snapshot.find(sub=sub)]
            table = meta.references_table(held, view.pool.key, lambda seq: seq // PLACES)
            return meta.objects_table(table) if kind == "objects" else table
    raise NotFound(f'table "{pool_name}:{kind}" does not exist; there are: {", ".join(META)}')


class PoolDataset(ds.InMemoryDataset):  # type: ignore[misc]
    """A view as an Arrow data set.  DuckDB asks it for a scanner with columns and a filter, once a scan."""

    def __init__(self, view: View, raised: list[LakeError]) -> None:
        self._view, self._raised = view, raised
        plain = result_schema(view.plan())
        super().__init__(_offered(plain).empty_table())

    def scanner(
        self, columns: list[str] | None = None, filter: pc.Expression | None = None, **_: Any
    ) -> ds.Scanner:
        """The records, projected and filtered; both are DuckDB's wish and must be fulfilled exactly."""
        names = self.schema.names if columns is None else list(columns)
        needed = list(names)
        if filter is not None:
            said = str(filter)
            needed += [n for n in self.schema.names if n not in needed and n in said]
        schema = pa.schema([self.schema.field(n) for n in names])
        return ds.Scanner.from_batches(self._batches(needed, names, filter, schema), schema=schema)

    def _batches(
        self, needed: list[str], names: list[str], filter: pc.Expression | None, schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        try:
            for table in self._view.scan(columns=needed):
                kept = table if filter is None else table.filter(filter)
                columns = [c.cast(f.type) for f, c in zip(schema, kept.select(names).columns, strict=True)]
                yield from pa.table(columns, schema=schema).to_batches()
        except LakeError as error:
            self._raised.append(error)  # DuckDB would turn it into one of its own
            raise


def _offered(schema: pa.Schema) -> pa.Schema:
    """As DuckDB is shown it: JSON as Arrow's JSON type, other marks left out."""
    return pa.schema([pa.field(f.name, pa.json_() if is_json(f) else f.type) for f in schema])


def _marked(field: pa.Field) -> pa.Field:
    if getattr(field.type, "extension_name", "") == "arrow.json":
        return json_field(field.name)
    return field


def _batches(
    reader: pa.RecordBatchReader,
    schema: pa.Schema,
    connection: duckdb.DuckDBPyConnection,
    raised: list[LakeError],
) -> Iterator[pa.RecordBatch]:
    try:
        for batch in reader:
            columns = [c.storage if isinstance(c, pa.ExtensionArray) else c for c in batch.columns]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        raise raised[0] if raised else InvalidInput(f"query: {_one_line(error)}") from error
    finally:
        connection.close()
