"""Finds the records of inlined objects in the bytes of a pool's journal, by Arrow alone."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lake_core.store import Store

MARK = b"PAR1"


def rows_in_journal(store: Store, pool_id: str) -> dict[str, list[dict[str, Any]]]:
    """Returns for each entry, checkpoint and request, by name, the records of all Parquet files in its
    bytes."""
    found: dict[str, list[dict[str, Any]]] = {}
    for info in store.list(f"{pool_id}/journal"):
        files = files_in(info.name, store.get(info.name) or b"")
        if rows := [row for file in files for row in file.read().to_pylist()]:
            found[info.name] = rows
    return found


def files_in(name: str, data: bytes) -> Iterator[pq.ParquetFile]:
    """Yields every whole Parquet file in the bytes of a stored thing of a journal."""
    if name.endswith(".checkpoint"):
        values = pq.read_table(io.BytesIO(data))["value"].to_pylist()
        data = b"".join(value or b"" for value in values)
    begin = data.find(MARK)
    while begin >= 0:
        end = data.find(MARK, begin + len(MARK))
        while end >= 0:
            with contextlib.suppress(pa.ArrowException, OSError):  # the mark lies within a value
                yield pq.ParquetFile(io.BytesIO(data[begin : end + len(MARK)]))
                begin = end
                break
            end = data.find(MARK, end + len(MARK))
        begin = data.find(MARK, begin + len(MARK))


def object_of(file: pq.ParquetFile) -> str:
    """The id of the data object, from its footer."""
    return str(json.loads(file.metadata.metadata[b"lake"])["object"])
