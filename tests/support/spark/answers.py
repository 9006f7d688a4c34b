"""Checks that Spark and the lake return the same records: compares them as Arrow, column by column, in order.

Fields of JSON are compared by the values that they hold, because in Spark they are variants.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from lake_core.values.types import is_json


def read(df: Any) -> pa.Table:
    """All rows of a data frame, in their order; variants as JSON text."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import VariantType

    return df.select(
        [
            f.to_json(_column(field.name)).alias(field.name)
            if isinstance(field.dataType, VariantType)
            else _column(field.name)
            for field in df.schema
        ]
    ).toArrow()


def _column(name: str) -> Any:
    from pyspark.sql import functions as f

    return f.col("`" + name.replace("`", "``") + "`")


def assert_same(found: pa.Table, expected: pa.Table) -> None:
    """Compares `found`, which Spark returned, with `expected`, which the lake returned."""
    assert found.schema.names == expected.schema.names
    assert found.num_rows == expected.num_rows
    for field, theirs, ours in zip(expected.schema, found.columns, expected.columns, strict=True):
        assert plain(theirs, field) == plain(ours, field), field


def plain(column: pa.ChunkedArray, field: pa.Field) -> Any:
    """A column's values in a form that can be compared with ==."""
    if is_json(field):
        return [None if text is None else json.loads(text) for text in column.to_pylist()]
    if pa.types.is_nested(field.type):
        return column.to_pylist()
    if pa.types.is_null(field.type):
        return [column.null_count, len(column)]
    return column.cast(field.type).combine_chunks()
