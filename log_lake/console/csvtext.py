"""Records as lines of CSV: every value as the lake writes it, so that a load reads back the same value.

Text and bytes have quotes, other values have none.  A null is empty, without quotes, so it differs from an empty
text.  Nested values and JSON are JSON in quotes.  A line with a single null is `""`, because readers skip empty
lines.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lake_core.values.types import is_json
from log_lake.columns.json_text import shown


def csv_header(names: Sequence[str]) -> bytes:
    """Returns the line that names the columns."""
    return (",".join('"' + name.replace('"', '""') + '"' for name in names) + "\n").encode()


def csv_lines(table: pa.Table) -> pa.ChunkedArray:
    """Returns one line of CSV per record."""
    lines = []
    for batch in table.to_batches():
        cells = [_cells(column, field) for field, column in zip(batch.schema, batch.columns, strict=True)]
        if len(cells) == 1:
            lines.append(pc.fill_null(cells[0], '""'))
        elif cells:
            lines.append(
                pc.binary_join_element_wise(*cells, ",", null_handling="replace", null_replacement="")
            )
    return pa.chunked_array(lines, pa.string())


def _cells(array: pa.Array, field: pa.Field) -> pa.Array:
    kind = field.type
    if pa.types.is_string(kind) and not is_json(field):
        return _quoted(array)
    text = shown(pa.chunked_array([array]), field).combine_chunks()
    if is_json(field) or pa.types.is_nested(kind):
        return _quoted(text)
    bare = pc.utf8_trim(text, '"')
    return _quoted(bare) if pa.types.is_binary(kind) else bare


def _quoted(text: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', pc.replace_substring(text, '"', '""'), '"', "")
