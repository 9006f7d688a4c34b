"""With and without index rules, a scan has the same records: over kinds, formats, types, nested fields, nulls."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from log_lake.agents.compact.run import compact_pool, plan_pool
from log_lake.indexes.lookup import IndexAnswer
from log_lake.indexes.names import list_indexes
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.stores.memory import MemoryStore

NUMBERS = st.integers(-3, 6)
WORDS = st.sampled_from(["", "a", "ab", "1", "é"])
ROWS = st.fixed_dictionaries(
    {"k": st.integers(0, 9), "n": st.none() | NUMBERS, "w": st.none() | WORDS, "i": st.none() | WORDS}
)
LOADS = st.lists(
    st.tuples(
        st.lists(ROWS, min_size=1, max_size=6),
        st.sampled_from([pa.int64(), pa.int8(), pa.float64(), pa.decimal128(9, 2)]),
    ),
    min_size=1,
    max_size=5,
)
LEAVES = st.one_of(
    NUMBERS.map(lambda n: f"n = {n}"),
    NUMBERS.map(lambda n: f"n = {n}.0"),
    WORDS.map(lambda w: f"w = '{w}'"),
    WORDS.map(lambda w: f"r.i = '{w}'"),
    st.tuples(WORDS, WORDS).map(lambda w: f"w in ('{w[0]}', '{w[1]}')"),
    WORDS.map(lambda w: f"w >= '{w}' and w <= '{w}'"),
    NUMBERS.map(lambda n: f"n > {n}"),
    st.just("n is null"),
)
CONDITIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda c: f"({c[0]}) {c[1]} ({c[2]})"),
        inner.map(lambda c: f"not ({c})"),
    ),
    max_leaves=3,
)
RULES = {"index.n": "bloom(n)", "index.w": "bloom(w)", "index.i": "bloom(r.i)"}


def table(rows: list[dict[str, Any]], number: pa.DataType) -> pa.Table:
    whole = pa.array([row["n"] for row in rows], pa.int64())
    return pa.table(
        {
            "k": pa.array([row["k"] for row in rows], pa.int64()),
            "n": whole.cast(pa.decimal128(21, 2)).cast(number)
            if pa.types.is_decimal(number)
            else whole.cast(number),
            "w": pa.array([row["w"] for row in rows], pa.string()),
            "r": pa.array(
                [None if row["i"] is None else {"i": row["i"]} for row in rows],
                pa.struct([("i", pa.string())]),
            ),
        }
    )


def records(pool: Pool, where: str) -> list[dict[str, Any]]:
    return pool.at().to_table(where=where).to_pylist()


@settings(max_examples=25, deadline=None)
@given(
    loads=LOADS,
    kind=st.sampled_from(["append", "upsert"]),
    format=st.sampled_from(["parquet", "zng", "zst"]),
    wheres=st.lists(CONDITIONS, min_size=1, max_size=4),
    compacts=st.booleans(),
    deleted=st.none() | LEAVES,
    harm=st.sampled_from(["", "missing", "damaged"]),
)
def test_an_index_changes_no_answer(
    loads: list[tuple[list[dict[str, Any]], pa.DataType]],
    kind: str,
    format: str,
    wheres: list[str],
    compacts: bool,
    deleted: str | None,
    harm: str,
) -> None:
    lake = Lake.create_on(MemoryStore("memory://indexed"))
    plain = {"load.inline": "0", "format": format}
    for name, rules in (("with", RULES), ("without", {})):
        pool = lake.create_pool(name, key="k", kind=kind, settings={**plain, **rules})
        for rows, number in loads:
            pool.branch().append(table(rows, number))
        if compacts:
            compact_pool(lake, name, plan_pool(lake, name, strategy="full", now=lake.context.now()))
    if harm:
        for at, one in enumerate(list(list_indexes(lake.store, lake.pool("with").config.id))):
            if harm == "missing":
                lake.store.delete(one.info.name)
            else:
                data = bytearray(lake.store.get(one.info.name) or b"")
                data[(at * 31 + 17) % len(data)] ^= 1 << (at % 8)
                lake.store.put(one.info.name, bytes(data))
    if deleted is not None:
        removed = [
            lake.pool(name).branch().delete(where=deleted).version is None for name in ("with", "without")
        ]
        assert removed[0] == removed[1]
    for where in wheres:
        assert records(lake.pool("with"), where) == records(lake.pool("without"), where), where


def test_each_index_is_asked_only_where_statistics_leave_a_doubt() -> None:
    pool = Lake.create_on(MemoryStore("memory://asked")).create_pool(
        "p", key="k", settings={"load.inline": "0", **RULES}
    )
    for word in ("a", "c"):
        pool.branch().append(pa.table({"k": [1, 2], "w": [word, "z"]}))
    assert pool.at().plan(where="w = '0'").left_out.answers is None
    plan = pool.at().plan(where="w = 'b' or w = 'c'")
    assert [r.columns[1].low for r in plan.references] == [r.columns[1].low for r in pool.at().references[1:]]
    assert plan.left_out.answers == {IndexAnswer.NO: 3, IndexAnswer.MAY: 1}
