"""Any object of the lake, decoded for people: `lake inspect NAME`.

Names are those of docs/format.md, relative to the lake.  Byte strings are shown in hex, or decoded where
they are a schema.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from lake_core import naming
from lake_core.errors import Corrupt, NotFound
from lake_core.objects import metadata
from lake_core.objects.types import show_type
from lake_core.records import Entry, PoolsEntry
from lake_core.records.codec import Codec
from lake_core.store import Store


def inspect_object(store: Store, name: str) -> Any:
    """The object as JSON values; raises NotFound, Corrupt."""
    data = store.get(name)
    if data is None:
        raise NotFound(
            f"object {name!r} does not exist in {store.uri}; names are like <pool-id>/journal/<20 digits>.txn"
        )
    if name == naming.LAKE_FILE:
        return json.loads(data)
    if name.endswith(".parquet"):
        return _data_object(data, name)
    n = naming.entry_number(name)
    if n is None:
        return {"name": name, "bytes": len(data), "text": data[:200].decode(errors="replace")}
    kind: type[Entry] | type[PoolsEntry] = (
        PoolsEntry if name.startswith(naming.POOLS_JOURNAL + "/") else Entry
    )
    entry = Codec[Any](kind).decode(data, name=name)
    return {"name": name, "n": n, "bytes": len(data)} | _plain(
        msgspec.to_builtins(entry, builtin_types=(bytes,))
    )


def _data_object(data: bytes, name: str) -> dict[str, Any]:
    try:
        parquet = pq.ParquetFile(pa.BufferReader(data))
    except pa.ArrowInvalid as error:
        raise Corrupt(f"{name}: not a readable Parquet file: {error}") from error
    described = metadata.decode((parquet.metadata.metadata or {}).get(metadata.KEY), name=name)
    return {
        "name": name,
        "bytes": len(data),
        "row_groups": parquet.num_row_groups,
        "fields": {f.name: show_type(f) for f in parquet.schema_arrow},
        "lake": _plain(msgspec.to_builtins(described, builtin_types=(bytes,))),
    }


def _plain(value: Any, key: str = "") -> Any:
    """Byte strings as text."""
    if isinstance(value, bytes):
        if key == "arrow":
            schema = pa.ipc.read_schema(pa.py_buffer(value))
            return {f.name: show_type(f) for f in schema}
        return value.hex()
    if isinstance(value, dict):
        return {k: _plain(v, k) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value
