"""A write that believes the state in memory: it asks nothing before it commits, and finds out if others wrote."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.errors import InvalidInput
from log_lake.lake import Lake
from log_lake.lake.branch import Branch
from log_lake.stores.memory import MemoryStore
from tests.support.stores import ScriptedStore


@pytest.fixture
def store() -> ScriptedStore:
    return ScriptedStore(MemoryStore())


@pytest.fixture
def branch(store: ScriptedStore) -> Branch:
    """A branch whose writer has met nobody else."""
    branch = Lake.create_on(store).create_pool("p", key="k").branch()
    for key in range(3):
        branch.append(records(key))
    return branch


def records(*keys: int, **others: list[int]) -> pa.Table:
    return pa.table({"k": list(keys), **others})


def elsewhere(store: ScriptedStore) -> Branch:
    return Lake.open_on(store).pool("p").branch()


def seen(store: ScriptedStore) -> list[int]:
    table = Lake.open_on(store).pool("p").at().to_table()
    return sorted(table["k"].to_pylist()) if table.num_columns else []


def test_a_writer_that_meets_no_other_asks_nothing_before_it_writes(
    store: ScriptedStore, branch: Branch
) -> None:
    store.requests.clear()
    branch.append(records(7))
    entry = naming.entry(branch.history.journal.name, 4)
    gate = naming.gate(branch.history.journal.name, 1)
    (_, object), *others = store.requests
    assert naming.data_id(object)
    assert others == [("create", entry), ("get", gate)]
    store.requests.clear()
    assert branch.delete(where="k = 7").version == 5
    assert [name for _, name in store.requests if name.startswith(branch.history.journal.name)] == [
        naming.entry(branch.history.journal.name, 5),
        gate,
    ]


def test_a_load_that_began_after_a_replace_is_not_overtaken(store: ScriptedStore, branch: Branch) -> None:
    elsewhere(store).replace_with(records(8))
    assert branch.append(records(9)).overtaken == ()
    assert seen(store) == [8, 9]


def test_a_delete_finds_what_others_have_loaded(store: ScriptedStore, branch: Branch) -> None:
    elsewhere(store).append(records(5, a=[1]))
    assert branch.delete(where="a = 1").version == 5
    elsewhere(store).append(records(6, a=[1]))
    assert branch.delete(where="a = 1").version == 7
    assert seen(store) == [0, 1, 2]


def test_a_refusal_rests_on_the_newest_fields(store: ScriptedStore, branch: Branch) -> None:
    with pytest.raises(InvalidInput, match="no such field"):
        branch.delete(where="b = 1")
    elsewhere(store).append(records(5, b=[1]))
    assert branch.append(records(6, b=[2]), options={"schema": "freeze"}).version == 5
    assert Lake.open_on(store).pool("p").at().to_table(where="b = 2")["k"].to_pylist() == [6]


def test_after_it_has_met_others_a_writer_looks_first(store: ScriptedStore, branch: Branch) -> None:
    elsewhere(store).append(records(5))
    branch.append(records(6))
    store.requests.clear()
    branch.append(records(7))
    assert store.requests[0] == ("get", naming.entry(branch.history.journal.name, 6))
    assert seen(store) == [0, 1, 2, 5, 6, 7]


def test_a_token_is_answered_from_the_newest_state(store: ScriptedStore, branch: Branch) -> None:
    first = branch.append(records(7), token="once")
    store.requests.clear()
    assert branch.append(records(7), token="once").version == first.version
    assert ("get", naming.entry(branch.history.journal.name, 5)) in store.requests
