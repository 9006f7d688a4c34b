"""A pool with keep.where or keep.by gives what a pool without it gives, without what the condition does not keep.

Both get the same loads, deletes and compactions, over kinds of pools and formats.  Compaction drops what the filter
hides, and no record comes back.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.rewriting.compaction import compact
from log_lake.stores.memory import MemoryStore
from log_lake.system_tables.sql import query
from log_lake.where import holds, parse
from log_lake.where.check import fitted
from log_lake.where.own import OwnFilter, register

FORMATS = ("parquet", "zng", "zst")
OF_KEY = ["k > 3", "k in (1, 2, 5) or k >= 7", "not (k = 4)", "k between 2 and 6"]
OF_FIELDS = [
    "n > 10",
    "n is null or n < 15",
    "not (s = 'a')",
    "s in ('a', 'b') and n != 3",
    "n > 5 or s is not null",
    "m = 3",
]


OWN_OF_KEY = {"keep.by": "property_k@1(k)", "type.k": "bigint"}
OWN_OF_FIELDS = {"keep.by": "property_n@1(n)", "type.n": "bigint"}
register("property_k", OwnFilter(1, lambda records: pc.greater(records["k"], 3)))
register("property_n", OwnFilter(1, lambda records: pc.greater(records["n"], 10)))


def a_load(chance: Random) -> pa.Table:
    rows = range(chance.randrange(1, 12))
    table = {
        "k": pa.array([chance.randrange(9) for _ in rows], pa.int64()),
        "n": pa.array([chance.choice([None, *range(20)]) for _ in rows], pa.int64()),
        "s": pa.array([chance.choice([None, "a", "b", "c"]) for _ in rows], pa.string()),
    }
    if chance.random() < 0.3:  # a field that other loads lack, of several classes
        table["m"] = pa.array([3 for _ in rows]) if chance.random() < 0.5 else pa.array(["3" for _ in rows])
    return pa.table(table)


def both(seed: int) -> tuple[Pool, Pool, str, Lake]:
    """Returns a pool, its twin with keep.where after the same history, the condition, and the lake of the twin."""
    chance = Random(seed)
    kind = chance.choice(["append", "upsert", "aggregate"])
    where = chance.choice(OF_KEY if kind == "aggregate" else OF_KEY + OF_FIELDS)
    settings = {"format": chance.choice(FORMATS), "load.inline": chance.choice(["0", "64KiB"])}
    keep = {"keep.where": where}
    if chance.random() < 0.3:  # the same by a function
        where, keep = ("k > 3", OWN_OF_KEY) if kind == "aggregate" else ("n > 10", OWN_OF_FIELDS)
    pools, lakes = [], []
    for own in ({}, keep):
        lakes.append(Lake.create_on(MemoryStore()))
        aggregates = {"n": "sum", "s": "last"} if kind == "aggregate" else None
        pools.append(
            lakes[-1].create_pool(
                "p", key="k", kind=kind, aggregates=aggregates, settings={**settings, **own}
            )
        )
    for n in range(chance.randrange(1, 9)):
        table, what, low = a_load(chance), chance.random(), chance.randrange(9)
        picked, first = chance.random(), chance.random()
        for pool in pools:
            branch = pool.branch()
            branch.append(table)
            if n and what < 0.25:
                branch.delete(where=f"k = {low}" if kind == "aggregate" or low % 2 else f"n > {low}")
            elif what > 0.6:
                references = sorted(pool.at().references, key=lambda one: (one.seq, one.ordinal))
                most = 1 + int(picked * len(references))
                begin = int(first * (len(references) - most + 1))
                compact(branch, references[begin : begin + most])
    return pools[0], pools[1], where, lakes[1]


def expected(plain: Pool, where: str) -> list[dict[str, Any]]:
    view = plain.at()
    table, condition = view.to_table(), fitted(parse(where), view.schema_ever)
    return (table if condition is None else table.filter(holds(condition, table))).to_pylist()


def sorted_rows(rows: list[dict[str, Any]]) -> list[str]:
    """Returns the records as texts, without nulls: a compaction may take the last record with a field away."""
    return sorted(repr(sorted(item for item in row.items() if item[1] is not None)) for row in rows)


@pytest.mark.parametrize("seed", range(40))
def test_readers_see_what_fulfils_the_condition_and_compaction_keeps_nothing_else(seed: int) -> None:
    plain, kept, where, lake = both(seed)
    rows = sorted_rows(expected(plain, where))
    view = kept.at()
    assert sorted_rows(view.to_table().to_pylist()) == rows
    assert view.summary(read=True).records == len(rows)
    assert view.content().records == len(rows)
    counted = query(lake, "select count(*) as n from p").read_all().to_pylist()
    assert counted == [{"n": len(rows)}]
    live = view.summary()
    assert live.records in (None, len(rows))
    if view.references:
        compact(kept.branch(), view.references)
    after = kept.at()
    assert sorted_rows(after.to_table().to_pylist()) == rows
    assert after.records == len(rows)
    lake.catalog.configure("p", {"keep.where": "", "keep.by": ""})
    assert sorted_rows(lake.pool("p").at().to_table().to_pylist()) == rows, (
        "what was dropped does not come back"
    )
