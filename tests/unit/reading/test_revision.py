"""A revision is a value with guarantees."""

from __future__ import annotations

import dataclasses

import pyarrow as pa
import pytest

from lake_core.errors import NotFound
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.reading.plan import plan_scan
from log_lake.reading.revision import Revision
from log_lake.stores.memory import MemoryStore

OLD, NEW = 1_000.0, 4_102_444_800.0


@pytest.fixture
def pool() -> Pool:
    made = Lake.create_on(MemoryStore()).create_pool("p", key="k", settings={"age_off": "t:1d"})
    made.branch().append(pa.table({"k": [1, 2], "t": [OLD, NEW]}))
    return made


def test_a_revision_stays_as_it_is_whatever_is_committed_later(pool: Pool) -> None:
    before = pool.branch().revision()
    pool.branch().append(pa.table({"k": [3], "more": ["x"]}))
    assert (before.version, before.records, before.schema.names) == (1, 2, ["k", "t"])
    after = pool.branch().revision()
    assert (after.version, after.records, after.schema.names) == (2, 3, ["k", "t", "more"])


def test_a_branch_that_the_state_does_not_have_is_refused(pool: Pool) -> None:
    with pytest.raises(NotFound, match="pool 'p' at version 1: branch 'other' does not exist"):
        dataclasses.replace(pool.branch().revision(), branch="other")


def test_a_state_is_no_revision_of_an_older_version(pool: Pool) -> None:
    with pytest.raises(ValueError, match="version 1 is no revision of version 0"):
        dataclasses.replace(pool.branch().revision(), version=0)


def test_a_sub_pool_has_the_order_of_arrival_keeps_all_records_and_does_not_age(pool: Pool) -> None:
    revision = pool.branch().revision().of_sub_pool("$nokey")
    assert (revision.key.fields, revision.rule.kind, revision.filters) == ((), "append", ())
    with pytest.raises(ValueError, match="is no sub-pool"):
        revision.of_sub_pool("$other")


def test_ages_count_from_the_time_of_the_revision(pool: Pool) -> None:
    revision = pool.branch().revision(now=OLD)
    (hides,) = revision.filters
    assert revision.may_hide(hides) == []
    (hides,) = pool.branch().revision(now=OLD + 90_000).filters
    assert len(revision.may_hide(hides)) == 1


def test_a_plan_without_filters_has_the_tombstones_of_the_journal_only(pool: Pool) -> None:
    pool.branch().delete(where="k = 2")
    revision = pool.branch().revision()
    assert len(plan_scan(revision).tombstones) == 2
    assert list(plan_scan(revision, filtered=False).tombstones) == revision.tombstones


def test_a_record_that_has_aged_off_is_deleted_all_the_same_since_the_setting_may_change(pool: Pool) -> None:
    assert pool.at().to_table().column("k").to_pylist() == [2]
    assert pool.branch().delete(where="k = 1").version == 2


def test_a_view_is_a_revision(pool: Pool) -> None:
    view: Revision = pool.at()
    assert plan_scan(view).references == plan_scan(pool.branch().revision()).references
