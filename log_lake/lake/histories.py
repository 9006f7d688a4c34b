"""Gets the history of a pool from its configuration, and the configuration from the pool's id.

Called by the lake for listed pools, and for pools that are listed no more or not yet: a clone, and its source.
"""

from __future__ import annotations

from lake_core.catalog.state import PoolsState
from lake_core.context import Context
from lake_core.history import History
from lake_core.records.pools import PoolConfig
from lake_core.schemas.rule import rule_of


def history_of(context: Context, config: PoolConfig) -> History:
    """Returns the history of the pool, with nothing read yet."""
    return History(
        context.store,
        pool_id=config.id,
        key=config.key,
        rule=rule_of(config),
        clock=context.clock,
        format_version=context.format_version,
        metadata=context.metadata,
        gated=context.gated,
        homes=config.homes,
    )


def listed_or_dropped(listed: PoolsState, id: str) -> PoolConfig | None:
    """Returns the configuration of a pool that is listed or was dropped; None if the pool is neither."""
    dropped = listed.dropped.get(id)
    return listed.pools.get(id) or (None if dropped is None else dropped.pool)
