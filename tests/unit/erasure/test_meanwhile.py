"""Work that an erasure overtakes plans again or says what became of its objects; nothing calls that damage."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lake_core.errors import (
    LakeError,
    ObjectMissing,
    ObjectVacuumed,
    PlanAgain,
    Unavailable,
    from_wire,
    to_wire,
)
from lake_core.ids import IdSource
from lake_core.naming import FORMATS
from log_lake.agents.compact.run import compact_pool, plan_pool
from log_lake.agents.retention.expire import expire
from log_lake.agents.tombstones import run as tombstones
from log_lake.erasure.receipt import DONE, PENDING, Receipt
from log_lake.erasure.run import erase
from log_lake.erasure.sighting import look
from log_lake.erasure.verify import verify
from log_lake.lake import Lake
from log_lake.presence.absence import planning_again
from log_lake.publish.run import PUBLISHED, publish_iceberg
from log_lake.repair.finding import DAMAGE
from log_lake.repair.fsck import Fsck
from log_lake.rewriting.compaction import begin_compaction, compact
from tests.support.stores import StoreInFront, unavailable
from tests.unit.erasure.conftest import World

ANNA = "who = 'anna-erased'"


class Erasing(StoreInFront):
    """A store on which an erasure, from begin to end, comes before the first read of a data object."""

    def __init__(self, world: World) -> None:
        self.behind, self.world, self.is_armed = world.store, world, True

    def ask(self, request: str, name: str, call: Callable[[], Any]) -> Any:
        if self.is_armed and request == "open_input" and "/data/" in name:
            self.is_armed = False
            assert erase(self.world.reopened(), where=ANNA, grace=0.0).status == DONE
        return call()


@pytest.fixture(params=FORMATS)
def overtaken(request: pytest.FixtureRequest) -> tuple[World, Lake]:
    """A world, and its lake as a process has it whose first read an erasure overtakes."""
    world = World(settings={"format": request.param})
    world.load({"k": 1, "who": "anna-erased", "n": 1}, {"k": 2, "who": "bob", "n": 1})
    world.load({"k": 2, "who": "eve", "n": 1}, {"k": 3, "who": "zoe", "n": 1})
    world.clock.now += 1
    return world, Lake.open_on(Erasing(world), ids=IdSource(clock=world.clock))


def check_whole(world: World) -> None:
    """No version of the records is left that was erased, and nothing is damaged."""
    assert not any(b"anna-erased" in data for data in world.objects.values())
    assert not [one for one in Fsck(world.pool.context, data=True).run() if one.severity == DAMAGE]


@pytest.mark.parametrize("data", [False, True])
def test_fsck_looks_again_before_it_calls_an_object_missing(
    overtaken: tuple[World, Lake], data: bool
) -> None:
    world, lake = overtaken
    assert not list(Fsck(lake.context, data=data, older_than=3600.0).run())
    check_whole(world)


def test_fsck_finds_an_object_that_is_missing(world: World) -> None:
    world.people("anna-erased", "bob")
    (object_id,) = world.objects
    world.store.delete(f"{world.pool.config.id}/data/{object_id}.parquet")
    (found,) = Fsck(world.pool.context).run()
    assert (found.kind, found.severity) == ("object_missing", DAMAGE)
    with pytest.raises(ObjectMissing, match="restore it, or take it out"):
        compact(world.pool.branch(), world.pool.at().references)


def test_a_compaction_is_a_lost_race(overtaken: tuple[World, Lake]) -> None:
    world, lake = overtaken
    branch = lake.pool("p").branch()
    references = list(branch.revision().references)
    done = compact(branch, references)
    assert done.version is None
    assert "needed by no branch since this was planned, and was vacuumed" in done.lost
    check_whole(world)


def test_a_compaction_is_a_lost_race_while_it_reads_samples(overtaken: tuple[World, Lake]) -> None:
    _, lake = overtaken
    branch = lake.pool("p").branch()
    references = list(branch.revision().references)
    revision = branch.revision()
    with pytest.raises(PlanAgain):
        begin_compaction(branch, references, outputs=2, message="")
    assert branch.revision().version > revision.version


def test_the_agent_of_compactions_drops_the_job(overtaken: tuple[World, Lake]) -> None:
    world, lake = overtaken
    plan = plan_pool(lake, "p", branch="main", strategy="full", now=world.clock.now)
    assert [one.version for one in compact_pool(lake, "p", plan)] == [None] * len(plan.jobs)
    check_whole(world)


def test_a_delete_looks_again(overtaken: tuple[World, Lake]) -> None:
    world, lake = overtaken
    assert lake.pool("p").branch().delete(where="who = 'bob'").version
    assert world.names() == ["eve", "zoe"]
    check_whole(world)


def test_applying_deletes_looks_again(overtaken: tuple[World, Lake]) -> None:
    world, lake = overtaken
    branch = lake.pool("p").branch()
    branch.delete(key_range=lake.pool("p").at().key_range(low=2, high=3))
    assert tombstones.apply(branch, now=world.clock.now, at_once=True).left == 0
    assert world.names() == ["zoe"]
    check_whole(world)


def test_a_publication_holds_what_it_reads(tmp_path: Path) -> None:
    local = Lake.create(str(tmp_path))
    local.create_pool("p", key="k").branch().append(pa.table({"k": [1, 2], "who": ["anna-erased", "bob"]}))

    class OnDisk(StoreInFront):
        behind, is_armed = local.store, True

        def local_path(self, name: str) -> str | None:
            return self.behind.local_path(name)

        def ask(self, request: str, name: str, call: Callable[[], Any]) -> Any:
            if self.is_armed and request == "open_input" and "/data/" in name:
                self.is_armed = False
                receipts.append(erase(local.pool("p"), where=ANNA, grace=0.0))
            return call()

    receipts: list[Receipt] = []
    assert publish_iceberg(Lake.open_on(OnDisk()).pool("p")).outcome == PUBLISHED
    assert [one.status for one in receipts] == [PENDING]
    assert publish_iceberg(local.pool("p")).records == 1


def test_a_dry_run_and_a_check_of_another_erasure_look_again(overtaken: tuple[World, Lake]) -> None:
    world, lake = overtaken
    done = erase(world.pool, where="who = 'nobody'")
    assert not look(lake.pool("p"), where="who = 'bob' and n = 1").removed
    again = Lake.open_on(Erasing(world), ids=IdSource(clock=world.clock))
    assert not list(verify(again.pool("p"), done))


def test_an_erasure_goes_on_though_another_one_takes_what_it_was_to_read(
    overtaken: tuple[World, Lake],
) -> None:
    world, lake = overtaken
    assert erase(lake.pool("p"), where="who = 'bob'", grace=0.0).status == DONE
    assert world.names() == ["eve", "zoe"]
    check_whole(world)


def test_readers_hear_of_the_vacuum(overtaken: tuple[World, Lake]) -> None:
    _, lake = overtaken
    with pytest.raises(ObjectVacuumed, match="was vacuumed"):
        lake.pool("p").at().to_table()
    assert lake.pool("p").at().to_table().num_rows == 3


def test_an_expiry_looks_again() -> None:
    world = World(settings={"expire.age": "1d", "expire.by": "t"})
    now = datetime.fromtimestamp(world.clock.now, UTC)
    world.load({"k": 1, "who": "anna-erased", "t": now}, {"k": 2, "who": "bob", "t": now - timedelta(days=3)})
    lake = Lake.open_on(Erasing(world), ids=IdSource(clock=world.clock))
    assert expire(lake.pool("p")).version is not None
    assert world.names() == []


def test_damage_and_a_vacuum_look_alike_while_the_store_does_not_answer(world: World) -> None:
    world.people("anna-erased")
    history = world.reopened().history
    history.load()
    history.journal.store = _Silent(world)  # type: ignore[misc]
    with pytest.raises(Unavailable, match="does not tell whether a vacuum took it"), planning_again(history):
        raise ObjectMissing("p/data/x: gone", object_id="x")


class _Silent(StoreInFront):
    def __init__(self, world: World) -> None:
        self.behind = world.store

    def ask(self, request: str, name: str, call: Callable[[], Any]) -> Any:
        return unavailable()


def test_the_id_of_a_missing_object_passes_to_another_process(world: World) -> None:
    error: LakeError = ObjectMissing("p/data/x: gone", object_id="x")
    received = from_wire(to_wire(error))
    assert isinstance(received, ObjectMissing)
    assert (str(received), received.object_id) == (str(error), "x")
