"""The geometry of a pool at a version: what the slider shows, and which parts of the pool there are."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lake_core.errors import NotFound
from log_lake.agents.checkpoint.run import purge_pool, write_checkpoint
from log_lake.lake import Lake
from log_lake.rewriting.compaction import compact
from log_lake.stores.memory import MemoryStore
from log_lake.view.geometry import Bars, Bins
from log_lake.view.layout import Layouts


@pytest.fixture
def lake() -> Lake:
    lake = Lake.create_on(MemoryStore())
    pool = lake.create_pool("logs", key="k")
    for key in range(3):
        pool.branch().append(pa.table({"k": [key, key + 10]}))
    return lake


def test_the_slider_shows_every_version(lake: Lake) -> None:
    layouts = Layouts()
    for version in (1, 2, 3):
        layout = layouts.layout(lake, "logs", version=version)
        assert (layout.version, layout.references, layout.records) == (version, version, 2 * version)
        assert (layout.oldest, layout.newest) == (1, 3)
        assert isinstance(layout.geometry, Bars)
        assert len(layout.geometry.bars) == version


def test_without_a_version_the_newest_is_shown(lake: Lake) -> None:
    layouts = Layouts()
    assert layouts.layout(lake, "logs").version == 3
    lake.pool("logs").branch().append(pa.table({"k": [4]}))
    assert layouts.layout(lake, "logs").version == 4


def test_a_version_that_was_shown_before_knows_the_newest_all_the_same(lake: Lake) -> None:
    layouts = Layouts()
    layouts.layout(lake, "logs", version=2)
    lake.pool("logs").branch().append(pa.table({"k": [4]}))
    assert layouts.layout(lake, "logs", version=2).newest == 4


def test_what_is_purged_is_not_offered(lake: Lake) -> None:
    write_checkpoint(lake, "logs", now=lake.context.now())
    purge_pool(lake, "logs", keep=0, now=lake.context.now() + 1)
    layout = Layouts().layout(lake, "logs")
    assert (layout.oldest, layout.newest) == (3, 3)


def test_a_branch_has_a_geometry_of_its_own(lake: Lake) -> None:
    pool = lake.pool("logs")
    pool.create_branch("dev")
    pool.branch("dev").append(pa.table({"k": [99]}))
    layouts = Layouts()
    assert (
        layouts.layout(lake, "logs").references,
        layouts.layout(lake, "logs", branch="dev").references,
    ) == (3, 4)
    assert layouts.layout(lake, "logs").branches == ["dev", "main"]
    with pytest.raises(NotFound, match="at version 2: branch 'dev' does not exist"):
        layouts.layout(lake, "logs", branch="dev", version=2)


def test_a_sub_pool_has_a_geometry_of_its_own(lake: Lake) -> None:
    pool = lake.pool("logs")
    pool.branch().append(pa.table({"other": ["no key"]}))
    layouts = Layouts()
    assert layouts.layout(lake, "logs").sub_pools == ["$nokey"]
    beside = layouts.layout(lake, "logs.$nokey")
    assert (beside.pool, beside.references, beside.records, beside.fields) == ("logs.$nokey", 1, 1, [])


def test_a_delete_is_a_tombstone_over_the_bars(lake: Lake) -> None:
    pool = lake.pool("logs")
    pool.branch().delete(where="k >= 1 and k < 11")
    geometry = Layouts().layout(lake, "logs").geometry
    (mark,) = geometry.tombstones
    assert isinstance(geometry, Bars)
    assert (geometry.edges[int(mark.low)], geometry.edges[int(mark.high)]) == ("1", "11")
    assert mark.version == 4


def test_many_references_are_binned(lake: Lake) -> None:
    geometry = Layouts(max_bars=2).layout(lake, "logs").geometry
    assert isinstance(geometry, Bins)
    assert (sum(geometry.begins), sum(geometry.records), max(geometry.depth)) == (3, 6, 3)


def test_references_of_a_checkpoint_are_binned_with_those_that_came_later(lake: Lake) -> None:
    write_checkpoint(lake, "logs", now=lake.context.now())
    again = Lake.open_on(lake.store.behind)
    pool = again.pool("logs")
    assert pool.history.load().checkpoint is not None
    pool.branch().append(pa.table({"k": [50, 60]}))
    gone = pool.at().references[0]
    compact(pool.branch(), [gone])
    geometry = Layouts(max_bars=1).layout(again, "logs").geometry
    assert isinstance(geometry, Bins)
    assert (sum(geometry.begins), sum(geometry.records)) == (4, 8)


def test_only_so_many_answers_are_kept(lake: Lake) -> None:
    layouts = Layouts(max_cached=2)
    first = layouts.layout(lake, "logs", version=1)
    assert layouts.layout(lake, "logs", version=1).geometry is first.geometry
    for version in (2, 3):
        layouts.layout(lake, "logs", version=version)
    assert layouts.layout(lake, "logs", version=1).geometry is not first.geometry


def test_an_empty_pool_has_an_empty_geometry(lake: Lake) -> None:
    lake.create_pool("empty", key="k")
    layout = Layouts().layout(lake, "empty")
    assert isinstance(layout.geometry, Bars)
    assert (layout.version, layout.newest, layout.references, layout.geometry.bars) == (0, 0, 0, [])


@pytest.mark.parametrize(("pool", "version"), [("other", None), ("logs", 9)])
def test_what_does_not_exist_is_not_found(lake: Lake, pool: str, version: int | None) -> None:
    with pytest.raises(NotFound):
        Layouts().layout(lake, pool, version=version)
