"""Compactions of pools with `cluster.by`: they keep buckets, divide what has none, and a rebuild loses nothing."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lake_core import naming
from log_lake.agents.compact.run import compact_pool, plan_pool
from log_lake.indexes.cluster import stated_bucket
from log_lake.indexes.cluster_rule import ClusterRule
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.objects.facts import read_content
from log_lake.objects.metadata import VERSION, Origin
from log_lake.objects.read import DataObject
from log_lake.objects.write import ObjectWriter
from log_lake.repair.rebuild_candidate import Candidate, dismissed
from log_lake.repair.rebuild_objects import read_candidates
from log_lake.repair.rebuild_plan import select
from log_lake.rewriting.divided import write_divided
from tests.unit.indexes.test_clusters import USERS, buckets, faults, load, pool_with


def compact(pool: Pool, strategy: str = "full") -> None:
    lake = Lake.open_on(pool.store)
    compact_pool(lake, "p", plan_pool(lake, "p", strategy=strategy, now=lake.context.now()))


def test_a_compaction_merges_objects_of_one_bucket_and_keeps_it() -> None:
    pool = pool_with("user:4")
    for _ in range(3):
        load(pool)
    lake = Lake.open_on(pool.store)
    plan = plan_pool(lake, "p", strategy="full", now=lake.context.now())
    assert ([len(job.inputs) for job in plan.jobs], plan.depth, plan.depth_after) == ([3] * 4, 12, 4)
    assert plan.allowed == 8 * 5
    compact(pool)
    assert buckets(pool) == [0, 1, 2, 3]
    assert len(pool.at().plan(where="user = 'u5'").references) == 1
    assert pool.at().to_table(where="user = 'u5'").num_rows == 3 * USERS.count("u5")
    assert faults(pool) == []


def test_objects_of_another_rule_say_what_is_true_of_them() -> None:
    pool = pool_with("user:4")
    load(pool)
    lake = Lake.open_on(pool.store)
    lake.configure_pool("p", {"cluster.by": ""})
    load(lake.pool("p"))
    assert buckets(lake.pool("p")) == [None, 0, 1, 2, 3]
    assert len(lake.pool("p").at().plan(where="user = 'u5'").references) == 2
    compact(lake.pool("p"))
    assert buckets(lake.pool("p")) == [None]


def test_a_compaction_divides_small_loads_once_they_are_large_enough() -> None:
    pool = pool_with("user:4", cluster_least="1MiB")
    for first in range(0, 40, 10):
        load(pool, first=first)
    assert buckets(pool) == [None] * 4
    compact(pool)
    assert buckets(pool) == [None]
    lake = Lake.open_on(pool.store)
    lake.configure_pool("p", {"cluster.least": "1B"})
    compact(lake.pool("p"))  # a single object is divided by `full`
    assert buckets(lake.pool("p")) == [0, 1, 2, 3]
    assert plan_pool(lake, "p", strategy="full", now=lake.context.now()).jobs == ()
    assert faults(pool) == []


@pytest.mark.parametrize("format", ["parquet", "zng", "zst"])
@pytest.mark.parametrize("more", [{}, {"verify_rewrites": "content"}, {"content_sums": "on"}])
def test_a_compaction_conserves_the_records_that_it_divides(format: str, more: dict[str, str]) -> None:
    pool = pool_with("user:3", cluster_least="1MiB", format=format, **more)
    for first in (0, 100, 200):
        load(pool, first=first)
    pool.branch().delete(where="k = 205")
    before = sorted(map(repr, pool.at().to_table().to_pylist()))
    lake = Lake.open_on(pool.store)
    lake.configure_pool("p", {"cluster.least": "1B"})
    compact(lake.pool("p"))
    assert buckets(lake.pool("p")) == [0, 1, 2]
    assert sorted(map(repr, lake.pool("p").at().to_table().to_pylist())) == before
    assert faults(pool) == []


def test_records_of_a_bucket_wait_on_disk_if_they_are_many() -> None:
    pool, rule = pool_with("user:4"), ClusterRule("user", 4)
    tables = [pa.table({"k": list(range(n, n + 50)), "user": USERS[:50]}) for n in range(0, 500, 50)]
    origin = Origin(pool.context.lake_id, pool.config.id, pool.context.ids.new(), "test", inputs=("a",))

    def new_writer(bucket: int) -> ObjectWriter:
        new_id = pool.context.ids.new()
        return ObjectWriter(pool.store, pool.config.key, new_id, origin, ordinal=bucket, cluster=rule)

    written = write_divided(iter(tables), rule, new_writer, waiting_bytes=1 << 10)
    assert sum(one.action.records for one in written) == 500
    stated = [stated_bucket(one.action.columns) for one in written]
    assert [one and one[1].number for one in stated] == [0, 1, 2, 3]
    ids = tuple(one.action.object for one in written)
    for one in written:
        with DataObject.at(pool.store, one.action, pool_id=pool.config.id) as data:
            assert (data.metadata.version, data.metadata.siblings) == (VERSION, ids)
            assert read_content(data, key=pool.config.key).faults == ()


@pytest.mark.parametrize("inputs_are_there", [True, False])
@pytest.mark.parametrize("harm", ["damaged", "gone"])
def test_a_rebuild_reads_the_inputs_if_a_sibling_is_lost(harm: str, inputs_are_there: bool) -> None:
    pool = pool_with("user:4", cluster_least="1MiB")
    for first in (0, 100):
        load(pool, first=first)
    inputs = {r.object for r in pool.at().references}
    whole = sorted(map(repr, pool.at().to_table().to_pylist()))
    lake = Lake.open_on(pool.store)
    lake.configure_pool("p", {"cluster.least": "1B"})
    compact(lake.pool("p"))
    lost, *others = lake.pool("p").at().references
    left = sum(r.records for r in others)
    name = naming.data_object(pool.config.id, lost.object)
    if harm == "gone":
        pool.store.delete(name)
    else:
        pool.store.put(name, (pool.store.get(name) or b"")[:-100] + b"\0" * 100)
    if not inputs_are_there:
        for one in inputs:
            pool.store.delete(naming.data_object(pool.config.id, one))
    candidates, _ = read_candidates(pool.store, pool.config.id, lambda kind, count: None)
    selection = select(candidates)
    found = sum(piece.candidate.records for piece in selection.pieces)
    kept = {piece.candidate.object for piece in selection.pieces}
    if inputs_are_there:
        assert (kept, found) == (inputs, len(whole))
        assert selection.lost == ()
    else:
        assert (kept, found) == ({r.object for r in others}, left)
        assert [one.object for one in selection.lost] == ([lost.object] if harm == "damaged" else [])


def test_siblings_of_which_one_was_merged_later_are_not_lost() -> None:
    def one(object_id: str, *inputs: str, siblings: tuple[str, ...] = ()) -> Candidate:
        return Candidate(object_id, 1, 0.0, transaction_id="t", inputs=inputs, siblings=siblings)

    a, b, c, d = (naming_id(n) for n in range(4))
    assert dismissed([one(a), one(b, a, siblings=(b, c)), one(c, a, siblings=(b, c))]) == set()
    assert dismissed([one(a), one(b, a, siblings=(b, c))]) == {b}
    assert dismissed([one(b, a, siblings=(b, c))]) == set()
    assert dismissed([one(a), one(b, a, siblings=(b, c)), one(d, c)]) == set()


def naming_id(number: int) -> str:
    return f"{number:027}"
