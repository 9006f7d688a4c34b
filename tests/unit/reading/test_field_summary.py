"""The figures of a field: a sketch counts only where it says what readers see, and every other object is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from lake_core.errors import InvalidInput
from log_lake.indexes.lookup import IndexAnswer
from log_lake.indexes.names import list_indexes
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.reading.age_off import NAME as AGE_OFF
from log_lake.reading.field_summary import INLINED, NO_RULE, FieldFigures
from log_lake.reading.known import BY_FILTER, DELETE, SHARED
from log_lake.rewriting.indexing import make_indexes
from log_lake.stores.memory import MemoryStore


def a_pool(kind: str = "append", *, rule: bool = True, settings: Mapping[str, str] | None = None) -> Pool:
    lake = Lake.create_on(MemoryStore("memory://figures"))
    rules = {"index.n": "sketch(n)", "index.i": "sketch(r.i)"} if rule else {}
    return lake.create_pool(
        "p", key="k", kind=kind, settings={"load.inline": "0", **rules, **(settings or {})}
    )


def load(pool: Pool, keys: range, **columns: Any) -> None:
    numbers = [None if key % 10 == 9 else key * 2 for key in keys]
    pool.branch().append(pa.table({"k": list(keys), "n": numbers, **columns}))


def check(
    pool: Pool, field: str = "n", *, sketches: int, read: Mapping[str, int] | None = None
) -> FieldFigures:
    """The figures are those of the records that readers see; so many objects were read, by reason."""
    figures = pool.at().field_summary(field)
    values = pool.at().to_table()["n"].to_pylist()
    some = sorted(v for v in values if v is not None)
    assert (figures.records, figures.nulls) == (len(values), values.count(None))
    assert (figures.low, figures.high) == (some[0], some[-1])
    assert (figures.distinct, figures.distinct_error) == (len(set(some)), 0.0)
    assert figures.quantiles[0.5] == some[(len(some) + 1) // 2 - 1]
    assert figures.rank_error == 0
    assert (figures.sketches, figures.reasons) == (sketches, read or {})
    return figures


def test_sketches_of_several_objects_are_united() -> None:
    pool = a_pool()
    for start in range(0, 100, 20):
        load(pool, range(start, start + 20))
    check(pool, sketches=5)


def test_without_a_rule_every_object_is_read() -> None:
    pool = a_pool(rule=False)
    load(pool, range(50))
    figures = check(pool, sketches=0, read={NO_RULE: 1})
    assert list(figures.read) == [r.object for r in pool.at().references]


def test_what_a_delete_touches_is_read() -> None:
    pool = a_pool()
    for start in (0, 100, 200):
        load(pool, range(start, start + 50))
    pool.branch().delete(key_range=pool.at().key_range(low=110, high=120))
    check(pool, sketches=2, read={DELETE: 1})


def test_what_ages_off_is_read() -> None:
    lake = Lake.create_on(MemoryStore("memory://aged"))
    pool = lake.create_pool(
        "p",
        key="t",
        settings={"load.inline": "0", "index.n": "sketch(n)", "age_off": "t:1d", "type.t": "timestamp"},
    )
    now = int(lake.context.now() * 1e6)
    times = pa.array([now - 3 * 86_400 * 10**6, now], pa.timestamp("us", "UTC"))
    pool.branch().append(pa.table({"t": times, "n": [1, 2]}))
    figures = pool.at().field_summary("n")
    assert (figures.records, figures.low, figures.reasons) == (1, 2, {BY_FILTER[AGE_OFF]: 1})


def test_objects_that_share_keys_are_read_in_a_pool_that_combines_them() -> None:
    pool = a_pool("upsert")
    load(pool, range(30))
    load(pool, range(20, 50))
    load(pool, range(100, 120))
    check(pool, sketches=1, read={SHARED: 2})


def test_what_lies_in_the_journal_is_read() -> None:
    pool = a_pool()
    load(pool, range(30))
    small = Lake.open_on(pool.store)
    small.configure_pool("p", {"load.inline": "64KiB"})
    load(small.pool("p"), range(40, 50))
    check(small.pool("p"), sketches=1, read={INLINED: 1})


@pytest.mark.parametrize("harm", ["missing", "damaged", "of another"])
def test_a_sketch_that_is_not_whole_is_not_used(harm: str) -> None:
    pool = a_pool()
    for start in (0, 100):
        load(pool, range(start, start + 30))
    first, second, *_ = (
        one for one in list_indexes(pool.store, pool.config.id) if one.digest == digest(pool)
    )
    if harm == "missing":
        pool.store.delete(first.info.name)
    else:
        other = pool.store.get(second.info.name) or b""
        pool.store.put(first.info.name, other if harm == "of another" else other[:-9] + bytes(9))
    why = IndexAnswer.MISSING if harm == "missing" else IndexAnswer.DAMAGED
    check(pool, sketches=1, read={why.value: 1})
    make_indexes(pool, checks=lambda name: True)
    check(pool, sketches=2)


def digest(pool: Pool) -> str:
    return next(rule.digest for rule in pool.settings.index_rules if rule.field == "n")


def test_an_object_without_the_field_is_all_null_and_not_read() -> None:
    pool = a_pool()
    load(pool, range(30))
    pool.branch().append(pa.table({"k": [100, 101]}))
    check(pool, sketches=2)


def test_a_field_inside_of_records_and_one_that_is_wrong() -> None:
    pool = a_pool()
    load(pool, range(30), r=[{"i": key // 2} for key in range(30)])
    figures = pool.at().field_summary("r.i", shares=(0.0, 0.5, 1.0))
    assert (figures.distinct, figures.sketches, dict(figures.quantiles)) == (15, 1, {0.0: 0, 0.5: 7, 1.0: 14})
    with pytest.raises(InvalidInput, match="'r'"):
        pool.at().field_summary("r")
    with pytest.raises(InvalidInput, match=r"quantile 2: give shares from 0 to 1"):
        pool.at().field_summary("n", shares=(2,))


def test_a_sketch_that_is_made_later_has_the_same_bytes_as_one_of_the_load() -> None:
    pool = a_pool(settings={"index.v": "values(n)", "index.b": "bloom(n)"})
    load(pool, range(25_000))
    before = {
        one.info.name: pool.store.get(one.info.name) for one in list_indexes(pool.store, pool.config.id)
    }
    assert len(before) == 3
    for name in before:
        pool.store.delete(name)
    make_indexes(pool)
    after = {one.info.name: pool.store.get(one.info.name) for one in list_indexes(pool.store, pool.config.id)}
    assert after == before
