"""Makes the content of files for tests."""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


def as_bytes(content: str | bytes | list[Any]) -> bytes:
    """Returns the bytes of a file: text or bytes unchanged, a list as NDJSON."""
    if isinstance(content, list):
        content = "".join(json.dumps(record) + "\n" for record in content)
    return content.encode() if isinstance(content, str) else content


def parquet(table: pa.Table, **options: Any) -> bytes:
    """A Parquet file of the table."""
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def pool_settings(settings: dict[str, str]) -> dict[str, str]:
    """Returns settings with their real names, for keyword arguments of Python: `load_memory` stands for
    `load.memory`."""
    return {name if name == "bad_records" else name.replace("_", ".", 1): v for name, v in settings.items()}
