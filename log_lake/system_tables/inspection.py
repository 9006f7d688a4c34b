"""Decodes any object of the lake for people: `lake inspect NAME`.

Names are those of docs/format.md, relative to the lake.  Byte strings are shown in hex, or decoded if they are
a schema or text.  A checkpoint may hold a million references, so only its small sections (branches, tags, the
closing row, schemas, pools) are shown row by row.  Of the other sections, the size and the first and last key
are shown.
"""

from __future__ import annotations

import itertools
import json
from typing import Any

import msgspec

from lake_core import naming
from lake_core.catalog.checkpoint import POOL
from lake_core.checkpoints import CheckpointFile
from lake_core.checkpoints.layout import RowGroup
from lake_core.errors import CheckpointGone, InvalidInput, NotFound, ObjectMissing
from lake_core.history.checkpoint import BRANCH, CLOSING, FORK, SCHEMA, TAG, BranchRow, ForkRow
from lake_core.history.group_commit.requests import DraftRequest
from lake_core.history.rows import POINT
from lake_core.history.snapshot.fixed import REFERENCE
from lake_core.history.state import Closing, Tag
from lake_core.records import Entry, PoolsEntry
from lake_core.records.codec import Codec
from lake_core.records.decoders import MSGPACK
from lake_core.records.decoding import decoding
from lake_core.records.pools import PoolConfig
from lake_core.schemas.schema import stored_schema
from lake_core.store import Store
from lake_core.store.port import is_inside
from lake_core.values.types import show_type
from log_lake.objects.failures import reading
from log_lake.objects.read import DataObject
from log_lake.zng.zst.reader import ZstFile

_SHOWN = {BRANCH: BranchRow, CLOSING: Closing, FORK: ForkRow, POOL: PoolConfig, TAG: Tag}
"""The type of the values, for each section that is shown row by row; values of `schema` are Arrow's."""


def inspect_object(store: Store, name: str) -> Any:
    """Returns the object as JSON values.  Raises NotFound, Corrupt, Unavailable, InvalidInput (a name of no
    object)."""
    if not is_inside(name):
        raise InvalidInput(
            f"object {name!r}: a name has no empty part, '.' or '..'; write it as the lake lists it"
        )
    with reading(f"{store.uri}/{name}", "cannot be shown"):
        return _inspected(store, name)


def _inspected(store: Store, name: str) -> Any:
    if naming.checkpoint_version(name) is not None:
        return _checkpoint(store, name)
    if (object_id := naming.data_id(name)) is not None:
        return _data_object(store, name, object_id) | _maps(store, name, object_id)
    data = store.get(name)
    if data is None:
        raise _missing(store, name)
    if name == naming.LAKE_FILE:
        return json.loads(data)
    about = {"name": name, "bytes": len(data)}
    if naming.is_request(name):
        return about | _framed(DraftRequest, data, name)
    version = naming.entry_version(name)
    if version is not None:
        of_pools = name.startswith(naming.POOLS_JOURNAL + "/")
        return {"name": name, "version": version, "bytes": len(data)} | _framed(
            PoolsEntry if of_pools else Entry, data, name
        )
    fence = naming.fence_version(name)
    if fence is not None:  # the name alone counts; that the content agrees is for people to see
        about["fence"] = fence
    return about | {"text": data[:200].decode(errors="replace")}


def _missing(store: Store, name: str) -> NotFound:
    return NotFound(
        f"object {name!r} does not exist in {store.uri}; names are like <pool-id>/journal/<20 digits>.txn "
        "(lake show POOL prints the id)"
    )


def _framed(kind: type[Any], data: bytes, name: str) -> dict[str, Any]:
    """Returns the content after the magic bytes, decoded."""
    return _values(Codec[Any](kind).decode(data, name=name))


def _values(record: Any) -> dict[str, Any]:
    """Returns a record's fields as JSON values."""
    values: dict[str, Any] = _plain(msgspec.to_builtins(record, builtin_types=(bytes,)))
    return values


def _checkpoint(store: Store, name: str) -> dict[str, Any]:
    try:
        file = CheckpointFile(store, name)
    except CheckpointGone as error:
        raise _missing(store, name) from error
    footer = file.footer
    shown: dict[str, dict[str, Any]] = {}
    for section in (BRANCH, FORK, TAG, CLOSING, SCHEMA, POOL):
        for table in file.scan(section):
            for key, value in zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True):
                shown.setdefault(section, {})[key.decode()] = _row(section, value, name)
    return {
        "name": name,
        "version": footer.version,
        "bytes": store.open_input(name).size(),
        "format": footer.format_version,
        "journal": footer.journal,
        "id": footer.id,
        "rows": sum(group.rows for group in footer.groups),
        "parts": [
            _part(list(groups))
            for _, groups in itertools.groupby(footer.groups, key=lambda g: (g.section, g.branch, g.sub_pool))
        ],
        **shown,
    }


def _row(section: str, value: bytes, name: str) -> Any:
    """Returns the decoded value of a row, in a section that is shown row by row."""
    if section == SCHEMA:
        return _plain(value, "arrow")
    with decoding(name, f"the row of a {section} is damaged"):
        return _values(MSGPACK.of(_SHOWN[section]).decode(value))


def _part(groups: list[RowGroup]) -> dict[str, Any]:
    """Describes rows of one section, branch and sub-pool.  Keys of references and split points are shown in
    hex."""
    first, last = groups[0], groups[-1]

    def show(key: bytes) -> str:
        return key.hex() if first.section in (REFERENCE, POINT) else key.decode(errors="replace")

    return {
        "section": first.section,
        "branch": first.branch,
        "sub_pool": first.sub_pool,
        "rows": sum(group.rows for group in groups),
        "row_groups": len(groups),
        "first": show(first.first),
        "last": show(last.last),
    }


def _data_object(store: Store, name: str, object_id: str) -> dict[str, Any]:
    try:
        opened = DataObject(store, pool_id=name.partition("/")[0], object_id=object_id)
    except ObjectMissing as error:
        raise _missing(store, name) from error
    with opened as data:
        return {
            "name": name,
            "bytes": data.size,
            "row_groups": len(data.group_rows),
            "fields": {f.name: show_type(f) for f in data.schema},
            "lake": _plain(msgspec.to_builtins(data.metadata, builtin_types=(bytes,))),
        }


def _maps(store: Store, name: str, object_id: str) -> dict[str, Any]:
    """Returns the maps of an object in columns as text: how records are put together from its columns."""
    if naming.format_of(object_id) != naming.ZST:
        return {}
    with store.open_input(name) as file:
        return {"maps": list(ZstFile.open(file, name=name).lines())}


def _plain(value: Any, key: str = "") -> Any:
    """Returns the value with its byte strings as text."""
    if isinstance(value, bytes):
        if key in {"arrow", "schemas"}:
            return {f.name: show_type(f) for f in stored_schema(value)}
        return value.hex()
    if isinstance(value, dict):
        return {k: _plain(v, k) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v, key) for v in value]
    return value
