"""What can be had back, and until when, is what the vacuum then does."""

from __future__ import annotations

import pytest

from lake_core.errors import NotFound, ObjectVacuumed
from log_lake.agents.checkpoint.run import purge_pool, write_checkpoint
from log_lake.vacuum.execute import vacuum
from log_lake.vacuum.orphans import scan_orphans
from log_lake.vacuum.reach import Reach, reach
from tests.unit.vacuum.conftest import GRACE, World


def test_a_new_pool_is_whole_from_its_first_version_on(world: World) -> None:
    assert reach(world.pool) == Reach(1)
    world.load(1)
    assert reach(world.pool) == Reach(1)


def test_removed_objects_can_come_back_until_the_vacuum_may_delete_them(world: World) -> None:
    for keys in ((1, 2), (3,)):
        world.load(*keys)
    sizes = sum(r.size for r in world.pool.at().references)
    removed_at = world.clock.now
    world.compact()
    world.wait(100)
    world.load(4)
    later = world.clock.now
    world.compact()
    found = reach(world.pool)
    assert (found.oldest, found.objects, found.first, found.last) == (1, 4, removed_at + GRACE, later + GRACE)
    assert found.size > sizes
    assert found.first is not None
    world.clock.now = found.first - 1
    assert vacuum(world.pool).objects == 0
    world.clock.now = found.first + 2
    assert vacuum(world.pool).objects == 2


def test_versions_that_were_vacuumed_or_purged_are_out_of_reach(world: World) -> None:
    for key in range(3):
        world.load(key)
    world.compact()
    world.wait()
    vacuum(world.pool)
    oldest = reach(world.pool).oldest
    assert oldest == 4
    assert world.pool.at(str(oldest)).to_table().num_rows == 3
    with pytest.raises(ObjectVacuumed):
        world.pool.at(str(oldest - 1)).to_table()
    world.load(9)
    write_checkpoint(world.lake, "p", now=world.clock.now)
    purge_pool(world.lake, "p", keep=0, now=world.clock.now + 1)
    oldest = reach(world.pool).oldest
    assert oldest == world.pool.history.load().version
    world.pool.at(str(oldest)).to_table()
    with pytest.raises(NotFound):
        world.pool.at(str(oldest - 1))


def test_orphans_are_nothing_that_can_come_back(world: World) -> None:
    world.load(1)
    scan_orphans(world.pool)
    world.clock.now += 1
    world.orphan()
    world.clock.now += 1
    world.load(2)
    world.wait()
    assert scan_orphans(world.pool).orphans == 1
    assert reach(world.pool) == Reach(1)
