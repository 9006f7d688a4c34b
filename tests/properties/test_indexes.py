"""With and without index rules, all answers are the same: over kinds of pools and rules, formats, types, branches.

Indexes are whole, missing, or have flipped bits.  `make fuzz` flips more of them.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import replace
from math import ceil
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from log_lake.agents.compact.run import compact_pool, plan_pool
from log_lake.indexes.hashes import indexed_field
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
FIELDS = {"n": "n", "w": "w", "i": "r.i"}
KINDS = ("bloom", "values", "sketch")
RULES = {f"index.{name}_{kind}": f"{kind}({field})" for name, field in FIELDS.items() for kind in KINDS}
COUNT = int(os.environ.get("LAKE_TEST_MUTATIONS", "40"))
"""How many times bits of one index are flipped."""


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


def records(pool: Pool, where: str, at: str = "main") -> list[dict[str, Any]]:
    return pool.at(at).to_table(where=where).to_pylist()


def check_figures(pool: Pool, field: str, at: str = "main") -> None:
    """The figures of a field are those of the records that a scan shows.  So few values are exact."""
    view = pool.at(at)
    if indexed_field(view.schema, field) is None:
        return  # a branch whose values are of several classes, or none
    figures = view.field_summary(field, shares=(0.0, 0.3, 1.0))
    top, _, inner = field.partition(".")
    column = view.to_table(columns=[top])[top].to_pylist()
    values = [None if one is None else one[inner] if inner else one for one in column]
    some = sorted(value for value in values if value is not None)
    assert (figures.records, figures.nulls) == (len(values), len(values) - len(some))
    assert (figures.distinct, figures.distinct_error, figures.rank_error) == (len(set(some)), 0.0, 0.0)
    assert (figures.low, figures.high) == ((some[0], some[-1]) if some else (None, None))
    if some and figures.quantiles:
        assert figures.quantiles == {0.0: some[0], 0.3: some[ceil(0.3 * len(some)) - 1], 1.0: some[-1]}


@settings(max_examples=25, deadline=None)
@given(
    loads=LOADS,
    kind=st.sampled_from(["append", "upsert"]),
    format=st.sampled_from(["parquet", "zng", "zst"]),
    wheres=st.lists(CONDITIONS, min_size=1, max_size=4),
    compacts=st.booleans(),
    deleted=st.none() | LEAVES,
    harm=st.sampled_from(["", "missing", "damaged"]),
    branches=st.booleans(),
)
def test_an_index_changes_no_answer(
    loads: list[tuple[list[dict[str, Any]], pa.DataType]],
    kind: str,
    format: str,
    wheres: list[str],
    compacts: bool,
    deleted: str | None,
    harm: str,
    branches: bool,
) -> None:
    lake = Lake.create_on(MemoryStore("memory://indexed"))
    plain = {"load.inline": "0", "format": format}
    for name, rules in (("with", RULES), ("without", {})):
        pool = lake.create_pool(name, key="k", kind=kind, settings={**plain, **rules})
        for rows, number in loads:
            pool.branch().append(table(rows, number))
        if branches:
            pool.create_branch("b")
            pool.branch("b").delete(where=wheres[0])
            pool.branch("b").append(table(*loads[0]))
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
    for branch in ("main", "b") if branches else ("main",):
        for where in wheres:
            shown = [records(lake.pool(name), where, branch) for name in ("with", "without")]
            assert shown[0] == shown[1], where
        for field in FIELDS.values():
            check_figures(lake.pool("with"), field, branch)


@pytest.mark.parametrize("kind", KINDS)
def test_flipped_bits_change_no_answer(kind: str) -> None:
    lake, chance = Lake.create_on(MemoryStore("memory://flipped")), random.Random(kind)
    pool = lake.create_pool("p", key="k", settings={"load.inline": "0", "index.n": f"{kind}(n)"})
    for start in (0, 1, 2):
        numbers = [start, *(chance.randrange(60) for _ in range(500)), 100]
        pool.branch().append(pa.table({"k": list(range(len(numbers))), "n": numbers}))
    expected = {n: sorted(row["k"] for row in records(pool, f"n = {n}")) for n in range(0, 103, 3)}
    figures = pool.at().field_summary("n")
    (first, *_) = list_indexes(lake.store, pool.config.id)
    whole = lake.store.get(first.info.name) or b""
    used = 0
    for number in range(COUNT):
        data = bytearray(whole)
        for _ in range(chance.choice((1, 1, 2, 8))):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        lake.store.put(first.info.name, bytes(data))
        n = 3 * (number % 34)
        assert sorted(row["k"] for row in records(pool, f"n = {n}")) == expected[n], bytes(data).hex()
        if kind == "sketch":
            damaged = pool.at().field_summary("n")
            used += not damaged.read
            assert replace(damaged, sketches=3, read={}) == figures, bytes(data).hex()
    assert used <= COUNT // 100


@pytest.mark.parametrize("format", ["parquet", "zng", "zst"])
@pytest.mark.parametrize("kind", ["append", "upsert"])
def test_row_groups_are_left_out_and_no_record(format: str, kind: str) -> None:
    lake = Lake.create_on(MemoryStore("memory://groups"))
    settings = {"load.inline": "0", "format": format, "index.w": "values(w)", "index.x": "values(x)"}
    pool = lake.create_pool("p", key="k", kind=kind, settings=settings)
    keys = range(25_000)
    words = [f"w{key // 5_000}" if key % 7 else None for key in keys]
    pool.branch().append(pa.table({"k": list(keys), "w": words, "x": [key % 3 for key in keys]}))
    pool.branch().delete(key_range=pool.at().key_range(low=11_000, high=12_000))
    live = [k for k in keys if not 11_000 <= k < 12_000]
    cases: dict[str, Callable[[int], bool]] = {
        "w = 'w2'": lambda k: words[k] == "w2",
        "w in ('w0', 'w4')": lambda k: words[k] in ("w0", "w4"),
        "w = 'w1' and x = 1": lambda k: words[k] == "w1" and k % 3 == 1,
        "w = 'w3' or x = 2": lambda k: words[k] == "w3" or k % 3 == 2,
        "w = 'w1' and w = 'w3'": lambda k: False,
        "not (w = 'w2')": lambda k: words[k] not in ("w2", None),
    }
    for where, holds in cases.items():
        for key_range in (pool.at().key_range(), pool.at().key_range(low=4_000, high=23_000)):
            shown = pool.at().to_table(where=where, key_range=key_range)["k"].to_pylist()
            inside = [k for k in live if key_range.low == b"" or 4_000 <= k < 23_000]
            assert shown == [k for k in inside if holds(k)], where
    plan = pool.at().plan(where="w = 'w2'")
    groups = len(next(iter(plan.groups.values()))) if plan.groups else 0
    assert (0 < groups <= 2 if format == "parquet" else groups >= 1) if kind == "append" else not groups


def test_each_index_is_asked_only_where_statistics_leave_a_doubt() -> None:
    pool = Lake.create_on(MemoryStore("memory://asked")).create_pool(
        "p", key="k", settings={"load.inline": "0", "index.w": "bloom(w)"}
    )
    for word in ("a", "c"):
        pool.branch().append(pa.table({"k": [1, 2], "w": [word, "z"]}))
    assert pool.at().plan(where="w = '0'").left_out.answers is None
    plan = pool.at().plan(where="w = 'b' or w = 'c'")
    assert [r.columns[1].low for r in plan.references] == [r.columns[1].low for r in pool.at().references[1:]]
    assert plan.left_out.answers == {IndexAnswer.NO: 3, IndexAnswer.MAY: 1}
