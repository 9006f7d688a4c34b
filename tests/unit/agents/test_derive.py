"""The derive agent: keeps derived pools, sources first; one that cannot be kept fails alone."""

from __future__ import annotations

from log_lake.agents.derive.plan import is_due, sources_first
from log_lake.derived.standing import DerivedStanding
from tests.support.agents import finder, run
from tests.unit.derived.conftest import DerivedWorld


def standing(version: int, behind: int | None, fault: str = "") -> DerivedStanding:
    return DerivedStanding("d", "p", "SELECT 1", version, 9, behind, fault)


def test_a_pool_that_is_behind_or_cannot_be_kept_is_due() -> None:
    assert not is_due(standing(3, 0))
    assert is_due(standing(3, 2))
    assert is_due(standing(3, None))
    assert is_due(standing(0, None))
    assert is_due(standing(3, None, "its source is dropped"))


def test_sources_come_first() -> None:
    assert sources_first(["a", "b", "c"], {"a": "b", "b": "p", "c": "a"}) == ["b", "a", "c"]
    assert sorted(sources_first(["a", "b"], {"a": "b", "b": "a"})) == ["a", "b"]


def test_a_run_keeps_every_derived_pool() -> None:
    world = DerivedWorld()
    world.derive()
    world.load(3, 25)
    work = finder("derive")({"lake": "memory"}, open_lake=lambda name: world.lake)
    assert [one["pool"] for one in work] == ["d"]
    done = run("derive", work[0], lake=world.lake)
    assert (done["steps"], done["groups"], done["upto"]) == (1, 2, 2)
    world.check()
    assert finder("derive")({"lake": "memory"}, open_lake=lambda name: world.lake) == []
