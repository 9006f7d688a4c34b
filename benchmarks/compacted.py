"""The compacted pool of 12 million lineitem records that `reading` and `deletes` measure, and peers' tables of it.

Its key is part, order and line. Readers draw values of the first field evenly.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from benchmarks import data

KEY = "l_partkey,l_orderkey,l_linenumber"


def make(path: str, kind: str = "append", outputs: str = "4") -> dict[str, Any]:
    """Makes the pool, of four objects or of `outputs` objects; run it in a process of its own."""
    from log_lake.lake import Lake
    from log_lake.rewriting.compaction import compact

    pool = Lake.create(path).create_pool("lineitem", key=KEY, kind=kind, settings={"load.memory": "2GiB"})
    for file in data.lineitem(2.0):
        pool.branch().load([file])
    compact(pool.branch(), pool.at().references, outputs=int(outputs))
    return {"seconds": 1.0, "records": pool.at().records}


def files(path: str) -> list[str]:
    """Returns the paths of the pool's objects, in order of the key."""
    from log_lake.lake import Lake

    view = Lake.open(path).pool("lineitem").at()
    return [f"{path}/{view.object_name(r)}" for r in view.references]


def tables(path: str) -> Iterator[pa.Table]:
    """Yields the records in the order in which they were loaded, one table for each object."""
    import pyarrow.parquet as pq

    for file in files(path):
        yield pq.read_table(file).drop_columns(["_seq", "_place"])


def lance_table(path: str, name: str) -> Any:
    """Makes a lance data set of the same records, with one fragment for each object."""
    import lance

    target = data.fresh(name)
    for table in tables(path):
        lance.write_dataset(table, target, mode="append")
    return lance.dataset(target)


def delta_table(path: str, name: str) -> Any:
    """Makes a Delta table of the same records, with one file for each object."""
    import deltalake

    target = data.fresh(name)
    for table in tables(path):
        deltalake.write_deltalake(target, table, mode="append")
    return deltalake.DeltaTable(target)
