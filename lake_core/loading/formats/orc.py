"""ORC: typed, read a stripe at a time by Arrow's reader."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from lake_core.loading.block import Block, Reading
from lake_core.loading.declared import declared_columns
from lake_core.loading.formats.promises import rows_fault
from lake_core.loading.opening import open_seekable
from lake_core.objects.limits import schema_fault


def read_orc(reading: Reading) -> Iterator[Block]:
    """The file's records, in blocks; raises InvalidInput."""
    from pyarrow import orc  # few files are ORC, and loading it takes time

    with open_seekable(reading) as opened:
        with _naming(reading):
            file = orc.ORCFile(pa.PythonFile(opened, mode="r"))
            fault = schema_fault(file.schema)
        if fault:
            reading.unreadable(0, fault)
        rows = 0
        for stripe in range(file.nstripes):
            with _naming(reading):
                table = pa.Table.from_batches([file.read_stripe(stripe)])
            rows += table.num_rows
            yield Block(declared_columns(table, reading.declared, source=reading.file))
        if fault := rows_fault(rows, file.nrows):
            reading.unreadable(0, fault)


@contextmanager
def _naming(reading: Reading) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, NotImplementedError) as error:
        reading.unreadable(0, f"not a readable ORC file: {error}")
