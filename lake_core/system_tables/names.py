"""The lake's own tables by name: `lake:pools`, `POOL:log`, `POOL@REVISION:references`.

Used by SQL and the Spark data source; `tables` makes the tables.
"""

from __future__ import annotations

import pyarrow as pa

from lake_core.errors import NotFound
from lake_core.history import PoolState
from lake_core.keys import PoolKey
from lake_core.lake import Lake
from lake_core.records.transactions import MAX_TRANSACTIONS
from lake_core.system_tables import tables as meta

POOLS = "lake:pools"
"""The list of pools.  A pool may still be called `lake`, because no table of a pool is called `pools`."""

KINDS = ("branches", "log", "objects", "references", "tags", "tombstones")


def is_system_table(name: str) -> bool:
    """Whether the name is that of a system table.  Names of pools have no colon; times in a revision may."""
    return ":" in name.partition("@")[0] or name.rpartition(":")[2] in KINDS


def system_schema(name: str) -> pa.Schema:
    """The columns of one of the lake's own tables; raises NotFound."""
    pool_name, _, kind = name.rpartition(":")
    if name == POOLS:
        return meta.pools_table([]).schema
    match _check_kind(kind, pool_name):
        case "branches":
            return meta.branches_table(PoolState()).schema
        case "log":
            return meta.log_table([]).schema
        case "tags":
            return meta.tags_table(PoolState()).schema
        case "tombstones":
            return meta.tombstones_table(PoolState(), branch="", key=PoolKey(())).schema
    references = meta.references_table([], PoolKey(()), int)
    return (meta.objects_table(references) if kind == "objects" else references).schema


def system_table(lake: Lake, name: str) -> pa.Table:
    """One of the lake's own tables; raises NotFound."""
    pool_name, _, kind = name.rpartition(":")
    if name == POOLS:
        return meta.pools_table(lake.pools())
    pool_name, _, revision = pool_name.partition("@")
    _check_kind(kind, pool_name)
    pool = lake.pool(pool_name)
    view = pool.at(revision or "main")
    if kind == "branches":
        return meta.branches_table(view.state)
    if kind == "tags":
        return meta.tags_table(view.state)
    if kind == "log":
        return meta.log_table((version, t) for version, t in pool.log() if version <= view.version)
    if kind == "tombstones":
        return meta.tombstones_table(view.state, branch=view.branch, key=view.config.key)
    snapshot = view.state.branches[view.branch].snapshot
    references = [
        r for sub_pool in ("", *snapshot.sub_pools()) for r in snapshot.overlapping(sub_pool=sub_pool)
    ]
    table = meta.references_table(references, view.config.key, lambda seq: seq // MAX_TRANSACTIONS)
    return meta.objects_table(table) if kind == "objects" else table


def _check_kind(kind: str, pool_name: str) -> str:
    if kind not in KINDS:
        more = f'; and there is "{POOLS}"' if pool_name == "lake" else ""
        raise NotFound(f'table "{pool_name}:{kind}" does not exist; there are: {", ".join(KINDS)}{more}')
    return kind
