"""The format `lake`: chooses the reader or writer for each request of Spark."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from log_lake.lake.by_type import records_of
from log_lake.reading.scan import result_schema
from spark_apps.datasource import options as opts
from spark_apps.datasource.changes import change_schema
from spark_apps.datasource.changes_reader import ChangesReader, part_of_history
from spark_apps.datasource.names import check_apart
from spark_apps.datasource.reader import LakeReader
from spark_apps.datasource.stream_columns import schema_of_changes
from spark_apps.datasource.stream_reader import LakeStreamReader
from spark_apps.datasource.system_tables import SystemTableReader, system_table_schema
from spark_apps.datasource.types import spark_schema
from spark_apps.datasource.writer import LakeStreamWriter, LakeWriter


class LakeDataSource(DataSource):
    """A pool, or one of the lake's own tables, as Spark's data source.

    A user's schema (`.schema("a int, b string")`) chooses columns and their types; a column that no record has
    is null.  If the user gives a schema, Spark does not call `schema`; by this a stream knows that the user
    chose.
    """

    _told: pa.Schema | None = None
    """The columns that `schema` returned, in the lake's types."""

    @classmethod
    def name(cls) -> str:
        return "lake"

    def schema(self) -> StructType:
        """Returns the wanted columns, in Spark's types."""
        if opts.names_system_table(self.options):
            return system_table_schema(self.options)
        opts.check_names(self.options, (*opts.READ, *opts.READ_STREAM, *opts.CHANGES), what="a read")
        gives_changes = opts.flag(self.options, "changes")
        name, self._told = self._changes() if gives_changes else self._records()
        schema = spark_schema(self._told)
        check_apart(schema, self.options, what=f"pool {name!r}")
        return change_schema(schema, pool_name=name) if gives_changes else schema

    def _records(self) -> tuple[str, pa.Schema]:
        """Returns the name of the pool, and the columns of its records."""
        view = opts.open_view(self.options)
        shape = opts.shape(self.options)
        if shape:
            return view.config.name, opts.selected(records_of(view, shape).schema, self.options)
        return view.config.name, result_schema(view.plan(columns=opts.columns(self.options)))

    def _changes(self) -> tuple[str, pa.Schema]:
        """Returns the name of the pool, and the columns of the records in its changes."""
        pool = opts.open_pool(self.options, what="changes of")
        after, until = part_of_history(pool, self.options)
        return pool.name, schema_of_changes(self.options, pool, after=after, until=until)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Returns a reader of the columns of `schema`."""
        options = dict(self.options)
        if opts.names_system_table(options):
            return SystemTableReader(options, schema)
        if opts.flag(options, "changes"):
            return ChangesReader(options, schema, told=self._told)
        return LakeReader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Returns a reader of new transactions, with the columns of `schema`."""
        return LakeStreamReader(dict(self.options), schema, told=self._told)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Returns a writer that commits one transaction."""
        return LakeWriter(dict(self.options), schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Returns a writer that commits a transaction for each micro-batch."""
        return LakeStreamWriter(dict(self.options), schema, overwrite=overwrite)
