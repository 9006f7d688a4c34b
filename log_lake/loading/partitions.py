"""Adds the fields that the folders of a file give to its records: `.../year=2026/month=11/part.csv`.

Used only with `partitions=hive`.  Values are decoded as URLs; Hive's word for null means null.  Types are
inferred over all files of a load, as for a CSV column, unless the pool declares them.  If the file itself has
the field, the folder's value is ignored.  Called by `lake.files`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import unquote

import pyarrow as pa

from lake_core.errors import InvalidInput
from lake_core.schemas.limits import name_fault
from log_lake.loading.formats.csv_types import Narrowing, read_as

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
        if field.name in table.schema.names:
            continue
        wrong: dict[int, str] = {}
        value = read_as(pa.chunked_array([pa.array([text], pa.string())]), field, wrong)
        if wrong:
            raise InvalidInput(f"{file}: in a folder's name: {wrong[0]}")
        table = table.append_column(field, value.take(pa.array([0] * table.num_rows, pa.int64())))
    return table
