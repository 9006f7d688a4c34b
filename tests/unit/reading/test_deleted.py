"""Which records tombstones leave, table by table; that whole scans are right is said by the model-based test."""

from __future__ import annotations

import datetime as dt
import itertools
import random
from typing import Any

import pyarrow as pa
import pytest
from msgspec import structs

from lake_core.history.tombstone import Tombstone
from lake_core.keys import PoolKey
from lake_core.keys.encoding import AFTER, encode_key
from lake_core.schemas.hidden import DELETED, SEQ
from log_lake.columns.keys import key_at
from log_lake.reading import places
from log_lake.reading.deleted import MOST_NARROW, apply_tombstones
from log_lake.where import check

KEY = PoolKey.parse("k")


def records(*rows: tuple[int, int, int]) -> pa.Table:
    """Of key, value and sequence; none is a delete marker."""
    k, v, seq = (list(column) for column in zip(*rows, strict=True))
    return pa.table({"k": k, "v": v, DELETED: [False] * len(k), SEQ: pa.array(seq, pa.uint64())})


def tombstone(
    seq: int, *, low: int | None = None, high: int | None = None, where: str = "", self_only: bool = False
) -> Tombstone:
    condition = check(where, pa.schema({"k": pa.int64(), "v": pa.int64()})) if where else None
    begin = b"" if low is None else encode_key([low], KEY)
    end = None if high is None else encode_key([high], KEY)
    return Tombstone(f"t{seq}{where}", seq, seq, 0, "", 0, begin, end, condition, self_only=self_only)


def left(*tables: pa.Table, by: list[Tombstone], marks: bool = False) -> list[tuple[int, int]]:
    """The keys and values that are left; of delete markers the value is -1."""
    found = [
        t for table in apply_tombstones(tables, by, key=KEY, has_markers=marks) for t in table.to_pylist()
    ]
    return [(r["k"], -1 if r[DELETED] else r["v"]) for r in found]


@pytest.mark.parametrize("where", ["", "v = 7"])
def test_what_is_older_is_covered_and_what_came_later_is_not(where: str) -> None:
    table = records((1, 7, 1), (1, 7, 3), (2, 7, 2), (2, 7, 4))
    assert left(table, by=[tombstone(3, where=where)]) == [(1, 7), (2, 7)]
    assert left(table, by=[tombstone(5, where=where)]) == []
    assert len(left(table, by=[tombstone(1, where=where)])) == 4


@pytest.mark.parametrize("where", ["", "v = 7"])
def test_an_own_tombstone_covers_its_own_load_and_nothing_older_in_any_table(where: str) -> None:
    older, own = records((1, 7, 1), (2, 7, 2)), records((3, 7, 2), (4, 7, 5))
    assert left(older, own, by=[tombstone(5, where=where, self_only=True)]) == [(1, 7), (2, 7), (3, 7)]


@pytest.mark.parametrize("where", ["", "v = 7"])
def test_what_lies_outside_of_the_range_is_left(where: str) -> None:
    table = records((1, 7, 1), (2, 7, 1), (3, 7, 1), (4, 7, 1))
    assert left(table, by=[tombstone(5, low=2, high=4, where=where)]) == [(1, 7), (4, 7)]
    assert left(table, by=[tombstone(5, high=3, where=where)]) == [(3, 7), (4, 7)]
    assert left(table, by=[tombstone(5, low=3, where=where)]) == [(1, 7), (2, 7)]


def test_many_conditions_cover_what_one_of_them_does_each_by_its_age() -> None:
    table = records((1, 1, 4), (2, 2, 4), (3, 3, 1), (4, 4, 1))
    by = [
        tombstone(5, where="v = 1"),
        tombstone(6, where="v in (3, 9)"),
        tombstone(3, where="v = 2 or v = 4"),
    ]
    assert left(table, by=by) == [(2, 2)]


def test_in_an_upsert_pool_a_condition_leaves_a_marker_and_a_range_nothing() -> None:
    table = records((1, 7, 1), (2, 8, 1), (3, 7, 1))
    assert left(table, by=[tombstone(5, where="v = 7")], marks=True) == [(1, -1), (2, 8), (3, -1)]
    assert left(table, by=[tombstone(5, low=1, high=3)], marks=True) == [(3, 7)]
    assert left(table, by=[tombstone(5, high=3, where="v = 7")], marks=True) == [(1, -1), (2, 8), (3, 7)]


def test_a_bound_is_found_in_the_columns_and_no_key_is_encoded_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = pa.table({"k": range(10_000), DELETED: [False] * 10_000})
    by = [tombstone(5, low=10 * n, high=10 * n + 3) for n in range(1, 900)]
    encoded = 0

    def counted(*args: Any) -> bytes:
        nonlocal encoded
        encoded += 1
        return key_at(*args)

    monkeypatch.setattr(places, "key_at", counted)
    (found,) = apply_tombstones([table], by, key=KEY, has_markers=False)
    assert found.num_rows == 10_000 - 3 * 899
    assert encoded == 0


KEYS: list[tuple[str, list[list[Any]]]] = [
    ("a", [["a", "b", None, "é"]]),
    ("a:desc", [[1, 2, 3]]),
    ("a,b", [[1, 2, None], [1.5, None, -0.0]]),
    ("a,b:desc", [["x", "y"], [1, 2, 3]]),
    ("a", [[-0.0, 0.0, float("nan"), 1.5]]),
    ("a", [[dt.date(2026, 1, 1), dt.date(2026, 1, 2), None]]),
]


@pytest.mark.parametrize(("key", "values"), KEYS)
def test_a_bound_lies_where_the_keys_below_it_end(key: str, values: list[list[Any]]) -> None:
    of = PoolKey.parse(key)
    rows = sorted(itertools.product(*values), key=lambda row: encode_key(list(row), of)) * 1
    table = pa.table(dict(zip(of.names, map(list, zip(*rows, strict=True)), strict=True)))
    keys = [encode_key(list(row), of) for row in rows]
    parts = [encode_key([row[0]], of) for row in rows]
    bounds = sorted({b + after for b in (*keys, *parts) for after in (b"", AFTER, b"\0")} | {b""})
    assert places.places_of(table, bounds, of) == [sum(k < bound for k in keys) for bound in bounds]


def one_by_one(table: pa.Table, by: list[Tombstone]) -> list[tuple[int, int]]:
    """What is left if each tombstone is applied in a pass of its own."""
    for one in by:
        table = pa.concat_tables(
            [table.slice(0, 0), *apply_tombstones([table], [one], key=KEY, has_markers=False)]
        )
    return [(r["k"], r["v"]) for r in table.to_pylist()]


@pytest.mark.parametrize("seed", range(6))
def test_narrow_deletes_leave_together_what_each_leaves_alone(seed: int) -> None:
    """Their ranges overlap, end inside of equal keys' runs, and lie partly or wholly outside of conditions."""
    chance = random.Random(seed)
    keys = sorted(chance.choices(range(600), k=3000))
    rows = [(k, chance.randrange(9), chance.randrange(1, 400)) for k in keys]
    forms = (
        "v = {v}",
        "v < {v} and k > {k}",
        "v = {v} or k = {k}",
        "not v >= {v}",
        "v in ({v}, 3)",
        "v is null",
    )
    by = []
    for seq in range(1, MOST_NARROW + 50):
        low, width = chance.randrange(-5, 600), chance.choice([1, 4, 9, 300])
        form = chance.choice(forms).format(v=chance.randrange(9), k=chance.randrange(600))
        by.append(tombstone(seq, low=low, high=low + width, where=form))
    expected = one_by_one(records(*rows), by)
    assert 0 < len(expected) < len(rows)
    assert left(records(*rows), by=by) == expected


def test_a_narrow_delete_of_a_field_that_the_records_lack_hides_none_of_them() -> None:
    table = records(*((k, k % 3, 1) for k in range(40)))
    by = [tombstone(5, low=k, high=k + 2, where="v = 1") for k in range(3, 30, 3)]
    lacking = check("gone = 1", pa.schema({"gone": pa.int64()}))
    by += [structs.replace(tombstone(9, low=k, high=k + 2), condition=lacking) for k in range(3, 30, 3)]
    assert left(table, by=by) == [(k, k % 3) for k in range(40) if not (3 <= k < 29 and k % 3 == 1)]
