"""The pools in which dlt keeps its own state: versions of schemas, finished load packages, states of pipelines.

A fresh machine restores a pipeline from them.  The first two are upsert pools, so writing a record again changes
nothing.  The third is a table of the load packages; its records count once their package is finished.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from dlt.common.destination.client import StateInfo, StorageSchemaInfo
from dlt.common.schema import Schema

from lake_core.errors import Corrupt
from lake_core.keys import KeyField, PoolKey
from log_lake.dlt.dataset import DatasetPools
from log_lake.dlt.tables import PoolShape

INSTANT = pa.timestamp("us", "UTC")

MOST_STATE = 64 << 20
"""Bytes of the state of a pipeline.  dlt unpacks what is stored without a bound."""


def _check_state(text: str, *, what: str) -> None:
    """Raises Corrupt if a stored state would be too large when it is unpacked.  A state that is not packed passes:
    dlt reads it itself."""
    unpacking = zlib.decompressobj()
    try:
        unpacking.decompress(b64decode(text, validate=True), MOST_STATE)
    except (ValueError, zlib.error):
        return
    if unpacking.unconsumed_tail:
        raise Corrupt(f"{what}: the state of a pipeline has more than {MOST_STATE:,} bytes")


@dataclass(frozen=True)
class OwnPools:
    """The pools of a dataset in which dlt keeps its own state (schemas, load packages, states of pipelines).

    `schema` is the pipeline's schema; its naming convention spells the fields of these pools.
    """

    dataset: DatasetPools
    schema: Schema

    def shape(self, table: str) -> PoolShape | None:
        """Returns the key and kind of the pool for one of dlt's own tables; None for another table."""
        schema = self.schema
        shapes = {
            schema.version_table_name: (("schema_name", "version_hash"), "upsert"),
            schema.loads_table_name: (("load_id", "schema_name"), "upsert"),
            schema.state_table_name: (("pipeline_name", "_dlt_load_id"), "append"),
        }
        if table not in shapes:
            return None
        names, kind = shapes[table]
        return PoolShape(PoolKey(tuple(KeyField(self._spelled(name)) for name in names)), kind)

    def note_schema(self) -> None:
        """Stores the schema as the newest version of its name."""
        schema = self.schema
        version = {
            "version": pa.array([schema.version], pa.int64()),
            "engine_version": pa.array([schema.ENGINE_VERSION], pa.int64()),
            "inserted_at": self._now(),
            "schema_name": pa.array([schema.name]),
            "version_hash": pa.array([schema.stored_version_hash]),
            "schema": pa.array([json.dumps(schema.to_dict())]),
        }
        self._write(schema.version_table_name, version, message=f"dlt: schema {schema.name}")

    def note_load(self, load_id: str) -> None:
        """Records that a load package is finished."""
        schema = self.schema
        load = {
            "load_id": pa.array([load_id]),
            "schema_name": pa.array([schema.name]),
            "status": pa.array([0], pa.int64()),
            "inserted_at": self._now(),
            "schema_version_hash": pa.array([schema.version_hash]),
        }
        self._write(schema.loads_table_name, load, message=f"dlt: load package {load_id} is finished")

    def forget_schema(self) -> None:
        """Deletes all versions of the schema."""
        pool = self.dataset.pool(self.schema.version_table_name)
        view = pool.at() if pool is not None else None
        if pool is None or view is None or not view.references:
            return
        versions = view.get([self.schema.name])
        pool.branch().delete_keys(versions.select(list(view.key.names)), reason="dlt: tables are dropped")

    def newest_schema(self, name: str | None) -> StorageSchemaInfo | None:
        """Returns the newest stored version of the schema with this name; with None, the newest version of any
        schema."""
        rows = self._rows(self.schema.version_table_name, [name] if name else [])
        newest = max(rows, key=lambda row: row[self._spelled("inserted_at")], default=None)
        return None if newest is None else self._schema_info(newest)

    def schema_of_hash(self, version_hash: str) -> StorageSchemaInfo | None:
        """Returns the stored version of this schema that has the given hash; None if no version has it."""
        rows = self._rows(self.schema.version_table_name, [self.schema.name, version_hash])
        return self._schema_info(rows[0]) if rows else None

    def newest_state(self, pipeline: str) -> StateInfo | None:
        """Returns the state of a pipeline from the newest of its finished load packages."""
        load_id = self._spelled("_dlt_load_id")
        states = self._rows(self.schema.state_table_name, [pipeline])
        for row in sorted(states, key=lambda row: str(row[load_id]), reverse=True):
            if self._rows(self.schema.loads_table_name, [row[load_id]]):
                info = StateInfo.from_normalized_mapping(row, self.schema.naming)
                _check_state(
                    info.state, what=f"pool {self.dataset.pool_name(self.schema.state_table_name)!r}"
                )
                return info
        return None

    def _rows(self, table: str, key: list[object]) -> list[dict[str, Any]]:
        """Returns the records of a pool whose keys begin with the values `key`; all records if `key` is
        empty."""
        pool = self.dataset.pool(table)
        view = pool.at() if pool is not None else None
        if view is None or not view.references:
            return []
        return (view.get(key) if key else view.to_table()).to_pylist()

    def _write(self, table: str, columns: Mapping[str, pa.Array], *, message: str) -> None:
        shape = self.shape(table)
        assert shape is not None
        records = pa.table({self._spelled(name): array for name, array in columns.items()})
        self.dataset.made(table, shape).branch().append(records, message=message)

    def _now(self) -> pa.Array:
        return pa.array([int(self.dataset.lake.context.now() * 1_000_000)], pa.int64()).cast(INSTANT)

    @property
    def _spelled(self) -> Callable[[str], str]:
        return self.schema.naming.normalize_identifier

    def _schema_info(self, row: dict[str, Any]) -> StorageSchemaInfo:
        return StorageSchemaInfo.from_normalized_mapping(row, self.schema.naming)
