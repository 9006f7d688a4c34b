"""Records named by their keys are deleted, or replaced by others, in one transaction of any kind of pool."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal as D
from typing import Any

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.errors import Conflict, InvalidInput
from lake_core.keys import KeyRange
from lake_core.keys.encoding import AFTER, encode_value
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.lake.replaces import PendingReplace
from log_lake.lake.results import PendingLoad
from log_lake.loading.block import Block
from log_lake.stores.memory import MemoryStore
from log_lake.texts.keytext import RangeText
from tests.support.pools import a_pool, compact_all
from tests.support.stores import ScriptedStore

KINDS = ("append", "upsert", "aggregate")


def rows(pool: Pool) -> list[Any]:
    return [tuple(row.values()) for row in pool.at().to_table().to_pylist()]


def filled(kind: str) -> Pool:
    keys = list(range(6))
    return a_pool(pa.table({"k": keys, "v": [k * 10 for k in keys]}), kind=kind)


@pytest.mark.parametrize("kind", KINDS)
def test_the_records_of_keys_are_deleted_in_one_transaction(kind: str) -> None:
    pool = filled(kind)
    done = pool.branch().delete_keys(
        pa.table({"other": ["x", "y", "z"], "k": [1, 4, 99]}), reason="asked for"
    )
    assert done.version == 2
    assert rows(pool) == [(0, 0), (2, 20), (3, 30), (5, 50)]
    assert [t.message for _, t in pool.log()] == ["asked for", ""]
    compact_all(pool)
    assert rows(pool) == [(0, 0), (2, 20), (3, 30), (5, 50)]


@pytest.mark.parametrize("kind", KINDS)
def test_records_replace_those_of_their_keys_and_the_flagged_by_nothing(kind: str) -> None:
    pool = filled(kind)
    changes = pa.table({"k": [1, 4, 9, 3], "v": [-1, -4, -9, 0], "gone": [False, None, False, True]})
    assert pool.branch().replace_keys(changes, deleted="gone").version == 2
    expected = [(0, 0), (1, -1), (2, 20), (4, -4), (5, 50), (9, -9)]
    assert rows(pool) == expected
    assert pool.at().schema.names[:2] == ["k", "v"]
    assert "gone" not in pool.at().schema.names
    compact_all(pool)
    assert rows(pool) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_under_one_token_it_is_done_once(kind: str) -> None:
    pool = filled(kind)
    for _ in range(2):
        assert pool.branch().delete_keys(pa.table({"k": [1]}), token="d").version == 2
    for _ in range(2):
        assert pool.branch().replace_keys(pa.table({"k": [2], "v": [7]}), token="r").version == 3
    assert rows(pool) == [(0, 0), (2, 7), (3, 30), (4, 40), (5, 50)]


@pytest.mark.parametrize("meanwhile", [False, True], ids=["before", "meanwhile"])
def test_a_delete_under_the_token_of_a_load_is_refused(meanwhile: bool) -> None:
    store = ScriptedStore()
    pool = Lake.create_on(store).create_pool("p", key="k")
    pool.branch().append(pa.table({"k": [1, 2]}))

    def load() -> None:
        Lake.open_on(store).pool("p").branch().append(pa.table({"k": [3, 4]}), token="t")

    if meanwhile:
        store.on("create", naming.entry(naming.pool_journal(pool.config.id), 2), before=load)
    else:
        load()
    with pytest.raises(
        InvalidInput, match="token 't' stands for version 2, which brought 2 records, so nothing"
    ):
        pool.branch().delete(where="k = 1", token="t")
    assert rows(pool) == [(1,), (2,), (3,), (4,)]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_there_is_not_deleted_and_without_records_nothing_happens(kind: str) -> None:
    pool = filled(kind)
    assert pool.branch().replace_keys(pa.table({"k": pa.array([], pa.int64())})).version is None
    assert pool.branch().delete_keys(pa.table({"k": pa.array([], pa.int64())})).version is None
    if kind != "upsert":  # which does not look before it writes
        assert pool.branch().delete_keys(pa.table({"k": [77, 78]})).version is None


@pytest.mark.parametrize("kind", KINDS)
def test_records_may_replace_in_a_pool_that_is_empty_yet(kind: str) -> None:
    pool = a_pool(kind=kind)
    pool.branch().replace_keys(pa.table({"k": [3], "v": [30], "gone": [True]}), deleted="gone")
    assert rows(pool) == []
    pool.branch().replace_keys(pa.table({"k": [2, 1], "v": [20, 10]}))
    assert rows(pool) == [(1, 10), (2, 20)]


@pytest.mark.parametrize("kind", KINDS)
def test_records_of_a_program_get_the_declared_types_as_those_of_files_do(kind: str) -> None:
    pool = Lake.create_on(MemoryStore()).create_pool(
        "p", key="k", kind=kind, settings={"type.k": "date", "type.v": "int8"}
    )
    branch = pool.branch()
    days = [f"2026-01-0{day}" for day in (1, 2, 3)]
    branch.append(pa.table({"k": days, "v": [1, 2, 3]}))
    branch.replace_keys(pa.table({"k": days[1:2], "v": [20]}))
    branch.replace_with(pa.table({"k": days[2:], "v": [30]}), key_range=RangeText(low="2026-01-03"))
    assert rows(pool) == [(dt.date(2026, 1, 1 + n), v) for n, v in enumerate((1, 20, 30))]
    assert pool.at().schema.field("v").type == pa.int8()
    wrong = pa.table({"k": days[:1], "v": [300]})
    for refused in (branch.append, branch.replace_keys, branch.replace_with):
        with pytest.raises(InvalidInput, match="the records: field 'v': bigint is not a tinyint"):
            refused(wrong)
    assert len(list(pool.log())) == 3


def test_an_append_pool_holds_all_new_records_of_a_key_that_several_have() -> None:
    pool = filled("append")
    pool.branch().replace_keys(pa.table({"k": [1, 1], "v": [5, 6]}))
    assert rows(pool)[:4] == [(0, 0), (1, 5), (1, 6), (2, 20)]


@pytest.mark.parametrize("kind", ["append", "aggregate"])
def test_keys_of_several_fields_are_matched_whole(kind: str) -> None:
    table = pa.table({"a": [1, 1, 2, 2], "b": ["x", "y", "x", None], "v": [1, 2, 3, 4]})
    pool = a_pool(table, key="a,b", kind=kind)
    pool.branch().delete_keys(pa.table({"a": [1, 2], "b": ["x", None]}))
    assert rows(pool) == [(1, "y", 2), (2, "x", 3)]


def test_a_replace_of_keys_overtakes_only_the_records_of_a_load_that_have_these_keys() -> None:
    pool = filled("append")
    branch = pool.branch()
    pending = branch.begin_load()
    assert isinstance(pending, PendingLoad)
    building = branch.builder(pending)
    building.add(Block(pa.table({"k": [5, 2], "v": [51, 21]})))
    written = building.finish()
    branch.append(pa.table({"k": [7], "v": [70]}))  # so that the replace surely began later
    branch.replace_keys(pa.table({"k": [2], "v": [0]}))
    branch.commit(pending, objects=[w.action for w in written], schemas=[w.schema for w in written])
    assert rows(pool) == [(0, 0), (1, 10), (2, 0), (3, 30), (4, 40), (5, 50), (5, 51), (7, 70)]
    assert {t.key_range for t in pool.at().tombstones} == {KeyRange(encode_value(2), encode_value(2) + AFTER)}


def test_two_replaces_of_one_key_at_the_same_time_the_second_fails() -> None:
    pool = filled("append")
    begun = pool.branch().begin_replace(where="k = 2")
    assert isinstance(begun, PendingReplace)
    pool.branch().replace_keys(pa.table({"k": [2], "v": [0]}))
    with pytest.raises(Conflict, match="overlapping range"):
        pool.branch().commit(begun.load, objects=[], schemas=[], replaced=begun.spec)


@pytest.mark.parametrize("kind", KINDS)
def test_records_without_a_key_and_flags_that_are_none_are_refused(kind: str) -> None:
    branch = filled(kind).branch()
    with pytest.raises(InvalidInput, match=r"1 key without 'k' \(null\)"):
        branch.delete_keys(pa.table({"k": [1, None]}))
    with pytest.raises(InvalidInput, match="no column 'k'"):
        branch.replace_keys(pa.table({"v": [1]}))
    with pytest.raises(InvalidInput, match="the column 'k' more than once"):
        branch.delete_keys(pa.table([[1], [2]], names=["k", "k"]))
    for column in ("v", "nowhere"):
        with pytest.raises(InvalidInput, match=f"deleted='{column}': .* no boolean column"):
            branch.replace_keys(pa.table({"k": [1], "v": [1]}), deleted=column)


@pytest.mark.parametrize("kind", ["append", "aggregate"])
def test_a_key_of_another_class_is_refused(kind: str) -> None:
    branch = filled(kind).branch()
    with pytest.raises(InvalidInput, match="k"):
        branch.delete_keys(pa.table({"k": ["text"]}))
    with pytest.raises(InvalidInput, match="k"):
        branch.replace_keys(pa.table({"k": ["text"], "v": [1]}))


@pytest.mark.parametrize(
    ("stored", "asked", "gone"),
    [
        (pa.array([1, 2, 3], pa.int32()), pa.array([2.0, 2.5, float("nan"), 1e300]), [2]),
        (
            pa.array([1, 2, 3], pa.int8()),
            pa.array([D("3.00"), D("2.10"), D("500.00")], pa.decimal128(9, 2)),
            [3],
        ),
        (pa.array([0.5, 2**53 + 2.0]), pa.array([2**53 + 1, 2**53 + 2]), [2**53 + 2.0]),
        (pa.array([0.5, 0.1], pa.float32()), pa.array([0.1, 0.5]), [0.5]),
        (pa.array([1, 2], pa.timestamp("us", "UTC")), pa.array([1000, 2001], pa.timestamp("ns", "UTC")), [1]),
        (pa.array(["a", "b"]), pa.array(["b"], pa.large_string()), ["b"]),
    ],
    ids=["doubles", "decimals", "integers", "floats", "nanoseconds", "texts"],
)
@pytest.mark.parametrize("kind", ["append", "upsert"])
def test_keys_of_another_type_delete_what_they_equal_and_leave_the_type_of_the_pool(
    kind: str, stored: pa.Array, asked: pa.Array, gone: list[Any]
) -> None:
    pool = a_pool(pa.table({"k": stored}), kind=kind)
    before = pool.at().to_table()["k"]
    pool.branch().delete_keys(pa.table({"k": asked}))
    left = pool.at().to_table()["k"]
    assert left.type == stored.type
    removed = pa.array(gone).cast(stored.type, safe=False)
    assert left.to_pylist() == [v for v in before.to_pylist() if v not in removed.to_pylist()]


def test_a_delete_of_keys_binds_no_class_in_a_pool_without_records() -> None:
    pool = a_pool(kind="upsert")
    assert pool.branch().delete_keys(pa.table({"k": ["x"]})).version is None
    pool.branch().append(pa.table({"k": [1]}))
    with pytest.raises(InvalidInput, match="key field 'k': a string in the keys, a number in the records"):
        pool.branch().delete_keys(pa.table({"k": ["x"]}))
    assert rows(pool) == [(1,)]
