"""A rewriting compares numbers of records by default: bounds that always hold, and footers before it refuses."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from lake_core.errors import NotConserved
from lake_core.history import Reference
from lake_core.keys.encoding import encode_value
from lake_core.records import AddObject, RemoveReference
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.rewriting import counting, work
from log_lake.rewriting.compaction import compact
from log_lake.stores.memory import MemoryStore

LOADS = ([1, 2, 3, 4], [2, 3, 5], [3, 6])
RECORDS = sum(map(len, LOADS))


def filled(kind: str = "append") -> Pool:
    sums = {"n": "sum"} if kind == "aggregate" else {}
    pool = Lake.create_on(MemoryStore()).create_pool("p", key="k", kind=kind, aggregates=sums)
    for keys in LOADS:
        pool.branch().append(pa.table({"k": keys, "n": keys}))
    return pool


def put(pool: Pool, reference: Reference, **changes: Any) -> None:
    """Puts a reference with changes in the place of the one that the pool has."""
    changed = msgspec.structs.replace(reference, **changes)
    names = ("object", "records", "size", "schema", "low", "high", "columns")
    added = AddObject(**{name: getattr(changed, name) for name in names})
    removed = RemoveReference(reference.object, reference.low)
    pool.commit_actions((removed, added), branch="main", message="change")


def of_keys(pool: Pool, low: int) -> Reference:
    (reference,) = (r for r in pool.at().references if r.low == encode_value(low))
    return reference


def merges(monkeypatch: pytest.MonkeyPatch, *places: int) -> None:
    """The merge gives the records of these places, whatever it should give."""
    merge = work.live_records

    def faulty(*args: Any, **kwargs: Any) -> Iterator[pa.Table]:
        yield pa.concat_tables(merge(*args, **kwargs)).combine_chunks().take(pa.array(places, pa.int64()))

    monkeypatch.setattr(work, "live_records", faulty)


def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The objects whose footers are looked at from now on."""
    seen, opens = list[str](), counting.DataObject.at

    class Watched:
        @staticmethod
        def at(store: Any, one: Any, **options: Any) -> counting.DataObject:
            seen.append(one.object)
            return opens(store, one, **options)

    monkeypatch.setattr(counting, "DataObject", Watched)
    return seen


def refused(pool: Pool, references: tuple[Reference, ...] = ()) -> str:
    before = pool.at()
    with pytest.raises(NotConserved) as refusal:
        compact(pool.branch(), references or before.references)
    assert pool.at().references == before.references
    return str(refusal.value)


@pytest.mark.parametrize("kind", ["append", "upsert", "aggregate"])
def test_numbers_that_fit_read_no_footer(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pool, seen = filled(kind), looked_at(monkeypatch)
    compact(pool.branch(), pool.at().references)
    assert (len(pool.at().references), seen) == (1, [])


@pytest.mark.parametrize("wrong", [1, 100])
def test_a_wrong_number_of_a_reference_does_not_block_its_compaction(
    wrong: int, caplog: pytest.LogCaptureFixture
) -> None:
    pool = filled()
    reference, content = of_keys(pool, 1), pool.at().content()
    put(pool, reference, records=wrong)
    with caplog.at_level(logging.WARNING, logger=counting.__name__):
        compact(pool.branch(), pool.at().references)
    assert [r.records for r in pool.at().references] == [RECORDS]
    assert pool.at().content() == content
    (message,) = caplog.messages
    assert f"the reference of {reference.object} says {wrong}, the object has 4; " in message
    assert "1 reference of 3 inputs say" in message
    assert "`lake fsck p` reports such references as statistics_lie" in message


@pytest.mark.parametrize(
    ("places", "says"),
    [((0, 1, 2, 3, 4, 5, 6, 7), "at least 9 records"), ((0, 0, 1, 2, 3, 4, 5, 6, 7, 8), "at most 9 records")],
)
def test_a_wrong_number_of_a_reference_hides_no_fault(
    places: tuple[int, ...], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = filled()
    put(pool, of_keys(pool, 1), records=100)
    merges(monkeypatch, *places)
    assert f"must give {says}, but the new objects have {len(places)} records; " in refused(pool)


def test_the_whole_inputs_count_beside_one_that_is_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = filled()
    put(pool, of_keys(pool, 1), high=encode_value(3))
    with monkeypatch.context() as patch:
        merges(patch, 0, 1, 2, 3)
        assert "must give at least 5 records, but the new objects have 4 records; " in refused(pool)
    with monkeypatch.context() as patch:
        merges(patch, *[0] * 10)
        assert "must give at most 9 records, but the new objects have 10 records; " in refused(pool)
    compact(pool.branch(), pool.at().references)
    assert [r.records for r in pool.at().references] == [7]


def test_a_loss_that_the_first_footer_proves_reads_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, seen = filled(), looked_at(monkeypatch)
    first = of_keys(pool, 1)
    merges(monkeypatch)
    assert "must give at least 4 records, but the new objects have 0 records; " in refused(pool)
    assert seen == [first.object]


@pytest.mark.parametrize("kind", ["upsert", "aggregate"])
def test_no_kind_gets_more_records_than_it_had(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = filled(kind)
    merges(monkeypatch, *[0] * 10)
    assert "must give at most 9 records, but the new objects have 10 records; " in refused(pool)


def test_a_delete_gives_no_more_records_than_there_were(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = filled()
    pool.branch().delete(where="k = 3")
    merges(monkeypatch, *[0] * 10)
    assert "must give at most 9 records" in refused(pool)


def test_an_aggregate_pool_does_not_lose_all_records(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = filled("aggregate")
    merges(monkeypatch)
    assert "must give at least 1 record, but the new objects have 0 records; " in refused(pool)


def test_an_upsert_pool_whose_markers_stay_does_not_lose_all_records(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = filled("upsert")
    pool.branch().append(pa.table({"k": [3, 6], "_deleted": [True, True]}))
    newest = tuple(sorted(pool.at().references, key=lambda r: r.seq)[2:])
    with monkeypatch.context() as patch:
        merges(patch)
        assert "must give at least 1 record" in refused(pool, newest)
    content = pool.at().content()
    compact(pool.branch(), newest)
    assert (len(pool.at().references), pool.at().content()) == (3, content)


@pytest.mark.parametrize("kind", ["append", "upsert", "aggregate"])
def test_all_records_may_go_by_a_delete(kind: str) -> None:
    pool = filled(kind)
    pool.branch().delete(where="k < 100")
    compact(pool.branch(), pool.at().references)
    assert pool.at().content().records == 0


@pytest.mark.parametrize("kind", ["append", "upsert"])
def test_all_records_may_go_by_age(kind: str) -> None:
    pool = Lake.create_on(MemoryStore()).create_pool("p", key="k", kind=kind, settings={"age_off": "ts:1d"})
    for keys in LOADS:
        old = [datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)] * len(keys)
        pool.branch().append(pa.table({"k": keys, "ts": old}))
    compact(pool.branch(), pool.at().references)
    assert all(r.records == 0 or kind == "upsert" for r in pool.at().references)


def test_all_records_may_go_by_markers_with_nothing_below() -> None:
    pool = filled("upsert")
    pool.branch().append(pa.table({"k": [1, 2, 3, 4, 5, 6], "_deleted": [True] * 6}))
    compact(pool.branch(), pool.at().references)
    assert pool.at().references == []


def test_the_message_names_branch_and_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = filled()
    pool.branch().append(pa.table({"k": [7], "n": [7]}))
    inputs = sorted(pool.at().references, key=lambda r: r.order)
    merges(monkeypatch)
    named = ", ".join(f"{r.object} of {r.records} records" for r in inputs[:3])
    message = refused(pool)
    assert message.startswith(
        f"pool 'p', branch 'main': 4 inputs of a rewriting ({named}, and 1 more) must give "
    )


def test_the_message_names_the_sub_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = filled()
    for _ in range(2):
        pool.branch().append(pa.table({"n": [1, 2]}))
    merges(monkeypatch)
    nokey = pool.at().of_sub_pool("$nokey").references
    assert refused(pool, tuple(nokey)).startswith("pool 'p', sub-pool '$nokey', branch 'main': 2 inputs ")
