"""Pools as tables of an engine that the caller runs: a DuckDB connection, polars, or any reader of Arrow data
sets.

The engine asks for columns and a filter, and the scan does not read objects that the filter excludes, as in
`sql`. Unlike `sql`, this module does not restrict the engine, because the program that owns the connection
writes its statements.  That program decides what else a statement may read.

Called by users.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import duckdb

from lake_core.errors import InvalidInput, LakeError
from log_lake.lake import Lake
from log_lake.lake.by_type import records_of
from log_lake.lake.view import View
from log_lake.system_tables.columns import folded
from log_lake.system_tables.dataset import PoolDataset
from log_lake.system_tables.names import is_system_table, pool_and_shape, system_table
from log_lake.system_tables.pool_reads import PoolReads

log = logging.getLogger(__name__)


def as_dataset(view: View) -> PoolDataset:
    """Returns the records of a view as an Arrow data set for DuckDB and polars, which scan it as often as they
    like.

    It has no fragments, so methods of Arrow that need them (`join`, `sort_by`, `take`) raise
    NotImplementedError.

    Names and JSON are those of SQL (docs/python.md).  Raises InvalidInput if SQL has no name for a field.  If a
    scan raises an error, the engine raises one of its own, with the same message.
    """
    return PoolDataset(view, records_of(view), [])


def register(
    lake: Lake, connection: duckdb.DuckDBPyConnection, pools: Iterable[str] | None = None
) -> list[str]:
    """Makes views of pools in a connection, frozen at their present versions; returns the names of the views.

    `pools`: any table that `query` knows (`logs`, `logs@2`, `logs:objects`), read at one moment as in `query`;
    None: all pools of the lake.  In the second case, a pool that cannot be read is left out, with a warning in
    the log.  A view hides a table of the connection that has its name.

    Raises InvalidInput for names that differ only in case, NotFound.
    """
    if isinstance(pools, str):
        raise InvalidInput(f"register: pools={pools!r} is one text; give a list of names: pools=[{pools!r}]")
    names = [pool.name for pool in lake.pools()] if pools is None else list(pools)
    alike: dict[str, str] = {}
    for name in names:
        if (other := alike.setdefault(folded(name), name)) != name:
            raise InvalidInput(
                f"pools {other!r} and {name!r}: SQL takes these names for one; register one of them (pools=)"
            )
    registered = []
    together = PoolReads(lake, names)
    for name in names:
        try:
            connection.register(name, _table(PoolReads(lake, [name]) if pools is None else together, name))
        except LakeError as error:
            if pools is not None:
                raise
            log.warning("pool %s is left out: %s", name, error)
            continue
        registered.append(name)
    return registered


def _table(pools: PoolReads, name: str) -> Any:
    if is_system_table(name):
        return system_table(pools.lake, name)
    table, shape = pool_and_shape(name)
    pool, at, newest = pools.place(table)
    view = pool.at(at, newest=newest)
    return PoolDataset(view, records_of(view, shape), [])
