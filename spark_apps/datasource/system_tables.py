"""The lake's own tables in Spark: `load("flights:log")`, `"flights@7:references"`, `"lake:pools"`.

The table is made when the read is planned, and handed to the task as it is: one task, or one for each
`ROWS_PER_TASK` rows, so that Spark is never given one huge message.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from log_lake.system_tables.names import system_schema, system_table
from spark_apps.datasource import options as opts
from spark_apps.datasource.to_spark import to_batches
from spark_apps.datasource.types import arrow_schema, spark_schema

ROWS_PER_TASK = 262_144
"""The most rows that one task gets.  They are sent with the task itself."""


@dataclass
class RowsPartition(InputPartition):
    """Some rows of one of the lake's own tables, which one task gets as an Arrow stream."""

    data: bytes


def system_table_schema(options: opts.Options) -> StructType:
    """Returns the columns that the options ask for, in Spark's types.  Raises NotFound, InvalidInput."""
    opts.check_names(options, opts.SYSTEM_TABLE, what="a read of one of the lake's own tables")
    return spark_schema(opts.selected(system_schema(opts.table_name(options)), options))


class SystemTableReader(DataSourceReader):
    """Reads one of the lake's own tables while the read is planned, and gives its rows to the tasks."""

    def __init__(
        self, options: opts.Options, schema: StructType, *, rows_per_task: int = ROWS_PER_TASK
    ) -> None:
        self._schema = schema
        self._rows = rows_per_task
        name, at = opts.table_name(options), options.get("at")
        pool_name, colon, kind = name.rpartition(":")
        self._name = f"{pool_name}@{at}{colon}{kind}" if at and "@" not in name else name
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """Returns the rows of the table, in their order, divided among the tasks."""
        table = system_table(opts.open_lake(self._options), self._name)
        firsts = range(0, max(1, table.num_rows), self._rows)
        return [RowsPartition(_encoded(table.slice(first, self._rows))) for first in firsts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the rows of one task."""
        assert isinstance(partition, RowsPartition)
        with pa.ipc.open_stream(partition.data) as rows:
            yield from to_batches(rows.read_all(), arrow_schema(self._schema))


def _encoded(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue().to_pybytes())
