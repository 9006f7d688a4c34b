"""One compaction job: what it leaves behind, and what may land meanwhile.

Random subsets in random order against a dictionary: tests/properties/test_lake_machine.py.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from lake_core.errors import Conflict, ObjectMissing
from lake_core.history import Reference
from lake_core.history.snapshot import fixed
from lake_core.history.snapshot.fixed import PART
from lake_core.history.snapshot.reference import from_rows
from lake_core.journal.purge import write_newest
from lake_core.keys import KeyRange
from lake_core.keys.ranges import EVERYTHING
from lake_core.records import AddObject, RemoveReference
from lake_core.records.transactions import sequence
from log_lake.compaction.jobs import CompactionJob
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.lake.results import PendingLoad
from log_lake.loading.block import Block
from log_lake.objects.containers.limits import ObjectLimits
from log_lake.objects.read import DataObject
from log_lake.reading.limits import ScanLimits
from log_lake.rewriting.compaction import SMALLEST_PIECE, begin_compaction, compact, pieces_for, run_jobs
from log_lake.rewriting.work import write_whole
from log_lake.stores.memory import MemoryStore
from log_lake.workers import Here
from tests.support.rewrites import committed, lost


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
    done = compact(pool.branch(), inputs, message="compaction: a test")
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
    compact(pool.branch(), pool.at().references)
    assert pool.at().to_table() == before
    assert pool.at("3").to_table() == before
    assert (pool.at("3").depth, pool.at().depth) == (3, 1)


def test_every_record_keeps_its_sequence_so_loads_in_between_stay_in_between(lake: Lake) -> None:
    pool = filled(lake, {"k": [1], "v": ["a"]}, {"k": [1], "v": ["b"]}, {"k": [1], "v": ["c"]})
    first, _, third = sorted(pool.at().references, key=lambda r: r.seq)
    compact(pool.branch(), [first, third])
    assert [r["v"] for r in rows(pool)] == ["a", "b", "c"]
    made = next(r for r in pool.at().references if r.oldest is not None)
    assert (made.oldest, made.seq) == (sequence(1), sequence(3))


AGGREGATED: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "what the newest lacks": (
        [{"k": [1], "v": ["a"]}, {"k": [1], "v": ["b"]}, {"k": [1], "v": [None]}],
        [{"k": 1, "v": "b"}],
    ),
    "what lies between came in two parts": (
        [{"k": [1, 9], "v": ["a", "a"]}, {"k": [1], "v": ["b"]}, {"k": [0, 1, 9], "v": ["c", None, None]}],
        [{"k": 0, "v": "c"}, {"k": 1, "v": "b"}, {"k": 9, "v": "a"}],
    ),
}


@pytest.mark.parametrize("case", AGGREGATED)
def test_an_aggregate_pool_combines_nothing_past_what_lies_between_in_age(lake: Lake, case: str) -> None:
    """The record that combines the first and the third load would count as newer than the second."""
    loads, expected = AGGREGATED[case]
    pool = filled(lake, *loads, kind="aggregate")
    first, second, third = sorted(pool.at().references, key=lambda r: r.seq)
    dropped = compact(pool.branch(), [first, third])
    assert dropped.version is None
    assert re.search(f"{second.object} lies between .* plan the compaction again", dropped.lost)
    assert rows(pool) == expected
    compact(pool.branch(), [first, second, third])
    assert rows(pool) == expected


def test_an_aggregate_pool_passes_over_what_shares_keys_with_one_input_only(lake: Lake) -> None:
    """What is between in age there stays so: each record of the job says when it was written."""
    loads = {"k": [1, 5], "v": ["a", "a"]}, {"k": [5, 6], "v": ["b", "b"]}, {"k": [6, 9], "v": [None, None]}
    pool = filled(lake, *loads, kind="aggregate")
    before = rows(pool)
    first, between, third = sorted(pool.at().references, key=lambda r: r.seq)
    compact(pool.branch(), [first, third])
    assert rows(pool) == before
    made = next(r for r in pool.at().references if r.object != between.object)
    compact(pool.branch(), [made])
    assert rows(pool) == before
    compact(pool.branch(), pool.at().references)
    assert rows(pool) == before


def test_what_deletes_cover_as_a_whole_is_combined_with_nothing(lake: Lake) -> None:
    """So it goes in one job, whatever lies between."""
    pool = filled(lake, {"k": [1, 2]}, {"k": [1, 2, 3]}, {"k": [1, 2]}, kind="aggregate")
    first, second, third = sorted(pool.at().references, key=lambda r: r.seq)
    pool.branch().delete(key_range=KeyRange(b"", second.high[:-1]))
    assert compact(pool.branch(), [first, third]).records == 0
    assert rows(pool) == [{"k": 3}]


def test_an_input_between_the_others_may_be_one_that_a_delete_covers_as_a_whole(lake: Lake) -> None:
    pool = filled(lake, {"k": [1, 3]}, {"k": [2, 3]}, kind="aggregate")
    _first, second = sorted(pool.at().references, key=lambda r: r.seq)
    pool.branch().delete(key_range=KeyRange(second.low, None))
    pool.branch().append(pa.table({"k": [1, 3]}))
    before = rows(pool)
    dropped = compact(pool.branch(), [r for r in pool.at().references if r.object != second.object])
    assert f"{second.object} lies between" in dropped.lost
    compact(pool.branch(), pool.at().references)
    assert rows(pool) == before == [{"k": 1}, {"k": 3}]


def test_the_object_says_what_it_was_made_of(lake: Lake) -> None:
    pool = filled(lake, *LOADS)
    inputs = sorted(r.object for r in pool.at().references)
    compact(pool.branch(), pool.at().references)
    _, transaction = next(pool.log())
    with DataObject(lake.store, pool_id=pool.config.id, object_id=pool.at().references[0].object) as data:
        assert data.metadata.origin.inputs == tuple(inputs)
        assert data.metadata.origin.transaction_id == transaction.id
        assert (data.metadata.first_seq, data.metadata.last_seq) == (sequence(1), sequence(3))
        assert data.schema.names == ["k", "v", "w", "_seq", "_place"]
    assert pool.at().schema.names == ["k", "v", "w"]
    assert [c.name for c in pool.at().references[0].columns] == ["k", "v", "w"]


def test_outputs_follow_each_other_and_share_no_key() -> None:
    lake = Lake.create_on(MemoryStore(), limits=ScanLimits(objects=ObjectLimits(row_group=10)))
    keys = [n % 100 for n in range(1000)]
    pool = filled(lake, {"k": keys}, {"k": keys})
    before = rows(pool)
    done = compact(pool.branch(), pool.at().references, outputs=4)
    assert done.objects == 4
    held = pool.at().references
    assert all(a.high <= b.low for a, b in itertools.pairwise(held))
    assert max(r.records for r in held) < 2 * min(r.records for r in held)
    assert rows(pool) == before


def test_what_is_loaded_meanwhile_stays(lake: Lake) -> None:
    pool = filled(lake, *LOADS)
    branch = pool.branch()
    work = begin_compaction(branch, pool.at().references, outputs=1, message="slow")
    branch.append(pa.table({"k": [0, 5], "v": ["new", "new"]}))
    before = rows(pool)
    written = write_whole(Here.of(lake.context).worker, work)
    assert written is not None
    committed(branch, work, [written])
    assert rows(pool) == before


def test_a_delete_that_lands_meanwhile_covers_what_is_written_and_an_earlier_one_is_done(lake: Lake) -> None:
    pool = filled(lake, {"k": [1, 2, 3]}, {"k": [1, 2, 3]})
    branch = pool.branch()
    branch.delete(where="k = 2")
    work = begin_compaction(branch, pool.at().references, outputs=1, message="slow")
    branch.delete(where="k = 3")
    written = write_whole(Here.of(lake.context).worker, work)
    assert written is not None
    committed(branch, work, [written])
    assert rows(pool) == [{"k": 1}, {"k": 1}]
    (made,) = pool.at().references
    first, second = pool.at().tombstones
    assert [t.reaches(made) for t in (first, second)] == [False, True]


def test_a_delete_marker_stays_as_long_as_another_object_of_its_load_holds_the_key(lake: Lake) -> None:
    pool = lake.create_pool("p", key="k", kind="upsert", settings={"load.memory": "1", "load.sort": "parts"})
    branch = pool.branch()
    job = branch.begin_load()
    assert isinstance(job, PendingLoad)
    builder = branch.builder(job)
    builder.add(Block(pa.table({"k": [1], "_deleted": [False]})))
    builder.add(Block(pa.table({"k": [1], "_deleted": [True]})))
    written = builder.finish()
    branch.commit(job, objects=[w.action for w in written], schemas=[w.schema for w in written])
    assert rows(pool) == []
    _, marker = sorted(pool.at().references, key=lambda r: r.ordinal)
    compact(branch, [marker])
    assert rows(pool) == []


def test_of_two_that_share_an_input_one_wins_and_nothing_is_lost(lake: Lake) -> None:
    pool = filled(lake, *LOADS)
    branch = pool.branch()
    before = rows(pool)
    works = [begin_compaction(branch, pool.at().references[n : n + 2], outputs=1, message="") for n in (0, 1)]
    written = [write_whole(Here.of(lake.context).worker, work) for work in works]
    assert written[0] is not None
    assert written[1] is not None
    committed(branch, works[0], [written[0]])
    assert "taken by another compaction" in str(lost(branch, works[1], [written[1]]))
    assert rows(pool) == before
    assert pool.at().version == 4


def test_a_job_whose_input_was_taken_before_it_began_is_dropped(lake: Lake) -> None:
    pool = filled(lake, *LOADS)
    branch = pool.branch()
    planned = pool.at().references
    compact(branch, planned[:2], outputs=1)
    before = rows(pool)
    with pytest.raises(Conflict, match="taken by another compaction"):
        begin_compaction(branch, planned, outputs=1, message="late")
    (done,) = run_jobs(branch, [CompactionJob(tuple(planned), 1, "late")], Here.of(branch.context))
    assert (done.version, done.records) == (None, 0)
    assert "taken by another compaction" in done.lost
    assert rows(pool) == before


def test_an_input_that_is_missing_is_said_and_changes_nothing(lake: Lake) -> None:
    pool = filled(lake, *LOADS)
    lost = pool.at().references[0]
    lake.store.delete(pool.at().object_name(lost))
    with pytest.raises(ObjectMissing, match=lost.object):
        compact(pool.branch(), pool.at().references)
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
    assert compact(pool.branch(), pool.at().references).records == 3
    assert rows(pool) == expected


def test_delete_markers_go_only_where_nothing_older_is_left_to_hide(lake: Lake) -> None:
    def marked(*keys: int) -> pa.Table:
        return pa.table({"k": list(keys), "_deleted": [True] * len(keys)})

    pool = filled(lake, {"k": [1, 2]}, {"k": [1, 2], "x": [0, 0]}, kind="upsert")
    pool.branch().append(marked(2))
    assert [r["k"] for r in rows(pool)] == [1]
    _first, second, third = sorted(pool.at().references, key=lambda r: r.seq)
    assert (
        compact(pool.branch(), [second, third]).records == 2
    )  # the marker still hides the first load's record
    assert [r["k"] for r in rows(pool)] == [1]
    assert compact(pool.branch(), pool.at().references).records == 1
    assert [r["k"] for r in rows(pool)] == [1]


def test_a_delete_marker_keeps_nothing_but_its_key(lake: Lake) -> None:
    """What was deleted is gone from the object too, though the marker must stay."""
    pool = filled(lake, {"k": [1, 2], "v": ["old", "b"]}, {"k": [1], "v": ["secret"]}, kind="upsert")
    pool.branch().delete(where="v = 'secret'")
    _, newest = sorted(pool.at().references, key=lambda r: r.seq)
    compact(pool.branch(), [newest])
    (made,) = (r for r in pool.at().references if r.key_range.contains(newest.low) and r.oldest is not None)
    with DataObject(lake.store, pool_id=pool.config.id, object_id=made.object) as data:
        (batch,) = data.batches(EVERYTHING, key=pool.config.key, columns=None)
    assert [(row["k"], row["v"], row["_deleted"]) for row in batch.to_pylist()] == [(1, None, True)]
    assert [row["k"] for row in rows(pool)] == [2]


# ---------------------------------------------------------------- large pools


@pytest.mark.parametrize("kind", ["append", "upsert"])
@pytest.mark.parametrize("newest", [False, True])
def test_a_job_of_a_large_pool_looks_at_no_more_references(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, kind: str, newest: bool
) -> None:
    """Its loads overlap, so all of them lie in the range of the job; they are decoded only as far as needed."""
    decoded = 0

    def counted(table: pa.Table, *, sub_pool: str) -> Iterator[Reference]:
        nonlocal decoded
        for reference in from_rows(table, sub_pool=sub_pool):
            decoded += 1
            yield reference

    seen = []
    for loads in (PART, 3 * PART):
        pool = lake.create_pool(f"p{loads}", key="k", kind=kind)
        for n in range(loads):
            pool.branch().append(pa.table({"k": [n, 1_000 + n]}))
        write_newest(pool.history.journal, new_id=pool.context.ids.new, now=0.0)
        pool = Lake.open_on(lake.store).pool(pool.config.name)
        inputs = sorted(pool.at().references, key=lambda r: r.seq)[-4 if newest else 0 :][:4]
        decoded = 0
        with monkeypatch.context() as patched:
            patched.setattr(fixed, "from_rows", counted)
            work = begin_compaction(pool.branch(), inputs, outputs=1, message="")
        assert work.oldest_only is (kind == "upsert" and not newest)
        seen.append(decoded)
    assert seen[0] == seen[1] <= len(inputs) + PART


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
