"""The list of pools as a checkpoint holds it: one row for each pool, by id, with its configuration as the value.

The section `dropped` has a row for each dropped pool, with `DroppedPool` as the value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec
from rpds import HashTrieMap

from lake_core.catalog.state import PoolsState
from lake_core.checkpoints import CheckpointFile, Part
from lake_core.checkpoints.layout import rows
from lake_core.errors import Corrupt
from lake_core.records.pools import DroppedPool, PoolConfig

POOL, DROPPED = "pool", "dropped"

T = TypeVar("T")


class PoolsFormat:
    """How the list of pools is written and read (`journal.StateFormat`); it is small and read whole."""

    token_keep = math.inf

    def parts(self, state: PoolsState, *, now: float, forget: int) -> Iterator[Part]:
        """The list of pools as rows."""
        yield from _part(POOL, state.pools.items())
        yield from _part(DROPPED, state.dropped.items())

    def restore(self, file: CheckpointFile) -> PoolsState:
        """The list of pools that the file holds.  Raises Corrupt."""
        try:
            pools = _values(file, POOL, PoolConfig)
            dropped = _values(file, DROPPED, DroppedPool)
        except msgspec.DecodeError as error:
            raise Corrupt(f"{file.name}: the row of a pool is damaged: {error}") from error
        return PoolsState(
            HashTrieMap({p.id: p for p in pools}),
            HashTrieMap({p.name: p.id for p in pools}),
            HashTrieMap({d.pool.id: d for d in dropped}),
        )


def _part(section: str, items: Iterable[tuple[str, msgspec.Struct]]) -> Iterator[Part]:
    pairs = sorted(items)
    if pairs:
        values = [msgspec.msgpack.encode(value) for _, value in pairs]
        yield Part(section, "", "", [rows(key=[id.encode() for id, _ in pairs], value=values)])


def _values(file: CheckpointFile, section: str, kind: type[T]) -> list[T]:
    return [
        msgspec.msgpack.decode(value, type=kind)
        for table in file.scan(section, columns=("key", "value"))
        for value in table["value"].to_pylist()
    ]
