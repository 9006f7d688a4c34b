"""With and without clusters, all answers are the same: over kinds, formats, types, branches, renames and rules.

Some loads are divided, some are not; a rule is set, changed and reset between loads; compactions of every strategy
divide records, keep buckets, or merge objects of several rules.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from log_lake.agents.compact.run import compact_pool, plan_pool
from log_lake.indexes.cluster import stated_bucket
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.repair.fsck import Fsck
from log_lake.stores.memory import MemoryStore
from tests.properties.test_bulk_imports import answers, imported
from tests.properties.test_loads_on_disk import Case, cases, loaded, points_of

NUMBERS = st.integers(-3, 6)
WORDS = st.sampled_from(["", "a", "ab", "1", "é"])
ROWS = st.fixed_dictionaries(
    {"k": st.integers(0, 9), "n": st.none() | NUMBERS, "w": st.none() | WORDS, "i": st.none() | WORDS}
)
TYPES = st.sampled_from([pa.int64(), pa.int8(), pa.float64(), pa.decimal128(9, 2), pa.string()])
LEAVES = st.one_of(
    NUMBERS.map(lambda n: f"n = {n}"),
    NUMBERS.map(lambda n: f"n = {n}.0"),
    NUMBERS.map(lambda n: f"k = {n}"),
    st.tuples(NUMBERS, NUMBERS).map(lambda n: f"n in ({n[0]}, {n[1]})"),
    WORDS.map(lambda w: f"w = '{w}'"),
    WORDS.map(lambda w: f"r.i = '{w}'"),
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
RULES = st.sampled_from(["", "n:2", "n:7", "w:3", "r.i:2", "k:4"])
OF_KEY = st.sampled_from(["", "k:2", "k:5"])
STEPS = st.one_of(
    st.tuples(st.just("load"), st.lists(ROWS, min_size=1, max_size=8), TYPES),
    st.tuples(st.just("load"), st.lists(ROWS, min_size=1, max_size=8), TYPES),
    st.tuples(st.just("rule"), RULES, OF_KEY),
    st.tuples(st.just("compact"), st.sampled_from(["full", "size_ratio", "depth"]), st.booleans()),
    st.tuples(st.just("delete"), LEAVES, st.booleans()),
    st.tuples(st.just("merge"), st.none(), st.none()),
)


def table(rows: list[dict[str, Any]], number: pa.DataType) -> pa.Table:
    whole = pa.array([row["n"] for row in rows], pa.int64())
    exact = whole.cast(pa.decimal128(21, 2)) if pa.types.is_decimal(number) else whole
    inner = [None if row["i"] is None else {"i": row["i"]} for row in rows]
    return pa.table(
        {
            "k": pa.array([row["k"] for row in rows], pa.int64()),
            "n": exact.cast(number),
            "w": pa.array([row["w"] for row in rows], pa.string()),
            "r": pa.array(inner, pa.struct([("i", pa.string())])),
        }
    )


def records(pool: Pool, branch: str, where: str | None = None) -> list[str]:
    """The records, by their text: a load's records of equal keys may come in another order with clusters."""
    return sorted(map(repr, pool.at(branch).to_table(where=where).to_pylist()))


@settings(max_examples=25, deadline=None)
@given(
    steps=st.lists(STEPS, min_size=2, max_size=9),
    kind=st.sampled_from(["append", "append", "upsert"]),
    format=st.sampled_from(["parquet", "zng", "zst"]),
    wheres=st.lists(CONDITIONS, min_size=1, max_size=4),
    least=st.sampled_from(["1B", "150B", "1MiB"]),
    renames=st.booleans(),
)
def test_clusters_change_no_answer(
    steps: list[tuple[str, Any, Any]], kind: str, format: str, wheres: list[str], least: str, renames: bool
) -> None:
    lake = Lake.create_on(MemoryStore("memory://clustered"))
    first = {"load.inline": "0", "format": format}
    for name, own in (("with", {"cluster.least": least}), ("without", {})):
        pool = lake.create_pool(name, key="k", kind=kind, settings={**first, **own})
        pool.branch().append(table([{"k": 3, "n": 1, "w": "a", "i": "a"}], pa.int64()))
        pool.create_branch("b")
        if renames and format == "parquet":
            pool.rename_field(old="w", new="v")
            for branch in ("main", "b"):
                pool.branch(branch).append(pa.table({"k": [1], "v": ["a"], "w": ["1"]}))
    for number, (does, what, how) in enumerate(steps):
        branch = "main" if number % 3 else "b"
        if does == "rule":
            lake.configure_pool("with", {"cluster.by": how if kind == "upsert" else what})
            continue
        for name in ("with", "without"):
            pool = lake.pool(name)
            if does == "load":
                pool.branch(branch).append(table(what, how))
            elif does == "delete":
                pool.branch(branch).delete(where=what)
            elif does == "merge":
                pool.branch().merge("b")
            else:
                plan = plan_pool(lake, name, branch=branch, strategy=what, now=lake.context.now())
                compact_pool(lake, name, plan)
    for branch in ("main", "b"):
        for where in (None, *wheres, *(f"k = {n}" for n in range(3))):
            shown = [records(lake.pool(name), branch, where) for name in ("with", "without")]
            assert shown[0] == shown[1], where
    assert list(Fsck(lake.context, (), data=True, older_than=0.0).run()) == []


@settings(max_examples=40, deadline=None)
@given(
    cases().filter(lambda case: case.kind != "aggregate"), st.sampled_from(["n:3", "x:2", "k:4", "second:2"])
)
def test_loads_on_disk_and_imports_are_divided(case: Case, by: str) -> None:
    """Objects of one bucket share no key, and no object crosses a split point."""
    rule = {"cluster_by": by if case.kind == "append" else "k:3", "cluster_least": "1B"}
    points, expected = points_of(case), loaded(case)
    in_memory = loaded(case, **rule)
    on_disk = loaded(case, points=points, load_memory="1", **rule)
    bulk = imported(case, units=2, points=points, **rule)
    for found in (in_memory, on_disk, bulk):
        assert sorted(map(repr, answers(found))) == sorted(map(repr, answers(expected)))
        for n in (0, 1, 4):
            where = f"n = {n}"
            shown = [one.at().to_table(where=where)["n"].to_pylist() for one in (found, expected)]
            assert shown[0] == shown[1]
        assert list(Fsck(found.context, (), data=True, older_than=0.0).run()) == []
    for found in (on_disk, bulk):
        of_bucket: dict[Any, bytes] = {}
        for reference in sorted(found.at().references, key=lambda r: r.low):
            assert not [point for point in points if reference.low < point < reference.high[:-1]]
            stated = stated_bucket(reference.columns)
            if stated is not None:
                assert of_bucket.get(stated, b"") <= reference.low
                of_bucket[stated] = reference.high
