"""Packs of work as objects: what is written is read, old ones go, and nothing else."""

from __future__ import annotations

import pytest

from lake_core import naming
from lake_core.errors import Corrupt, NotFound
from lake_core.ids import IdSource
from log_lake.agents.packs import CLEANED, KEPT, clean, read_outcome, read_packs, write_outcome, write_packs
from log_lake.lake import Lake
from log_lake.stores.memory import MemoryStore
from tests.support.clocks import Clock
from tests.support.records import an_id

DAY = 86_400.0
WORK = {
    "pool": "logs",
    "title": "logs: 1 file",
    "files": [{"uri": "a\u00e4", "size": 1 << 40}],
    "grace": None,
}


@pytest.fixture
def clock() -> Clock:
    return Clock(1_800_000_000.0)


@pytest.fixture
def lake(clock: Clock) -> Lake:
    return Lake.create_on(MemoryStore(), ids=IdSource(clock=clock))


def names(lake: Lake) -> list[str]:
    return [info.name for info in lake.store.list(naming.PACKS)]


def test_what_is_written_is_read_in_the_same_order(lake: Lake) -> None:
    packs = [[WORK | {"n": n}, WORK] for n in range(64)]
    written = write_packs(lake, packs)
    assert read_packs(lake, written) == packs
    assert written == sorted(written) == names(lake)
    assert read_packs(lake, written[7:8]) == [packs[7]]


def test_no_pack_costs_no_request(lake: Lake) -> None:
    assert write_packs(lake, []) == []
    assert read_packs(lake, []) == []
    assert names(lake) == []


def test_packs_stay_for_a_month_and_then_go_with_a_later_plan(lake: Lake, clock: Clock) -> None:
    old = write_packs(lake, [[WORK]] * 3)
    clock.now += KEPT - DAY
    young = write_packs(lake, [[WORK]])
    assert names(lake) == [*old, *young]
    clock.now += 2 * DAY
    new = write_packs(lake, [[WORK]])
    assert names(lake) == [*young, *new]


def test_a_plan_deletes_more_old_packs_than_it_writes_and_not_all_at_once(lake: Lake, clock: Clock) -> None:
    for _ in range(20):
        write_packs(lake, [[WORK]] * 64)
    clock.now += KEPT + DAY
    assert clean(lake) == CLEANED
    assert len(names(lake)) == 20 * 64 - CLEANED
    assert clean(lake) == 20 * 64 - CLEANED
    assert clean(lake) == 0


def test_a_pack_that_cannot_be_read_says_what_to_clear(lake: Lake) -> None:
    (name,) = write_packs(lake, [[WORK]])
    lake.store.delete(name)
    with pytest.raises(NotFound, match="clear the task `find`"):
        read_packs(lake, [name])
    outcome = naming.pack(an_id(1), 0)
    lake.store.put(outcome, b"[7]")
    with pytest.raises(Corrupt, match=r"not a pack of work: .*; clear the task `find`"):
        read_outcome(lake, outcome)


def test_work_that_another_writer_put_there_is_not_done(lake: Lake) -> None:
    """Who may write below `packs/` may be the agent of another pool."""
    (name,), (theirs,) = write_packs(lake, [[WORK]]), write_packs(lake, [[WORK | {"lake": "/etc"}]])
    lake.store.put(name, lake.store.get(theirs) or b"")
    with pytest.raises(Corrupt, match="not the work that was found for this task"):
        read_packs(lake, [name])
    outcome = naming.pack(an_id(1), 0)
    write_outcome(lake, outcome, [WORK])
    for other in (outcome, f"{an_id(1)}/data/x.00.json", name.replace(".00.", ".00.x.")):
        lake.store.put(other, lake.store.get(theirs) or b"")
        with pytest.raises(Corrupt):
            read_packs(lake, [other])
