"""Makes pools as most tests need them: one in a new lake, from a few tables."""

from __future__ import annotations

import pyarrow as pa

from lake_core.keys import PoolKey
from lake_core.store import Store
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.reading.limits import LIMITS, ScanLimits
from log_lake.rewriting.compaction import compact
from log_lake.stores.memory import MemoryStore


def a_pool(
    *tables: pa.Table,
    store: Store | None = None,
    key: str | PoolKey = "k",
    kind: str = "append",
    aggregates: dict[str, str] | None = None,
    limits: ScanLimits = LIMITS,
) -> Pool:
    """Makes the pool `p` of a new lake, in memory if no store is given. Each table is a load."""
    lake = Lake.create_on(MemoryStore() if store is None else store, limits=limits)
    pool = lake.create_pool("p", key=key, kind=kind, aggregates=aggregates)
    for table in tables:
        pool.branch().append(table)
    return pool


def keys(pool: Pool, where: str | None = None) -> list[int]:
    """Returns the key `k` of every record that fulfils the condition, in the order of the scan."""
    return list(pool.at().to_table(where=where)["k"].to_pylist())


def compact_all(pool: Pool) -> None:
    """Rewrites all references of the pool in one job."""
    compact(pool.branch(), pool.at().references)
