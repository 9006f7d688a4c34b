"""The plan of the vacuum that an erasure does: exactly the removed objects that hold such records."""

from __future__ import annotations

from collections.abc import Sequence

from lake_core.history import PoolState
from lake_core.journal import LoadedState
from log_lake.lake.pool import Pool
from log_lake.vacuum.plan import Plan, PlannedObject, begun_objects


def plan_of(pool: Pool, loaded: LoadedState[PoolState], removed: Sequence[str], *, id: str) -> Plan:
    """The plan `id` for objects of the list of the removed, and for the vacuums that were interrupted."""
    objects = tuple(_planned(loaded.state, object_id) for object_id in sorted(removed))
    begun = begun_objects(loaded.state.removed.vacuums.values())
    return Plan(id, pool.config.id, loaded.version, pool.context.now(), objects, {}, begun)


def _planned(state: PoolState, id: str) -> PlannedObject:
    removal = state.removed.get(id)
    assert removal is not None  # `Search.removed` names objects of the list
    return PlannedObject(id, removal.version, removal.time, removal.size)
