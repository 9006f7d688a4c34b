"""The names of tables in SQL and in the Spark data source: a pool, its records by type, or a table of the lake.

POOL, POOL@REVISION                       the records, their fields united
POOL:typed, POOL:values, POOL:type:ID     the records by their types (`lake.by_type`)
POOL:log, POOL@REVISION:references, ...   the lake's own tables, which `tables` makes
lake:pools, lake:pools@VERSION            the list of pools, as it is or as it was
lake:transactions                         transactions over several pools
lake:health                               a table that another room offers (`offered_tables`)
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import pyarrow as pa

from lake_core.errors import InvalidInput, NotFound
from lake_core.history import PoolState
from lake_core.keys import PoolKey
from lake_core.phrases import choices
from lake_core.records.pools import PoolConfig
from lake_core.records.transactions import MAX_TRANSACTIONS
from log_lake.coverage.table import COVERAGE, coverage_table
from log_lake.lake import Lake
from log_lake.lake.by_type import types_of
from log_lake.lake.open_transactions import transactions
from log_lake.lake.ranges import ranges_of
from log_lake.offered_tables import OFFERED
from log_lake.reading.live import live_counts
from log_lake.system_tables import tables as meta

POOLS = "lake:pools"
"""The list of pools.  A pool may also be named `lake`, because no table of a pool is named `pools`."""

TRANSACTIONS = "lake:transactions"
"""The name of the table of transactions over several pools."""

KINDS = (
    "actions",
    "branches",
    "coverage",
    "log",
    "objects",
    "ranges",
    "references",
    "tags",
    "tombstones",
    "types",
)

SHAPES = ("typed", "values", "type:ID")

_SHAPED = re.compile(r"(?P<pool>[^:@]+(?:@.*)?):(?P<shape>typed|values|type:[0-9a-f]+)", re.DOTALL)


def pool_and_shape(name: str) -> tuple[str, str]:
    """Splits `POOL@REVISION:typed` into `POOL@REVISION` and the shape, which is "" if the name has none.

    The shapes are those of `by_type.records_of`.
    """
    match = _SHAPED.fullmatch(name)
    return (match["pool"], match["shape"]) if match else (name, "")


def is_system_table(name: str) -> bool:
    """Whether the name is that of a system table.  Names of pools have no colon; times in a revision may."""
    name, _ = pool_and_shape(name)
    _, colon, kind = name.rpartition(":")  # a pool, too, may be called `log`
    return ":" in name.partition("@")[0] or (bool(colon) and kind in KINDS)


def system_schema(name: str) -> pa.Schema:
    """Returns the columns of one of the lake's own tables. Raises NotFound."""
    pool_name, _, kind = name.rpartition(":")
    if _is_list_of_pools(name):
        return meta.pools_table([]).schema
    if name == TRANSACTIONS:
        return meta.transactions_table([]).schema
    if name in OFFERED:
        return OFFERED[name].schema()
    match _check_kind(kind, pool_name):
        case "actions":
            return meta.actions_table([]).schema
        case "branches":
            return meta.BRANCHES
        case "coverage":
            return COVERAGE
        case "log":
            return meta.log_table([]).schema
        case "ranges":
            return meta.ranges_table([]).schema
        case "tags":
            return meta.tags_table(PoolState()).schema
        case "tombstones":
            return meta.tombstones_table(PoolState(), branch="", key=PoolKey(())).schema
        case "types":
            return meta.types_table([]).schema
    references = meta.references_table([], PoolKey(()), int)
    return (meta.objects_table(references) if kind == "objects" else references).schema


def system_table(lake: Lake, name: str) -> pa.Table:
    """Returns one of the lake's own tables. Raises NotFound."""
    pool_name, _, kind = name.rpartition(":")
    if _is_list_of_pools(name):
        return meta.pools_table(_pools_at(lake, name.partition("@")[2]))
    if name == TRANSACTIONS:
        return meta.transactions_table(transactions(lake))
    if name in OFFERED:
        return OFFERED[name].table(lake)
    pool_name, _, revision = pool_name.partition("@")
    _check_kind(kind, pool_name)
    pool = lake.pool(pool_name)
    view = pool.at(revision or "main")
    if kind == "branches":
        return meta.branches_table(view.state, live_counts(view))
    if kind == "coverage":
        return coverage_table(view)
    if kind == "tags":
        return meta.tags_table(view.state)
    if kind in ("actions", "log"):
        table_of = meta.actions_table if kind == "actions" else meta.log_table
        return table_of((version, t) for version, t in pool.log() if version <= view.version)
    if kind == "tombstones":
        return meta.tombstones_table(view.state, branch=view.branch, key=view.config.key)
    if kind == "types":
        return meta.types_table(types_of(view))
    if kind == "ranges":
        return meta.ranges_table(ranges_of(view))
    snapshot = view.state.branches[view.branch].snapshot
    references = [
        r for sub_pool in ("", *snapshot.sub_pools()) for r in snapshot.overlapping(sub_pool=sub_pool)
    ]
    table = meta.references_table(references, view.config.key, lambda seq: seq // MAX_TRANSACTIONS)
    return meta.objects_table(table) if kind == "objects" else table


def _is_list_of_pools(name: str) -> bool:
    return name.partition("@")[0] == POOLS


def _pools_at(lake: Lake, version: str) -> Iterable[PoolConfig]:
    """Returns the pools, by name, in a version of their list; "": the newest.  Raises InvalidInput,
    NotFound."""
    if not version:
        return lake.pools()
    if not version.isdecimal():
        raise InvalidInput(
            f'table "{POOLS}@{version}": the list of pools has versions only, such as "{POOLS}@7"'
        )
    loaded = lake.catalog.journal.load_version(int(version))
    if loaded is None:
        raise NotFound(f'table "{POOLS}@{version}": the newest version is {lake.catalog.load().version}')
    return sorted(loaded.state.pools.values(), key=lambda config: config.name)


def _check_kind(kind: str, pool_name: str) -> str:
    if kind not in KINDS:
        names = ", ".join((*KINDS, *SHAPES))
        own = choices([f'"{name}"' for name in (POOLS, TRANSACTIONS, *OFFERED)], "and")
        more = f"; and there are {own}" if pool_name == "lake" else ""
        raise NotFound(f'table "{pool_name}:{kind}" does not exist; there are: {names}{more}')
    return kind
