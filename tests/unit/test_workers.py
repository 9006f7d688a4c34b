"""Workers in this process: units in order, the first error, and a store that is opened when it is needed."""

from __future__ import annotations

import pytest

from lake_core.errors import Corrupt, Unavailable
from lake_core.store import Store
from log_lake.lake import Lake
from log_lake.workers import Here, Worker


def doubled(worker: Worker, unit: int) -> int:
    return 2 * unit


def test_units_are_done_in_order_and_the_first_error_ends_them() -> None:
    done: list[int] = []

    def do(worker: Worker, unit: int) -> int:
        if unit == 2:
            raise Corrupt("two")
        done.append(unit)
        return unit

    here = Here.of(Lake.create("memory://workers").context)
    assert here.map(doubled, range(3), each=2, alone=1) == [0, 2, 4]
    assert here.map(doubled, []) == []
    with pytest.raises(Corrupt, match="two"):
        here.map(do, range(4))
    assert done == [0, 1]


def test_a_store_that_cannot_be_opened_is_the_failure_of_the_unit_that_asks_for_it() -> None:
    def fails() -> Store:
        raise Unavailable("no store")

    def do(worker: Worker, unit: str) -> str:
        try:
            return worker.store.uri
        except Unavailable as error:
            return f"{unit}: {error}"

    here = Here(Worker(fails, lambda: "id"))
    assert here.map(doubled, [1]) == [2]
    assert here.map(do, ["a", "b"]) == ["a: no store", "b: no store"]
