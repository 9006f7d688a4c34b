"""A process that may delete and not write its lease deletes nothing: it would go by its own clock."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lake_core.errors import Denied
from local.rights import Operation
from log_lake.lake import Lake
from log_lake.vacuum.dropped import delete_dropped, plan_dropped
from log_lake.vacuum.execute import vacuum
from tests.support.roles import World

DELETERS: dict[str, Callable[[Lake], object]] = {
    "vacuum": lambda lake: vacuum(lake.pool("p")),
    "vacuum of dropped pools": lambda lake: delete_dropped(lake, plan_dropped(lake)),
}


@pytest.mark.parametrize(
    ("deleter", "denied"),
    [
        ("vacuum", Operation.CREATE),
        ("vacuum", Operation.PUT),
        ("vacuum of dropped pools", Operation.CREATE),  # it writes its lease once
    ],
)
def test_nothing_is_deleted(deleter: str, denied: Operation, tmp_path: Path) -> None:
    world = World(tmp_path)
    store = world.limited(lambda operation, name: operation is not denied or "/leases/" not in name)
    before = [info.name for info in world.store.list("") if "/data/" in info.name]
    with pytest.raises(Denied, match="grant this process the right to"):
        DELETERS[deleter](world.open(store))
    assert [info.name for info in world.store.list("") if "/data/" in info.name] == before


def test_with_its_lease_it_deletes(tmp_path: Path) -> None:
    world = World(tmp_path)
    lake = world.open(world.limited(lambda operation, name: True))
    assert vacuum(lake.pool("p")).objects > 0
    assert len(delete_dropped(lake, plan_dropped(lake))) == 1


def test_a_plan_needs_no_right_to_write(tmp_path: Path) -> None:
    world = World(tmp_path)
    reads = (Operation.READ, Operation.LIST)
    lake = world.open(world.limited(lambda operation, name: operation in reads))
    assert [planned.held for planned in plan_dropped(lake)] == [None]
