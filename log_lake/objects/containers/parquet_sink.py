"""Writes a data object as Parquet: chooses the columns that get a dictionary, and writes the tail with its
checksum.

Only columns whose values recur get a dictionary.  On lineitem this is smaller and cheaper to write than
dictionaries for all (decision 12).  Decimals of up to 18 digits are stored as integers, which readers decode
faster than bytes (decision 124).  Called by `objects.write`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import BinaryIO

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lake_core.keys import PoolKey
from log_lake.objects import checksums, metadata
from log_lake.objects.checksums import SummedFile
from log_lake.objects.containers.limits import OBJECT_LIMITS, ObjectLimits
from log_lake.objects.containers.stored_names import stored_names
from log_lake.objects.metadata import ObjectMetadata
from log_lake.objects.weight import leaves_of

_FEW = 256
"""How many records are sampled of an object that has less than a row group. Sampling all of them would take as
long as dictionaries save (decision 25)."""


_LARGEST_DICTIONARY = 1 << 20
"""Bytes. Parquet gives up a dictionary that is larger, and counting its distinct values would copy them all."""


class ParquetSink:
    """A Parquet file that is being written."""

    def __init__(self, file: SummedFile, first: pa.Table, *, key: PoolKey, limits: ObjectLimits) -> None:
        self._file = file
        self._stored_as = stored_names(first.schema.names, key)
        self._parquet = parquet_writer(
            file, self._renamed(first), key=key, stored_as=self._stored_as, limits=limits
        )

    def write(self, table: pa.Table, groups: Sequence[int]) -> None:
        """Writes the records as row groups of these sizes."""
        table = self._renamed(table)
        at = 0
        for size, run in groupby(groups[:-1]):  # one call for groups of one size; a smaller one may end it
            count = size * len(list(run))
            if at + count + groups[-1] == table.num_rows and groups[-1] <= size:
                count += groups[-1]
            self._parquet.write_table(table.slice(at, count), row_group_size=size)
            at += count
        if at < table.num_rows:
            self._parquet.write_table(table.slice(at), row_group_size=groups[-1])

    def finish(self, described: ObjectMetadata) -> None:
        """Writes the footer, with the metadata and the checksums."""
        data_end, blocks = self._file.begin_tail()
        described = msgspec.structs.replace(
            described,
            version=max(described.version, metadata.NAMED_VERSION if self._stored_as else 0),
            data_end=data_end,
            blocks=blocks,
            stored_as=self._stored_as,
        )
        self._parquet.add_key_value_metadata(
            {metadata.KEY: metadata.encode(described), checksums.KEY: checksums.NOTHING_YET}
        )
        self._parquet.close()
        self._file.end_tail()

    def _renamed(self, table: pa.Table) -> pa.Table:
        names = self._stored_as
        return (
            table.rename_columns([names.get(name, name) for name in table.schema.names]) if names else table
        )

    def close(self) -> None:
        """Closes pyarrow's writer, whether or not it finished the file."""
        self._parquet.close()


def parquet_writer(
    file: BinaryIO | SummedFile,
    first: pa.Table,
    *,
    key: PoolKey,
    stored_as: Mapping[str, str] | None = None,
    limits: ObjectLimits = OBJECT_LIMITS,
) -> pq.ParquetWriter:
    """Returns a writer for tables like `first`; the values of `first` decide which columns get a dictionary.

    `stored_as`: the column names of those key fields whose columns have other names.
    """
    leaves, names = leaves_of(first.schema), stored_as or {}
    columns = [names.get(field.name, field.name) for field in key.fields]
    sorting = [
        pq.SortingColumn(leaves[column].start, descending=field.descending, nulls_first=True)
        for column, field in zip(columns, key.fields, strict=True)
        if column in leaves
    ]
    if len(sorting) < len(columns):  # no promise that the file does not keep
        sorting = []
    return pq.ParquetWriter(
        file,
        first.schema,
        compression="zstd",
        write_page_index=True,
        write_page_checksum=True,
        store_decimal_as_integer=True,
        sorting_columns=sorting or None,
        use_dictionary=_recurring(
            first.slice(0, limits.row_group if first.num_rows >= limits.row_group else _FEW)
        ),
    )


def _recurring(sample: pa.Table) -> list[str]:
    """Returns the columns whose values recur. Of records and lists, all members count as recurring, without a look
    at their values."""
    chosen: list[str] = []
    for column, kept in zip(sample.schema, sample.columns, strict=True):
        if pa.types.is_nested(column.type):
            chosen += _leaves(column)
        elif not pa.types.is_null(column.type) and _recurs(kept):
            chosen.append(column.name)
    return chosen


def _recurs(sample: pa.ChunkedArray) -> bool:
    """Whether there are fewer than half as many distinct values as records."""
    nulls = sample.null_count
    if len(sample) < 3:
        return nulls == len(sample)
    if (pa.types.is_string(sample.type) or pa.types.is_binary(sample.type)) and (
        sample.nbytes > _LARGEST_DICTIONARY
        and (pc.max(pc.binary_length(sample)).as_py() or 0) > _LARGEST_DICTIONARY
    ):
        return False
    return (len(sample.unique()) - (nulls > 0)) * 2 < len(sample)


def _leaves(column: pa.Field, prefix: str = "") -> list[str]:
    """Returns the Parquet paths of the plain columns inside of a nested one."""
    path = f"{prefix}{column.name}"
    if pa.types.is_struct(column.type):
        return [leaf for member in column.type for leaf in _leaves(member, f"{path}.")]
    if pa.types.is_list(column.type):
        return _leaves(column.type.value_field.with_name("element"), f"{path}.list.")
    if pa.types.is_map(column.type):
        entries = (column.type.key_field.with_name("key"), column.type.item_field.with_name("value"))
        return [leaf for member in entries for leaf in _leaves(member, f"{path}.key_value.")]
    return [path]
