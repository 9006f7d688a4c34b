"""Compares the counts and checksums that a file states with its records.

A reader that gives fewer records than the file has loses them, and a replace with such a file deletes what it
should renew.  So the reader of each format that counts its records compares: Parquet (rows of the file and of
its row groups, values of each column), ORC (rows of the file), Avro (records and bytes of each block).
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow.parquet as pq

from lake_core.phrases import counted

_DAMAGED = "the file is damaged; write it again, or fetch it again"


def rows_fault(rows: int, promised: int) -> str:
    """Returns the error text if a file has another number of records than it states; otherwise ""."""
    if rows == promised:
        return ""
    return f"it says that it has {counted(promised, 'record')}, but has {rows:,}: {_DAMAGED}"


def footer_fault(parquet: pq.ParquetFile, row_groups: Iterable[int]) -> str:
    """Returns the first contradiction within a Parquet file's footer; "" if it has none.

    Only columns of `row_groups` are checked.  A column has one value per record, or, inside lists and maps, at
    least one.
    """
    footer = parquet.metadata
    rows = sum(footer.row_group(at).num_rows for at in range(footer.num_row_groups))
    if fault := rows_fault(rows, footer.num_rows):
        return fault
    columns = [parquet.schema.column(at) for at in range(len(parquet.schema))]
    for at in row_groups:
        group = footer.row_group(at)
        for number, column in enumerate(columns):
            values, repeats = group.column(number).num_values, column.max_repetition_level > 0
            if values < group.num_rows or (values > group.num_rows and not repeats):
                return (
                    f"row group {at + 1} says that it has {counted(group.num_rows, 'record')}, but its column "
                    f"{column.path!r} has {counted(values, 'value')}: {_DAMAGED}"
                )
    return ""


def block_fault(records: int, bytes_left: int) -> str:
    """Returns the error text for an Avro block in which `bytes_left` bytes follow its last record; "" if none
    follow."""
    if not bytes_left:
        return ""
    return (
        f"it says that it has {counted(records, 'record')}, but they leave {counted(bytes_left, 'byte')} "
        f"of it: {_DAMAGED}"
    )
