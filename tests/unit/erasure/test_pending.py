"""A pending erasure means what was there when its first run ended; what is loaded later stays and is seen."""

from __future__ import annotations

import pytest

from lake_core.ids import IdSource
from lake_core.naming import FORMATS
from log_lake.erasure.begin import begin
from log_lake.erasure.holders import CLOCK, release
from log_lake.erasure.receipt import DONE, PENDING, Receipt, read
from log_lake.erasure.run import _Run, erase, go_on
from log_lake.erasure.verify import verify
from log_lake.lake import Lake
from log_lake.repair.finding import DAMAGE
from log_lake.repair.fsck import Fsck
from log_lake.workers import Here
from tests.unit.erasure.conftest import World, is_ann

ANN = "who = 'ann'"


def held_by_a_tag(world: World) -> Receipt:
    """An erasure that a tag holds; a branch `dev` was created before."""
    world.people("ann", "bob")
    world.pool.create_branch("dev")
    world.pool.tag("audit")
    pending = erase(world.pool, where=ANN, grace=0.0)
    assert pending.status == PENDING
    assert pending.until
    world.clock.now += 1
    return pending


def released(world: World, pending: Receipt) -> Receipt:
    """The erasure once the tag is gone."""
    world.pool.delete_tag("audit")
    return go_on(world.reopened(), read(world.pool, pending.id), grace=0.0)


@pytest.mark.parametrize("kind", ["append", "upsert"])
@pytest.mark.parametrize("format", FORMATS)
def test_what_is_loaded_later_stays(kind: str, format: str) -> None:
    world = World(kind, settings={"format": format})
    pending = held_by_a_tag(world)
    world.people("ann", "cid", first=7)
    done = released(world, pending)
    assert done.status == DONE
    assert f"holds such a record of version {pending.until} or older" in done.statement
    assert world.names() == ["bob", "ann", "cid"]
    assert world.names("dev") == ["bob"]
    assert len(world.objects) == 3
    (line,) = verify(world.reopened(), done)
    assert "of branch main" in line
    assert not [one for one in Fsck(world.pool.context, data=True).run() if one.severity == DAMAGE]


@pytest.mark.parametrize("kind", ["append", "upsert"])
@pytest.mark.parametrize("format", FORMATS)
def test_what_is_loaded_later_stays_where_a_compaction_has_merged_it_with_older_records(
    kind: str, format: str
) -> None:
    world = World(kind, settings={"format": format})
    pending = held_by_a_tag(world)
    world.people("ann", "cid", first=0)
    world.compact()
    before = world.names()
    assert "ann" in before
    done = released(world, pending)
    assert done.status == DONE
    assert world.names() == before


def test_an_aggregate_that_is_loaded_later_stays() -> None:
    world = World("aggregate")
    world.load({"k": 1, "who": "x", "n": 1}, {"k": 2, "who": "y", "n": 1})
    world.pool.tag("audit")
    pending = erase(world.pool, where="k = 1", grace=0.0)
    world.load({"k": 1, "who": "z", "n": 5})
    assert released(world, pending).status == DONE
    assert world.pool.at().to_table().to_pylist() == [
        {"k": 1, "who": "z", "n": 5},
        {"k": 2, "who": "y", "n": 1},
    ]


def test_a_merge_of_another_branch_does_not_hide_what_is_loaded_later(world: World) -> None:
    pending = held_by_a_tag(world)
    world.people("ann", first=7)
    world.people("eve", first=50, branch="dev")
    merged = world.pool.branch().merge("dev")
    assert merged.version is not None
    assert world.names() == ["bob", "ann", "eve"]
    world.pool.branch().revert(str(merged.version))
    assert world.names() == ["bob", "ann"]
    assert released(world, pending).status == DONE
    assert world.names() == ["bob", "ann"]


def test_a_merge_brings_what_an_erasure_that_was_killed_hides_on_the_branch(world: World) -> None:
    """The branch is not rewritten yet; the delete comes with the records that it hides, and for these alone."""
    world.people("bob")
    world.pool.create_branch("dev")
    world.people("ann", first=20, branch="dev")

    pending = begin(world.pool, where=ANN)
    killed = _Run(world.pool, pending, Here.of(world.pool.context), grace=0.0)
    killed._look_at_fields()
    killed.own.hide(killed.search)
    world.people("ann", first=7)
    world.pool.branch().merge("dev")
    assert world.names() == ["bob", "ann"]
    assert world.pool.at().to_table(where="k = 20").num_rows == 0
    done = go_on(world.reopened(), pending, grace=0.0)
    assert done.status == DONE
    assert not world.holding(is_ann)  # a run that was killed had not ended
    assert world.names() == ["bob"]


def test_a_branch_that_is_restored_and_merged_does_not_bring_such_records_back(world: World) -> None:
    world.people("bob")
    world.pool.create_branch("dev")
    world.people("ann", "eve", first=20, branch="dev")
    root = world.pool.delete_branch("dev").root
    pending = erase(world.pool, where=ANN)
    assert pending.status == PENDING
    world.pool.create_branch("dev", at=root)
    world.pool.branch().merge("dev")
    world.pool.delete_tag(root)
    done = go_on(world.reopened(), pending)
    assert done.status == DONE
    assert world.names() == ["bob", "eve"]
    assert not world.holding(is_ann)
    assert not list(verify(world.reopened(), done))


def test_the_next_run_takes_what_the_revert_of_a_revert_has_brought_back(world: World) -> None:
    """No branch showed the record when the erasure began, so it hid nothing there."""
    world.people("ann", "bob")
    world.pool.tag("audit")
    branch = world.pool.branch()
    reverted = branch.revert("1").version
    pending = erase(world.pool, where=ANN, grace=0.0)
    assert pending.status == PENDING
    world.people("eve", first=20)
    branch.revert(str(reverted))
    assert world.names() == ["ann", "bob", "eve"]
    again = go_on(world.reopened(), pending, grace=0.0)
    assert again.status == PENDING
    assert world.names() == ["bob", "eve"]
    done = released(world, again)
    assert done.status == DONE
    assert world.names() == ["bob", "eve"]
    assert not world.holding(is_ann)
    assert not list(verify(world.reopened(), done))


def test_a_tag_on_what_is_loaded_later_holds_nothing(world: World) -> None:
    pending = held_by_a_tag(world)
    world.people("ann", first=7)
    world.pool.tag("later")
    assert released(world, pending).status == DONE
    assert world.names("later") == ["bob", "ann"]


def test_later_runs_keep_the_first_boundary(world: World) -> None:
    pending = held_by_a_tag(world)
    world.people("ann", first=7)
    again = go_on(world.reopened(), pending, grace=0.0)
    assert (again.status, again.until) == (PENDING, pending.until)
    assert world.names() == ["bob", "ann"]


def test_what_is_loaded_later_on_a_branch_is_seen_after_its_merge(world: World) -> None:
    """The delete of the erasure is brought for what it hides on the branch, and not for what came later there."""
    world.people("bob")
    world.pool.create_branch("dev")
    world.people("eve", first=10, branch="dev")
    world.people("ann", first=20, branch="dev")
    pending = begin(world.pool, where=ANN)
    killed = _Run(world.pool, pending, Here.of(world.pool.context), grace=0.0)
    killed._look_at_fields()
    killed.own.hide(killed.search)
    world.people("ann", first=30, branch="dev")
    assert world.names("dev") == ["bob", "eve", "ann"]
    world.pool.branch().merge("dev")
    assert world.names() == ["bob", "eve", "ann"]
    assert world.pool.at().get(20).num_rows == 0
    assert world.pool.at().get(30).num_rows == 1


def test_what_a_branch_still_needs_of_later_loads_stays_though_another_one_has_compacted_it(
    world: World,
) -> None:
    """Its object is on the list of the removed, and no vacuum may take it: the erasure would never end."""
    pending = held_by_a_tag(world)
    world.people("ann", first=7)
    world.pool.create_branch("later")
    world.people("ann", first=7)
    world.compact()
    done = released(world, pending)
    assert done.status == DONE
    assert world.names() == ["bob", "ann", "ann"]
    assert world.names("later") == ["bob", "ann"]


def test_what_a_tag_keeps_of_later_loads_stays_though_its_branch_has_compacted_it(world: World) -> None:
    pending = held_by_a_tag(world)
    world.people("ann", first=7)
    world.pool.tag("later")
    world.people("ann", first=7)
    world.compact()
    assert released(world, pending).status == DONE
    assert world.names() == ["bob", "ann", "ann"]
    assert world.names("later") == ["bob", "ann"]


def test_an_erasure_on_a_machine_with_a_wrong_clock_waits_for_the_age_of_an_object(world: World) -> None:
    """The records are hidden by then; the refusal of a scan would say that nothing was changed."""
    world.people("ann", "bob")
    orphan = world.orphan({"k": 5, "who": "ann", "n": 1})
    wrong = IdSource(clock=lambda: world.clock.now + 3_600)
    pool = Lake.open_on(world.store, ids=wrong, author="wrong").pool("p")
    pending = erase(pool, where=ANN, grace=0.0)
    assert pending.status == PENDING
    assert [(one.object, one.by) for one in pending.held] == [(orphan, CLOCK)]
    assert release(CLOCK, pool_name="p", erasure_id="E") == (
        "set the clock that is wrong, then: lake erase p --resume E --yes"
    )
    assert world.names() == ["bob"]
    world.clock.now += 7_200
    world.people("eve", first=9)
    world.clock.now += 1
    assert go_on(world.reopened(), read(world.pool, pending.id), grace=0.0).status == DONE
    assert not world.holding(is_ann)
