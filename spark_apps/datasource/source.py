"""The format `lake`: which reader or writer does what Spark asks for."""

from __future__ import annotations

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from lake_core.lake.by_type import records_of
from lake_core.reading.scan import result_schema
from spark_apps.datasource import options as opts
from spark_apps.datasource.changes import change_schema
from spark_apps.datasource.changes_reader import ChangesReader
from spark_apps.datasource.names import check_apart
from spark_apps.datasource.reader import LakeReader
from spark_apps.datasource.stream_reader import LakeStreamReader
from spark_apps.datasource.system_tables import SystemTableReader, system_table_schema
from spark_apps.datasource.types import spark_schema
from spark_apps.datasource.writer import LakeStreamWriter, LakeWriter


class LakeDataSource(DataSource):
    """A pool, or one of the lake's own tables.

    A user's schema (`.schema("a int, b string")`) chooses columns and their types; a column that no record has is
    null.  Spark then does not call `schema`; by that a stream knows.
    """

    _is_inferred = False

    @classmethod
    def name(cls) -> str:
        return "lake"

    def schema(self) -> StructType:
        """The columns asked for, in Spark's types."""
        self._is_inferred = True
        if opts.names_system_table(self.options):
            return system_table_schema(self.options)
        opts.check_names(self.options, (*opts.READ, *opts.READ_STREAM, *opts.CHANGES), what="a read")
        view = opts.open_view(self.options)
        shape = opts.shape(self.options)
        if shape:
            records = opts.selected(records_of(view, shape).schema, self.options)
        else:
            records = result_schema(view.plan(columns=opts.columns(self.options)))
        schema = spark_schema(records)
        check_apart(schema, self.options, what=f"pool {view.config.name!r}")
        if opts.flag(self.options, "changes"):
            return change_schema(schema, pool_name=view.config.name)
        return schema

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of the columns of `schema`."""
        options = dict(self.options)
        if opts.names_system_table(options):
            return SystemTableReader(options, schema)
        if opts.flag(options, "changes"):
            return ChangesReader(options, schema)
        return LakeReader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """A reader of new transactions, with the columns of `schema`."""
        return LakeStreamReader(dict(self.options), schema, is_inferred=self._is_inferred)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """A writer of one transaction."""
        return LakeWriter(dict(self.options), schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """A writer of a transaction for each micro-batch."""
        return LakeStreamWriter(dict(self.options), schema, overwrite=overwrite)
