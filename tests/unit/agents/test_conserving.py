"""A rewriting that would lose or change records is refused before it commits: faults put into the merge on purpose.

Each fault stands for one that a merge, a cast or a writer could have.  The same rewriting without it is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from lake_core.errors import Corrupt, InvalidInput, NotConserved
from lake_core.keys.encoding import encode_value
from lake_core.keys.ranges import EVERYTHING
from lake_core.records import AddObject, RemoveReference
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.objects.containers.parquet_sink import ParquetSink
from log_lake.reading import scan
from log_lake.rewriting import work
from log_lake.rewriting.compaction import begin_compaction, compact
from log_lake.rewriting.conserving import check_piece
from log_lake.stores.memory import MemoryStore
from log_lake.workers import Here

Fault = Callable[[pa.Table], pa.Table]

LOADS = (
    {
        "k": [1, 2, 3, 4],
        "v": ["a", "b", "c", "d"],
        "w": ["x", "y", "z", "x"],
        "n": [1, 2, 3, 2**60 + 1],
        "d": [0.1] * 4,
    },
    {"k": [2, 3, 5], "v": ["e", "f", "g"], "w": ["p", "q", "r"], "n": [7, 8, 9], "d": [0.5, 0.25, 0.75]},
    {"k": [3, 6], "v": ["h", "i"], "n": [2.5, 3.5]},
)


def filled(kind: str = "append", *, verify: str = "content", sums: str = "off") -> Pool:
    lake = Lake.create_on(MemoryStore())
    settings = {"verify.rewrites": verify, "content.sums": sums}
    pool = lake.create_pool("p", key="k", kind=kind, settings=settings)
    for load in LOADS:
        pool.branch().append(pa.table(load))
    return pool


def rows(*places: int) -> Fault:
    """The rows of these numbers, of a table of nine."""
    return lambda table: table.take(pa.array(places))


def column(name: str, change: Callable[[list[Any]], list[Any]]) -> Fault:
    def fault(table: pa.Table) -> pa.Table:
        at = table.schema.get_field_index(name)
        values = pa.array(change(table.column(at).to_pylist()), table.schema.field(at).type)
        return table.set_column(at, table.schema.field(at), values)

    return fault


def swapped(values: list[Any], one: int, other: int) -> list[Any]:
    values[one], values[other] = values[other], values[one]
    return values


def two_columns_swapped(table: pa.Table) -> pa.Table:
    v, w = (table.schema.get_field_index(name) for name in "vw")
    columns = swapped(list(table.columns), v, w)
    return pa.table(columns, schema=table.schema)


# the keys in order: 1 2 2 3 3 3 4 5 6
FAULTS: dict[str, Fault] = {
    "drops a record": rows(0, 1, 2, 3, 5, 6, 7, 8),
    "drops the first record": rows(1, 2, 3, 4, 5, 6, 7, 8),
    "drops the last record": rows(0, 1, 2, 3, 4, 5, 6, 7),
    "doubles a record": rows(0, 1, 2, 3, 3, 4, 5, 6, 7, 8),
    "takes a record twice and another never": rows(0, 1, 1, 3, 4, 5, 6, 7, 8),
    "cuts a page": rows(0, 1, 2, 3),
    "repeats a page": rows(0, 1, 2, 3, 4, 5, 6, 7, 8, 6, 7, 8),
    "drops everything": lambda table: table.slice(0, 0),
    "two versions in the wrong order": rows(0, 2, 1, 3, 4, 5, 6, 7, 8),
    "the oldest version last": rows(0, 1, 2, 4, 5, 3, 6, 7, 8),
    "keys out of order": rows(0, 1, 2, 3, 4, 5, 7, 6, 8),
    "swaps two values": column("v", lambda values: swapped(values, 0, 6)),
    "swaps two values of one key": column("v", lambda values: swapped(values, 1, 2)),
    "swaps two fields": two_columns_swapped,
    "loses a value": column("v", lambda values: [None, *values[1:]]),
    "loses a field": column("w", lambda values: [None] * len(values)),
    "invents a value": column("w", lambda values: [*values[:-1], "new"]),
    "cuts a text": column("v", lambda values: ["", *values[1:]]),
    "rounds a double": column(
        "d", lambda values: [None if v is None else float(np.float32(v)) for v in values]
    ),
    "rounds a whole number": column("n", lambda values: [v.replace("6977", "6976") for v in values]),
    "changes a key": column("k", lambda values: [0, *values[1:]]),
    "changes an age": column("_seq", lambda values: [values[0] + 1, *values[1:]]),
    "changes an ordinal": column("_place", lambda values: [values[0] + 1, *values[1:]]),
}


def with_fault(monkeypatch: pytest.MonkeyPatch, fault: Fault) -> None:
    merge = work.live_records

    def faulty(*args: Any, **kwargs: Any) -> Iterator[pa.Table]:
        yield fault(pa.concat_tables(merge(*args, **kwargs)).combine_chunks())

    monkeypatch.setattr(work, "live_records", faulty)


def refused(pool: Pool, error: type[Corrupt] = NotConserved) -> str:
    before = pool.at()
    with pytest.raises(error) as refusal:
        compact(pool.branch(), before.references)
    after = pool.at()
    assert (after.version, after.references) == (before.version, before.references)
    return str(refusal.value)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_the_merge_is_refused_before_the_commit(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = filled()
    content = pool.at().content()
    with monkeypatch.context() as patch:
        with_fault(patch, FAULTS[name])
        assert refused(pool).startswith("pool 'p', branch 'main': 3 inputs of a rewriting (")
    compact(pool.branch(), pool.at().references)
    assert len(pool.at().references) == 1
    assert pool.at().content() == content


def test_the_message_has_both_sums_and_the_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    with_fault(monkeypatch, FAULTS["drops a record"])
    message = refused(filled())
    assert message.count("content sum") == 2
    assert "9 records, content sum" in message
    assert "has 8 records, content sum" in message
    assert "nothing was committed, and the inputs stay: run `lake fsck p --data`" in message


WRITERS: dict[str, Fault] = {
    "loses a record": lambda table: table.slice(1),
    "writes values of other records": column("v", lambda values: values[::-1]),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_fault_of_the_writer_is_refused_before_the_commit(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool, write, fault = filled(), ParquetSink.write, WRITERS[name]
    monkeypatch.setattr(ParquetSink, "write", lambda self, table, groups: write(self, fault(table), groups))
    refused(pool, Corrupt)  # the footer tells another number of records than the file has


def test_a_delete_that_hides_too_little_or_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for applied in (lambda tables, *_, **__: tables, lambda tables, *_, **__: (t.slice(2) for t in tables)):
        pool = filled()
        pool.branch().delete(where="v = 'a'")
        with monkeypatch.context() as patch:
            patch.setattr(scan, "apply_tombstones", applied)
            refused(pool)
        compact(pool.branch(), pool.at().references)
        assert pool.at().content().records == 8


UPSERT: dict[str, Fault] = {
    "an older version": column("v", lambda values: [values[0], "b", *values[2:]]),
    "a key lost": rows(0, 1, 3, 4, 5),
    "two versions": rows(0, 1, 1, 2, 3, 4, 5),
}


@pytest.mark.parametrize("name", UPSERT)
def test_an_upsert_pool_keeps_the_newest_of_each_key(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = filled("upsert")
    pool.branch().append(pa.table({"k": [4, 9], "_deleted": [True, True]}))
    content = pool.at().content()
    with monkeypatch.context() as patch:
        with_fault(patch, UPSERT[name])
        refused(pool)
    compact(pool.branch(), pool.at().references)
    assert pool.at().content() == content


AGGREGATE: dict[str, Fault] = {
    "a sum that misses a value": column("n", lambda values: [*values[:-1], values[-1] - 1]),
    "a key lost": lambda table: table.slice(1),
    "a key twice": lambda table: pa.concat_tables([table.slice(0, 1), table]),
}


@pytest.mark.parametrize("name", AGGREGATE)
def test_an_aggregate_pool_keeps_its_keys_and_exact_sums(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake.create_on(MemoryStore())
    pool = lake.create_pool(
        "p", key="k", kind="aggregate", aggregates={"n": "sum"}, settings={"verify.rewrites": "content"}
    )
    for load in LOADS[:2]:
        pool.branch().append(pa.table({"k": load["k"], "n": [int(n) for n in range(len(load["k"]))]}))
    pool.branch().append(pa.table({"k": [6], "n": [5]}))
    with monkeypatch.context() as patch:
        with_fault(patch, AGGREGATE[name])
        refused(pool)
    content = pool.at().content()
    compact(pool.branch(), pool.at().references)
    assert pool.at().content() == content


def test_counts_are_compared_whatever_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        with_fault(patch, FAULTS["drops a record"])
        message = refused(filled(verify="counts"))
        assert "must give at least 9 records, but the new objects have 8 records; " in message
    with_fault(monkeypatch, FAULTS["swaps two values"])
    pool = filled(verify="counts")
    compact(pool.branch(), pool.at().references)
    assert len(pool.at().references) == 1


@pytest.mark.parametrize("verify", ["counts", "content"])
def test_an_input_that_is_a_part_of_its_object_has_fewer_records(verify: str) -> None:
    pool = filled(verify=verify)
    reference = pool.at().references[0]
    clipped = msgspec.structs.replace(reference, high=encode_value(3))
    added = {
        name: getattr(clipped, name)
        for name in ("object", "records", "size", "schema", "low", "high", "columns")
    }
    pool.commit_actions(
        (RemoveReference(reference.object, reference.low), AddObject(**added)), branch="main", message="clip"
    )
    content = pool.at().content()
    compact(pool.branch(), pool.at().references)
    assert (len(pool.at().references), pool.at().content()) == (1, content)
    assert content.records == 7


def test_the_setting_has_two_words() -> None:
    with pytest.raises(InvalidInput, match="use counts or content"):
        filled(verify="all")


@pytest.mark.parametrize("kind", ["append", "upsert"])
def test_parts_of_few_records_give_the_same_answer(kind: str) -> None:
    pool = filled(kind)
    pool.branch().delete(where="v = 'e'")
    work_ = begin_compaction(pool.branch(), pool.at().references, outputs=1, message="")
    (piece,) = work.write(work_, Here.of(pool.context), pool.store)
    check_piece(work_, EVERYTHING, pool.store, piece.objects, part_records=1)
