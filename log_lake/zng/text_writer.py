"""Writes values as readable text, one per line, in the form that the module `text` defines.

`TextWriter` has the same methods as `writer.ZngWriter`.
"""

from __future__ import annotations

from typing import BinaryIO

from log_lake.zng.rows import Batch, Rows, rows_of


class TextWriter:
    """Writes lines to an open file."""

    def __init__(self, output: BinaryIO) -> None:
        self._output = output

    def write(self, values: Rows | Batch) -> None:
        """Writes values, in their order.  Raises Corrupt if bytes are not valid for their type."""
        rows = values if isinstance(values, Rows) else rows_of(values)
        if len(rows):
            lines = "\n".join(map(rows.text, range(len(rows))))
            self._output.write(lines.encode(errors="surrogateescape") + b"\n")

    def close(self) -> None:
        """Does nothing, because text has no end mark."""
