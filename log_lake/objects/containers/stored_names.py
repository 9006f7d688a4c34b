"""Names the columns of key fields that have dots in their names: in a Parquet file such a column has another name
than its field.

A pool with the key `user.id` has a field of that name beside the record `user` (`loading.key_paths`).  Readers
of Iceberg write paths with dots, so they cannot open a file that has both (decision 202).  So every object
stores such a key field under the name `user:id`, and its footer says so.  Above the container only DataFusion's
merge knows this, because it opens files itself.  Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pyarrow as pa

from lake_core.errors import Corrupt
from lake_core.keys import PoolKey


def stored_names(names: Collection[str], key: PoolKey) -> dict[str, str]:
    """Returns, for each key field with a dot in its name, the name of its column, which differs from all other
    `names`."""
    stored: dict[str, str] = {}
    taken = set(names)
    for name in key.names:
        if "." in name and name in taken:
            column = name.replace(".", ":")
            while column in taken:  # bounded by the number of names
                column += ":"
            stored[name] = column
            taken.add(column)
    return stored


def renamed(schema: pa.Schema, names: Mapping[str, str]) -> pa.Schema:
    """Returns the schema with other names for some columns; `names` has the new name of each."""
    return pa.schema([field.with_name(names.get(field.name, field.name)) for field in schema])


def fields_of_columns(columns: Collection[str], stored_as: Mapping[str, str], *, name: str) -> dict[str, str]:
    """Returns the name of the field for each column that has another name in the file `name`.

    Raises Corrupt if the file lacks such a column, or if two columns would be one field.
    """
    fields = {column: field for field, column in stored_as.items()}
    if not fields.keys() <= set(columns) or len({fields.get(c, c) for c in columns}) < len(columns):
        raise Corrupt(f"{name}: the footer is damaged: its names of columns are not those of the file")
    return fields
