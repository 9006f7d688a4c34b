"""The list of pools as a checkpoint holds it: one row for each pool, by id, with its configuration as the value."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from rpds import HashTrieMap

from lake_core.catalog.state import PoolsState
from lake_core.checkpoints import CheckpointFile, Part
from lake_core.checkpoints.layout import rows
from lake_core.errors import Corrupt
from lake_core.records.pools import PoolConfig

POOL = "pool"


class PoolsFormat:
    """How the list of pools is written and read (`journal.StateFormat`); it is small and read whole."""

    def parts(self, state: PoolsState, *, now: float) -> Iterator[Part]:
        """The list of pools as rows."""
        pools = sorted(state.pools.items())
        if pools:
            values = [msgspec.msgpack.encode(pool) for _, pool in pools]
            yield Part(POOL, "", "", [rows(key=[id.encode() for id, _ in pools], value=values)])

    def restore(self, file: CheckpointFile) -> PoolsState:
        """The list of pools that the file holds.  Raises Corrupt."""
        try:
            pools = [
                msgspec.msgpack.decode(value, type=PoolConfig)
                for table in file.scan(POOL, columns=("key", "value"))
                for value in table["value"].to_pylist()
            ]
        except msgspec.DecodeError as error:
            raise Corrupt(f"{file.name}: the row of a pool is damaged: {error}") from error
        return PoolsState(HashTrieMap({p.id: p for p in pools}), HashTrieMap({p.name: p.id for p in pools}))
