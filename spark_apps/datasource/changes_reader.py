"""A batch read of changes: the result of the stream of changes for one part of the history."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from lake_core.errors import InvalidInput
from log_lake.lake.pool import Pool
from spark_apps.datasource import options as opts
from spark_apps.datasource.stream_reader import LakeStreamReader

SINCE, UNTIL = "since", "until"


class ChangesReader(DataSourceReader):
    """Reads the changes after `since` up to `until`, which are fixed when the read is planned."""

    def __init__(self, options: opts.Options, schema: StructType, *, told: pa.Schema | None) -> None:
        opts.check_names(options, opts.CHANGES, what="a read of changes")
        self._options = {name: value for name, value in options.items() if name not in (SINCE, UNTIL)}
        self._schema, self._told = schema, told
        pool = opts.open_pool(options, what="read changes of")
        self._pool_id = pool.config.id
        self._since, self._until = part_of_history(pool, options)

    def partitions(self) -> Sequence[InputPartition]:
        """Returns the tasks of the read, in the order of the changes."""
        begin, end = (
            {"pool": self._pool_id, "since": self._since, "version": version}
            for version in (self._since, self._until)
        )
        return self._stream().partitions(begin, end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the changes of one task, in order."""
        return self._stream().read(partition)

    def _stream(self) -> LakeStreamReader:
        return LakeStreamReader(self._options, self._schema, told=self._told, pool_id=self._pool_id)


def part_of_history(pool: Pool, options: opts.Options) -> tuple[int, int]:
    """Returns the versions after which, and up to which, the options ask for changes.

    Each option may name any revision; 0 is the beginning.  Raises NotFound, InvalidInput.
    """
    since, until = options.get(SINCE) or "0", options.get(UNTIL) or opts.branch_name(options)
    first = 0 if since == "0" else pool.at(since).version
    last = 0 if until == "0" else pool.at(until).version
    if first > last:
        raise InvalidInput(f"since={since} is after until={until}; exchange them")
    return first, last
