"""Writes and reads the list of pools in a checkpoint: one row for each pool, by id, with its configuration as the
value.

The section `dropped` has a row for each dropped pool, with `DroppedPool` as the value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec
import pyarrow as pa
from rpds import HashTrieMap

from lake_core.catalog.state import PoolsState
from lake_core.checkpoints import CheckpointFile, SectionPart
from lake_core.checkpoints.layout import rows
from lake_core.errors import Corrupt
from lake_core.records.decoders import MSGPACK
from lake_core.records.decoding import decoding
from lake_core.records.pools import DroppedPool, PoolConfig

POOL, DROPPED = "pool", "dropped"

T = TypeVar("T")


class PoolsFormat:
    """Writes the list of pools into a checkpoint, and reads it back (`journal.StateFormat`). The list is small and
    is read whole."""

    token_keep = math.inf

    def parts(self, state: PoolsState, *, now: float, forget: int) -> Iterator[SectionPart]:
        """Yields the list of pools as rows."""
        yield from _part(POOL, state.pools.items())
        yield from _part(DROPPED, state.dropped.items())

    def restore(self, file: CheckpointFile) -> PoolsState:
        """Returns the list of pools that the file holds.  Raises Corrupt."""
        pools = _values(file, POOL, PoolConfig)
        dropped = _values(file, DROPPED, DroppedPool)
        names = {pool.name: pool.id for _, pool in pools}
        by_id, gone = dict(pools), dict(dropped)
        if len(names) != len(pools) or not by_id.keys().isdisjoint(gone):
            raise Corrupt(f"{file.name}: two pools have one name, or one folder")
        told = [(id, pool.id) for id, pool in pools] + [(id, one.pool.id) for id, one in dropped]
        if any(id != of_pool for id, of_pool in told):
            raise Corrupt(f"{file.name}: the row of a pool bears the id of another one")
        return PoolsState(HashTrieMap(by_id), HashTrieMap(names), HashTrieMap(gone))

    def check(self, table: pa.Table, section: str, version: int) -> str | None:
        """Returns what is wrong with these rows (a pool without a value); None if nothing is.  Rows of recent ids
        need no value."""
        is_pool = section in (POOL, DROPPED) and "value" in table.column_names
        return "a row has no value" if is_pool and table["value"].null_count else None

    def verify(self, state: PoolsState) -> None:
        """Does nothing: `restore` has decoded everything."""


def _part(section: str, items: Iterable[tuple[str, msgspec.Struct]]) -> Iterator[SectionPart]:
    pairs = sorted(items)
    if pairs:
        values = [msgspec.msgpack.encode(value) for _, value in pairs]
        yield SectionPart(section, "", "", [rows(key=[id.encode() for id, _ in pairs], value=values)])


def _values(file: CheckpointFile, section: str, kind: type[T]) -> list[tuple[str, T]]:
    """Returns the key and the value of each row of a section.  Raises Corrupt."""
    with decoding(file.name, "the row of a pool is damaged"):
        return [
            (key.decode(), MSGPACK.of(kind).decode(value))
            for table in file.scan(section, columns=("key", "value"))
            for key, value in zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True)
        ]
