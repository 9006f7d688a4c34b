"""Which intervals a branch covers: replaces bring them, deletes and reverts take them."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake_core.history.covered import (
    MAX_BOUND,
    covered_intervals,
    interval_of,
    interval_source,
)
from lake_core.keys.ranges import EVERYTHING, KeyRange
from lake_core.records import Source
from log_lake.agents.checkpoint.run import checkpoint_and_purge
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.stores.memory import MemoryStore
from log_lake.texts.keytext import show_key
from tests.support.pools import compact_all

T0, T1 = dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 2)


def of_keys(store: MemoryStore, *records: int) -> Pool:
    """A pool that keeps ranges of keys, with records."""
    pool = Lake.create_on(store).create_pool("p", key="k", settings={"intervals.every": "key"})
    pool.branch().append(pa.table({"k": records}))
    return pool


def replaced(pool: Pool, low: int | None, high: int | None, *records: int, branch: str = "main") -> int:
    span = pool.at(branch).key_range(low=low, high=high)
    done = pool.branch(branch).replace_with(pa.table({"k": pa.array(records, pa.int64())}), key_range=span)
    assert done.version is not None
    return done.version


def deleted(pool: Pool, low: int | None, high: int | None, *, where: str | None = None) -> int:
    done = pool.branch().delete(key_range=pool.at().key_range(low=low, high=high), where=where)
    assert done.version is not None
    return done.version


def covered(pool: Pool, branch: str = "main") -> list[tuple[object, object]]:
    view = pool.at(branch)
    spans = (one.key_range for one in covered_intervals(view.state, branch))
    return [(show_key(span.low, view.key), show_key(span.high, view.key)) for span in spans]


@pytest.fixture
def pool() -> Pool:
    """Days 10 to 20 and 20 to 30 were replaced, the second by nothing."""
    pool = of_keys(MemoryStore(), 1, 15, 25)
    replaced(pool, 10, 20, 11, 12)
    replaced(pool, 20, 30)
    return pool


def test_a_replace_covers_its_range_with_or_without_records(pool: Pool) -> None:
    assert covered(pool) == [(10, 20), (20, 30)]
    versions = [one.version for one in covered_intervals(pool.at().state, "main")]
    assert versions == [2, 3]
    replaced(pool, 10, 20, 13)
    assert [one.version for one in covered_intervals(pool.at().state, "main")] == [4, 3]


def test_loads_and_replaces_by_condition_cover_nothing(pool: Pool) -> None:
    pool.branch().append(pa.table({"k": [31]}))
    span = pool.at().key_range(low=40, high=50)
    pool.branch().replace_with(pa.table({"k": [41]}), key_range=span, where="k < 45")
    replaced(pool, 60, None, 61)
    assert covered(pool) == [(10, 20), (20, 30)]


@pytest.mark.parametrize(
    ("key", "low", "high", "settings", "is_kept"),
    [
        ("t", T0, T1, {}, True),
        ("t", T0.date(), T1.date(), {}, True),
        ("t,u", T0, T1, {}, True),
        ("t,u", [T0, "ada"], [T0, "bob"], {}, False),
        ("t", 1, 2, {}, False),
        ("t", "ada", "bob", {}, False),
        ("t", "2026-01-01", "2026-01-02", {"intervals.since": "2026-01-01"}, True),
        ("t", "ada", "bob", {"intervals.every": "key"}, True),
    ],
)
def test_bounds_that_may_be_personal_are_kept_only_if_asked(
    key: str, low: Any, high: Any, settings: dict[str, str], is_kept: bool
) -> None:
    pool = Lake.create_on(MemoryStore()).create_pool("p", key=key, settings=settings)
    first = low[0] if isinstance(low, list) else low
    table = pa.table({"t": [first], "u": ["ada"]})
    pool.branch().append(table)
    pool.branch().replace_with(table.slice(0, 0), key_range=pool.at().key_range(low=low, high=high))
    assert bool(covered_intervals(pool.at().state, "main")) is is_kept


def test_a_delete_gives_up_what_it_removes_whole(pool: Pool) -> None:
    deleted(pool, 11, 12)
    assert covered(pool) == [(10, 20), (20, 30)]
    deleted(pool, 5, 20)
    assert covered(pool) == [(20, 30)]
    replaced(pool, 10, 20)
    assert covered(pool) == [(10, 20), (20, 30)]


def test_a_delete_of_an_empty_interval_makes_a_gap(pool: Pool) -> None:
    assert pool.branch().delete(key_range=pool.at().key_range(low=20, high=24)).version is None
    pool.create_branch("dev")
    deleted(pool, 20, 30)
    assert covered(pool) == [(10, 20)]
    assert pool.branch().delete(key_range=pool.at().key_range(low=20, high=30)).version is None
    pool.branch("dev").delete(key_range=pool.at("dev").key_range(low=10, high=30))
    assert covered(pool, "dev") == []
    pool.branch().merge("dev")
    assert covered(pool) == []


def test_a_delete_by_condition_and_a_replace_inside_leave_an_interval_covered(pool: Pool) -> None:
    deleted(pool, None, None, where="k = 11")
    replaced(pool, 12, 13)
    assert covered(pool) == [(10, 20), (12, 13), (20, 30)]


def test_a_replace_without_a_bound_gives_up_what_lies_in_it(pool: Pool) -> None:
    replaced(pool, 20, None, 21)
    assert covered(pool) == [(10, 20)]


def test_a_revert_puts_back_what_was_covered_before(pool: Pool) -> None:
    again = replaced(pool, 20, 30, 21)
    pool.branch().revert(str(again))
    assert covered(pool) == [(10, 20), (20, 30)]
    pool.branch().revert("2")
    assert covered(pool) == [(20, 30)]
    pool.branch().revert(str(pool.at().version))
    assert covered(pool) == [(10, 20), (20, 30)]
    gone = deleted(pool, 10, 30)
    assert covered(pool) == []
    pool.branch().revert(str(gone))
    assert covered(pool) == [(10, 20), (20, 30)]


@pytest.mark.parametrize("between", [(10, 20), (10, None), "delete"])
def test_reverts_one_after_another_end_where_they_began(between: Any) -> None:
    pool = of_keys(MemoryStore(), 1, 15, 25)
    first = replaced(pool, 10, 20, 11)
    second = deleted(pool, 5, 25) if between == "delete" else replaced(pool, *between, 12)
    pool.branch().revert(str(second))
    assert covered(pool) == [(10, 20)]
    pool.branch().revert(str(first))
    assert covered(pool) == []
    assert pool.at().to_table()["k"].to_pylist() == [1, 15, 25]


def test_a_revert_leaves_what_was_replaced_since(pool: Pool) -> None:
    gone = deleted(pool, 10, 20)
    replaced(pool, 10, 20)
    pool.branch().revert(str(gone))
    assert covered(pool) == [(10, 20), (20, 30)]


def test_a_compaction_changes_no_coverage(pool: Pool) -> None:
    compact_all(pool)
    assert covered(pool) == [(10, 20), (20, 30)]


def test_checkpoints_keep_it_when_the_journal_is_purged() -> None:
    store = MemoryStore()
    pool = of_keys(store, 1)
    replaced(pool, 10, 20)
    replaced(pool, 20, 30)
    lake = Lake.open_on(store)
    checkpoint_and_purge(lake, "p", now=lake.context.now())
    anew = Lake.open_on(store).pool("p")
    assert covered(anew) == [(10, 20), (20, 30)]
    replaced(anew, 30, None)
    replaced(anew, 10, 20, 11)
    deleted(anew, 10, 20)
    assert covered(anew) == [(20, 30)]
    checkpoint_and_purge(lake, "p", now=lake.context.now())
    assert covered(Lake.open_on(store).pool("p")) == [(20, 30)]


def test_a_branch_inherits_and_a_merge_brings_what_it_covers(pool: Pool) -> None:
    pool.create_branch("dev")
    assert covered(pool, "dev") == [(10, 20), (20, 30)]
    replaced(pool, 30, 40, 31, branch="dev")
    assert covered(pool) == [(10, 20), (20, 30)]
    pool.branch("dev").delete(key_range=pool.at("dev").key_range(low=10, high=20))
    assert covered(pool, "dev") == [(20, 30), (30, 40)]
    merge = pool.branch().merge("dev")
    assert covered(pool) == [(20, 30), (30, 40)]
    pool.branch().revert(str(merge.version))
    assert covered(pool) == [(10, 20), (20, 30)]
    pool.branch().merge("dev")
    assert covered(pool) == [(20, 30), (30, 40)]


def test_a_branch_whose_merge_was_reverted_is_merged_again_with_its_intervals(pool: Pool) -> None:
    pool.create_branch("dev")
    replaced(pool, 10, 20, 14, branch="dev")
    merge = pool.branch().merge("dev")
    pool.branch().revert(str(merge.version))
    assert covered(pool) == [(10, 20), (20, 30)]
    pool.branch().merge("dev")
    assert covered(pool) == [(10, 20), (20, 30)]
    assert pool.at().to_table()["k"].to_pylist() == [1, 14]


def test_a_merge_brings_no_gap_that_it_does_not_make() -> None:
    pool = of_keys(MemoryStore(), 1)
    pool.create_branch("dev")
    tried = replaced(pool, 10, 20, 14, branch="dev")
    pool.branch("dev").revert(str(tried))
    replaced(pool, 10, 20, 11)
    pool.branch("dev").append(pa.table({"k": [50]}))
    pool.branch().merge("dev")
    assert covered(pool) == [(10, 20)]
    assert pool.at().to_table()["k"].to_pylist() == [1, 11, 50]


def test_a_merge_gives_up_what_it_hides_though_its_branch_never_knew_it(pool: Pool) -> None:
    pool.create_branch("dev")
    replaced(pool, 40, 50, 41)
    pool.branch("dev").delete(key_range=pool.at("dev").key_range(low=5, high=60))
    replaced(pool, 20, 30, 21, branch="dev")
    pool.branch().merge("dev")
    assert pool.at().to_table()["k"].to_pylist() == [1, 21]
    assert covered(pool) == [(20, 30)]


def test_a_delete_that_meets_a_replace_gives_up_what_that_brought() -> None:
    """Both begin on one version; the delete is committed last, so it removes the interval."""
    store = MemoryStore()
    pool = of_keys(store, 11)
    replaced(pool, 10, 20, 12)
    other = Lake.open_on(store).pool("p")
    other.at()
    replaced(pool, 10, 20, 13)
    deleted(other, 10, 20)
    assert covered(pool) == []


def test_older_versions_know_what_they_covered(pool: Pool) -> None:
    deleted(pool, 10, 20)
    state = pool.at_version(2).state
    assert len(covered_intervals(state, "main")) == 1


@given(st.binary(max_size=8), st.binary(max_size=8), st.booleans())
def test_the_name_of_an_interval_is_its_range(low: bytes, high: bytes, holds: bool) -> None:
    span = KeyRange(*sorted((low, high)))
    source = interval_source(span, id="x", holds=holds)
    if span.low and low != high:
        assert source is not None
        assert interval_of(source.uri) == span
        assert source.size == int(holds)


@pytest.mark.parametrize("uri", ["/in/a.csv", "interval:", "interval:00", "interval:zz-00", "interval:01-01"])
def test_other_names_are_no_intervals(uri: str) -> None:
    assert interval_of(uri) is None


def test_open_and_long_ranges_are_no_intervals() -> None:
    for span in (EVERYTHING, KeyRange(b"a"), KeyRange(b"", b"b"), KeyRange(b"a", b"b" * (MAX_BOUND + 1))):
        assert interval_source(span, id="x") is None
    longest = KeyRange(b"a", b"b" * MAX_BOUND)
    assert interval_source(longest, id="x") == Source(f"interval:61-{'62' * MAX_BOUND}", size=1, etag="x")
