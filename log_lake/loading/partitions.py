"""Adds the fields that the folders of a file give to its records: `.../year=2026/month=11/part.csv`.

Used only with `partitions=hive`.  Values are decoded as URLs; Hive's word for null means null.  Types are
inferred over all files of a load, as for a CSV column, unless the pool declares them.  A value that the file
itself has stays; records without one get the folder's, whatever the other records have.  Called by `lake.files`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lake_core.errors import InvalidInput
from lake_core.schemas.limits import name_fault
from lake_core.schemas.schema import unite_fields
from log_lake.columns.cast import cast_table
from log_lake.loading.formats.csv_types import Narrowing, read_as
from log_lake.objects.normalize import normalized

_NULL = "__HIVE_DEFAULT_PARTITION__"


def folder_values(file: str) -> dict[str, str | None]:
    """Returns the values that the folders in a file's name give, by field.  Raises InvalidInput for a folder that
    gives no valid value."""
    values: dict[str, str | None] = {}
    for folder in file.split("/")[:-1]:
        name, equals, value = folder.partition("=")
        if not equals:
            continue
        try:
            name, value = unquote(name, errors="strict"), unquote(value, errors="strict")
        except UnicodeDecodeError as error:
            raise InvalidInput(
                f"{file}: folder {folder!r}: its bytes behind % are not UTF-8; rename it, or load without "
                "--partitions hive"
            ) from error
        if fault := name_fault(name):
            raise InvalidInput(f"{file}: folder {folder!r}: {fault}")
        if name in values:
            raise InvalidInput(
                f"{file}: folder {folder!r}: an earlier folder gives field {name!r} too; rename one, or "
                "load without --partitions hive"
            )
        values[name] = None if value == _NULL else value
    return values


def partition_fields(
    files: Iterable[str], declared: Mapping[str, pa.Field]
) -> dict[str, tuple[tuple[pa.Field, str | None], ...]]:
    """Returns, for each file, the fields of its folders with their values as text.  Their types fit the values of
    all files."""
    values = {file: folder_values(file) for file in files}
    kinds: dict[str, Narrowing] = {}
    for of_file in values.values():
        for name, text in of_file.items():
            kinds.setdefault(name, Narrowing()).see(pa.chunked_array([pa.array([text], pa.string())]))
    fields = {name: declared.get(name) or pa.field(name, narrowing.kind) for name, narrowing in kinds.items()}
    return {
        file: tuple((fields[name], text) for name, text in of_file.items())
        for file, of_file in values.items()
    }


def with_constants(
    table: pa.Table, constants: tuple[tuple[pa.Field, str | None], ...], file: str
) -> pa.Table:
    """Returns the records with the fields of their file's folders.  Raises InvalidInput if a text does not fit its
    type."""
    for field, text in constants:
        wrong: dict[int, str] = {}
        value = read_as(pa.chunked_array([pa.array([text], pa.string())]), field, wrong)
        if wrong:
            raise InvalidInput(f"{file}: in a folder's name: {wrong[0]}")
        column = value.take(pa.array([0] * table.num_rows, pa.int64()))
        at = table.schema.get_field_index(field.name)
        table = table.append_column(field, column) if at < 0 else _filled(table, at, field, column, file)
    return table


def _filled(table: pa.Table, at: int, field: pa.Field, column: pa.ChunkedArray, file: str) -> pa.Table:
    """Returns the records, whose column `at` has the values of `column` where it was null.

    The type becomes the narrowest that holds both, as if these were records of two files.
    """
    own = table.column(at)
    if not own.null_count or column.null_count:
        return table
    both = pa.schema([unite_fields(field, table.schema.field(at))])
    stored = normalized(pa.table([own], schema=pa.schema([table.schema.field(at)])))
    mine = cast_table(stored, both, what=file).column(0)
    given = cast_table(pa.table([column], schema=pa.schema([field])), both, what=file).column(0)
    rows = pc.if_else(pc.is_null(own), pc.add(np.arange(len(own)), len(own)), np.arange(len(own)))
    filled = pa.chunked_array([*mine.chunks, *given.chunks], both.field(0).type).take(rows)
    return table.set_column(at, both.field(0), filled)
