"""One compaction job: what it leaves behind, and what may land meanwhile.

Random subsets in random order against a dictionary: tests/properties/test_lake_machine.py.
"""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest

from lake_core.agents.compact.run import rewrite_here, run_jobs
from lake_core.errors import Conflict, ObjectMissing
from lake_core.lake import Lake
from lake_core.lake.pool import Pool
from lake_core.lake.rewrite import SMALLEST_PIECE, pieces_for, rewrite
from lake_core.objects import write
from lake_core.objects.read import DataObject
from lake_core.records import AddObject, RemoveReference
from lake_core.records.transactions import sequence
from lake_core.store.memory import MemoryStore


@pytest.fixture
def lake() -> Lake:
    return Lake.create_on(MemoryStore())


def filled(lake: Lake, *loads: dict[str, Any], kind: str = "append") -> Pool:
    pool = lake.create_pool("p", key="k", kind=kind)
    for load in loads:
        pool.branch().append(pa.table(load))
    return pool


def rows(pool: Pool, at: str = "main") -> list[dict[str, Any]]:
    return pool.at(at).to_table().to_pylist()


LOADS = ({"k": [1, 5], "v": ["a", "b"]}, {"k": [1, 9], "v": ["c", "d"]}, {"k": [5], "w": [0]})


def test_a_job_is_one_transaction_inputs_out_outputs_in(lake: Lake) -> None:
    pool = filled(lake, *LOADS)
    inputs = pool.at().references
    done = pool.branch().compact(inputs, message="compaction: a test")
    (n, transaction), *_ = pool.log()
    assert (n, transaction.message) == (done.version, "compaction: a test")
    assert [type(action) for action in transaction.actions].count(RemoveReference) == 3
    assert [a.object for a in transaction.actions if isinstance(a, AddObject)] == [
        r.object for r in pool.at().references
    ]
    assert (done.inputs, done.objects, done.records, done.size_in) == (3, 1, 5, sum(r.size for r in inputs))
    assert done.size_out == pool.at().references[0].size


def test_a_pool_reads_the_same_before_and_after(lake: Lake) -> None:
    pool = filled(lake, *LOADS)
    before = pool.at().to_table()
    pool.branch().compact(pool.at().references)
    assert pool.at().to_table() == before
    assert pool.at("3").to_table() == before
    assert (pool.at("3").depth, pool.at().depth) == (3, 1)


def test_every_record_keeps_its_sequence_so_loads_in_between_stay_in_between(lake: Lake) -> None:
    pool = filled(lake, {"k": [1], "v": ["a"]}, {"k": [1], "v": ["b"]}, {"k": [1], "v": ["c"]})
    first, _, third = sorted(pool.at().references, key=lambda r: r.seq)
    pool.branch().compact([first, third])
    assert [r["v"] for r in rows(pool)] == ["a", "b", "c"]
    made = next(r for r in pool.at().references if r.oldest is not None)
    assert (made.oldest, made.seq) == (sequence(1), sequence(3))


def test_the_object_says_what_it_was_made_of(lake: Lake) -> None:
    pool = filled(lake, *LOADS)
    inputs = sorted(r.object for r in pool.at().references)
    done = pool.branch().compact(pool.at().references)
    with DataObject(lake.store, pool=pool.config.id, object_id=pool.at().references[0].object) as data:
        assert data.metadata.origin.inputs == tuple(inputs)
        assert data.metadata.origin.transaction_id == done.transaction_id
        assert (data.metadata.first_seq, data.metadata.last_seq) == (sequence(1), sequence(3))
        assert data.schema.names == ["k", "v", "w", "_seq", "_place"]
    assert pool.at().schema.names == ["k", "v", "w"]
    assert [c.name for c in pool.at().references[0].columns] == ["k", "v", "w"]


def test_outputs_follow_each_other_and_share_no_key(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "ROW_GROUP", 10)
    keys = [n % 100 for n in range(1000)]
    pool = filled(lake, {"k": keys}, {"k": keys})
    before = rows(pool)
    done = pool.branch().compact(pool.at().references, outputs=4)
    assert done.objects == 4
    held = pool.at().references
    assert all(a.high <= b.low for a, b in itertools.pairwise(held))
    assert max(r.records for r in held) < 2 * min(r.records for r in held)
    assert rows(pool) == before


def test_what_is_loaded_meanwhile_stays(lake: Lake) -> None:
    pool = filled(lake, *LOADS)
    branch = pool.branch()
    work = branch.begin_compaction(pool.at().references, outputs=1, message="slow")
    branch.append(pa.table({"k": [0, 5], "v": ["new", "new"]}))
    before = rows(pool)
    written = rewrite(work, 0, lake.store, new_id=lake.context.ids.new)
    assert written is not None
    branch.commit_compaction(work, [written])
    assert rows(pool) == before


def test_of_two_that_share_an_input_one_wins_and_nothing_is_lost(lake: Lake) -> None:
    pool = filled(lake, *LOADS)
    branch = pool.branch()
    before = rows(pool)
    works = [branch.begin_compaction(pool.at().references[n : n + 2], outputs=1, message="") for n in (0, 1)]
    written = [rewrite(work, 0, lake.store, new_id=lake.context.ids.new) for work in works]
    assert written[0] is not None
    assert written[1] is not None
    branch.commit_compaction(works[0], [written[0]])
    with pytest.raises(Conflict, match="taken by another compaction"):
        branch.commit_compaction(works[1], [written[1]])
    assert rows(pool) == before
    assert pool.at().version == 4


def test_a_job_whose_input_was_taken_before_it_began_is_dropped(lake: Lake) -> None:
    pool = filled(lake, *LOADS)
    branch = pool.branch()
    planned = pool.at().references
    branch.compact(planned[:2], outputs=1)
    before = rows(pool)
    with pytest.raises(Conflict, match="taken by another compaction"):
        branch.begin_compaction(planned, outputs=1, message="late")
    (done,) = run_jobs(branch, [(planned, 1, "late")], rewrite_here(branch))
    assert (done.version, done.records) == (None, 0)
    assert rows(pool) == before


def test_an_input_that_is_missing_is_said_and_changes_nothing(lake: Lake) -> None:
    pool = filled(lake, *LOADS)
    lost = pool.at().references[0]
    lake.store.delete(pool.at().object_name(lost))
    with pytest.raises(ObjectMissing, match=lost.object):
        pool.branch().compact(pool.at().references)
    assert pool.at().version == 3


# ---------------------------------------------------------------- kinds


def test_an_upsert_pool_keeps_the_newest_of_each_key(lake: Lake) -> None:
    pool = filled(lake, *LOADS, kind="upsert")
    expected = [
        {"k": 1, "v": "c", "w": None},
        {"k": 5, "v": None, "w": 0},
        {"k": 9, "v": "d", "w": None},
    ]
    assert rows(pool) == expected
    assert pool.branch().compact(pool.at().references).records == 3
    assert rows(pool) == expected


def test_delete_markers_go_only_where_nothing_older_is_left_to_hide(lake: Lake) -> None:
    def marked(*keys: int) -> pa.Table:
        return pa.table({"k": list(keys), "_deleted": [True] * len(keys)})

    pool = filled(lake, {"k": [1, 2]}, {"k": [1, 2], "x": [0, 0]}, kind="upsert")
    pool.branch().append(marked(2))
    assert [r["k"] for r in rows(pool)] == [1]
    _first, second, third = sorted(pool.at().references, key=lambda r: r.seq)
    assert (
        pool.branch().compact([second, third]).records == 2
    )  # the marker still hides the first load's record
    assert [r["k"] for r in rows(pool)] == [1]
    assert pool.branch().compact(pool.at().references).records == 1
    assert [r["k"] for r in rows(pool)] == [1]


# ---------------------------------------------------------------- pieces


@pytest.mark.parametrize(
    ("outputs", "size", "parallelism", "pieces"),
    [
        (3, 400 << 20, 2, 4),  # no core waits while another works at the third
        (1, 100 << 20, 2, 2),
        (1, SMALLEST_PIECE, 8, 1),  # too small to be worth a second task
        (100, 12 << 30, 3, 100),
    ],
)
def test_a_job_is_cut_so_that_every_core_has_work(
    outputs: int, size: int, parallelism: int, pieces: int
) -> None:
    assert pieces_for(outputs, size=size, parallelism=parallelism) == pieces
