"""The same questions to a pool with split points and to one without have the same answers, by every path."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake_core.keys import KeyRange
from lake_core.keys.ranges import EVERYTHING
from lake_core.naming import FORMATS
from log_lake.agents.compact.run import compact_pool, plan_pool
from log_lake.agents.split.run import split_pool
from log_lake.agents.tombstones.run import apply
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.stores.memory import MemoryStore
from log_lake.system_tables.sql import query

NOW = 2_000_000_000.0
KEYS = ("k", "k:desc", "s,k", "s:desc,k:desc")
RECORDS = st.lists(
    st.fixed_dictionaries({"k": st.integers(0, 9), "s": st.sampled_from("abc"), "n": st.integers(0, 99)}),
    min_size=1,
    max_size=12,
)
STEPS = st.one_of(
    st.tuples(st.just("load"), RECORDS),
    st.tuples(st.just("load"), RECORDS),
    st.tuples(st.just("delete"), st.integers(0, 9)),
    st.tuples(st.just("compact"), st.sampled_from(["full", "size_ratio", "depth"])),
    st.tuples(st.just("apply"), st.none()),
    st.tuples(st.just("split"), st.lists(st.integers(0, 9), min_size=1, max_size=3)),
    st.tuples(st.just("into"), st.integers(2, 4)),
    st.tuples(st.just("agent"), st.none()),
    st.tuples(st.just("unsplit"), st.none()),
)


def change(lake: Lake, pool: Pool, what: str, how: Any) -> None:
    """One step on a pool; those on split points only on the pool `ranges`."""
    if what == "load":
        pool.branch().append(pa.Table.from_pylist(how))
    elif what == "delete":
        pool.branch().delete(where=f"k = {how}")
    elif what == "compact":
        compact_pool(lake, pool.name, plan_pool(lake, pool.name, strategy=how, now=NOW))
    elif what == "apply":
        apply(pool.branch(), now=NOW, at_once=True)
    elif pool.name == "whole":
        return
    elif what == "split":
        first = pool.config.key.fields[0].name
        pool.split(at=[key if first == "k" else "abc"[key % 3] for key in how])
    elif what == "into" and pool.at().references and not pool.at().points:
        pool.split(into=how)
    elif what == "agent":
        split_pool(pool)
    elif what == "unsplit":
        pool.unsplit()


def answers(lake: Lake, pool: Pool) -> dict[str, Any]:
    """What the pool answers, by path."""
    view = pool.at()
    part = KeyRange(view.bound("b" if view.key.names[0] == "s" else 4))
    table = f'"{pool.name}"'
    return {
        "scan": view.to_table().to_pylist(),
        "range": view.to_table(key_range=part).to_pylist(),
        "where": view.to_table(where="n > 50 or s = 'a'").to_pylist(),
        "get": [view.get("b" if view.key.names[0] == "s" else key).to_pylist() for key in range(10)],
        "sql": query(lake, f"select s, count(*) as n, sum(n) as t from {table} group by s order by s")
        .read_all()
        .to_pylist(),
        "pieces": [
            r for one in view.split(EVERYTHING, pieces=3) for r in view.to_table(key_range=one).to_pylist()
        ],
    }


@pytest.mark.parametrize("kind", ["append", "upsert", "aggregate"])
@settings(max_examples=10, deadline=None)
@given(st.sampled_from(KEYS), st.sampled_from(FORMATS), RECORDS, st.lists(STEPS, min_size=2, max_size=8))
def test_no_answer_depends_on_split_points(
    kind: str, key: str, format: str, first: list[dict[str, Any]], steps: list[tuple[str, Any]]
) -> None:
    lake = Lake.create_on(MemoryStore())
    shape = {"format": format, "compact.depth": "2", "range.records": "6"}
    aggregates = {"n": "sum"} if kind == "aggregate" else {}
    pools = [
        lake.create_pool(name, key=key, kind=kind, settings=shape, aggregates=aggregates)
        for name in ("whole", "ranges")
    ]
    for what, how in (("load", first), *steps, ("compact", "full")):
        for pool in pools:
            change(lake, pool, what, how)
        assert answers(lake, pools[0]) == answers(lake, pools[1]), (what, how)
