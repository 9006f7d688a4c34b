"""A dropped pool is taken back with all that it had; a restore and a drop at once leave it listed or closed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.context import FORMAT_VERSION
from lake_core.errors import AlreadyExists, Conflict, InvalidInput, LakeError, NotFound, Unavailable
from lake_core.journal import write_state
from log_lake.agents.checkpoint import run as checkpoint
from log_lake.lake import Lake
from log_lake.lake.named import pool_to_restore
from log_lake.lake.pool import Pool
from log_lake.lake.results import PendingLoad
from log_lake.loading.block import Block
from log_lake.stores.memory import MemoryStore
from tests.support.stores import ALWAYS, ScriptedStore, unavailable


@pytest.fixture
def held(lake: Lake) -> Pool:
    """A pool of two transactions that is dropped, and that somebody goes on holding."""
    pool = lake.create_pool("p", key="k", settings={"description": "x"})
    pool.branch().append(records(1))
    pool.branch().append(records(2), token="used")
    pool.create_branch("dev")
    pool.tag("t")
    lake.drop_pool("p")
    return pool


def records(*keys: int) -> pa.Table:
    return pa.table({"k": pa.array(keys, pa.int64())})


def elsewhere(store: ScriptedStore) -> Lake:
    """The same lake, as another process opens it."""
    return Lake.open_on(store.behind, author="test")


def keys(pool: Pool, revision: str = "main") -> list[int]:
    found: list[int] = pool.at(revision).to_table()["k"].to_pylist()
    return found


def is_open(store: ScriptedStore, pool: Pool) -> bool:
    fresh = elsewhere(store)
    return fresh._pool(pool.config, "").history.load().state.closed is None


def is_listed(store: ScriptedStore) -> bool:
    return [p.name for p in elsewhere(store).pools()] == ["p"]


def test_a_restored_pool_has_all_that_it_had(store: ScriptedStore, held: Pool) -> None:
    (dropped,) = elsewhere(store).dropped_pools()
    assert (dropped.pool, dropped.author, dropped.version, dropped.is_deleted) == (
        held.config,
        "test",
        2,
        False,
    )
    pool = elsewhere(store).restore_pool("p")
    assert pool.settings["description"] == "x"
    assert keys(pool) == keys(pool, "dev") == keys(pool, "t") == [1, 2]
    assert pool.branch().append(records(2), token="used").version == 2
    pool.branch().append(records(3))
    assert keys(elsewhere(store).pool("p")) == [1, 2, 3]
    assert elsewhere(store).dropped_pools() == []


def test_who_holds_the_pool_works_on_once_it_is_restored(store: ScriptedStore, held: Pool) -> None:
    elsewhere(store).restore_pool("p")
    held.branch().append(records(3))
    assert keys(held) == [1, 2, 3]


def test_work_that_began_before_the_drop_is_refused_after_the_restore_too(
    store: ScriptedStore, lake: Lake
) -> None:
    branch = lake.create_pool("p", key="k").branch()
    pending = branch.begin_load()
    assert isinstance(pending, PendingLoad)
    builder = branch.builder(pending)
    builder.add(Block(records(9)))
    (written,) = builder.finish()
    elsewhere(store).drop_pool("p")
    with pytest.raises(NotFound):
        branch.commit(pending, objects=[written.action], schemas=[written.schema])
    elsewhere(store).restore_pool("p")
    for _ in range(2):
        with pytest.raises(Conflict, match=r"dropped and restored .* since this began; start again"):
            branch.commit(pending, objects=[written.action], schemas=[written.schema])
    assert elsewhere(store).pool("p").at().records == 0


def test_a_pool_is_dropped_and_restored_again_and_again(store: ScriptedStore, held: Pool) -> None:
    for n in (3, 4, 5):
        elsewhere(store).restore_pool("p").branch().append(records(n))
        elsewhere(store).drop_pool("p")
        assert (is_listed(store), is_open(store, held)) == (False, False)
    assert keys(elsewhere(store).restore_pool("p")) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("purged", [False, True])
def test_drops_and_restores_outlive_checkpoints(store: ScriptedStore, held: Pool, purged: bool) -> None:
    def written(name: str) -> None:
        other = elsewhere(store)
        journal = other.catalog.journal if name == naming.POOLS_JOURNAL else held.history.journal
        write_state(journal, journal.load(), id=other.context.ids.new(), now=other.context.now())
        if purged and name == naming.POOLS_JOURNAL:
            checkpoint.write_checkpoint(other, "lake:pools", now=other.context.now())
            checkpoint.purge_pool(other, "lake:pools", keep=0.0, now=other.context.now())

    written(naming.POOLS_JOURNAL)
    (dropped,) = elsewhere(store).dropped_pools()
    assert (dropped.pool, dropped.version) == (held.config, 2)
    pool = elsewhere(store).restore_pool("p")
    written("p")
    written(naming.POOLS_JOURNAL)
    again = elsewhere(store).pool("p")
    assert again.config == pool.config
    assert again.history.load().state.reopened == 6
    assert keys(again) == [1, 2]


def test_a_name_that_is_taken_is_said_and_another_one_does(store: ScriptedStore, held: Pool) -> None:
    other = elsewhere(store)
    other.create_pool("p", key="k")
    with pytest.raises(AlreadyExists, match=r"'p' exists; .* --as NAME"):
        other.restore_pool("p")
    assert keys(other.restore_pool("p", new_name="q")) == [1, 2]
    assert [p.name for p in elsewhere(store).pools()] == ["p", "q"]
    other.drop_pool("q")
    with pytest.raises(InvalidInput, match="a name cannot have"):
        other.restore_pool("q", new_name="a b")


def test_one_of_several_dropped_pools_of_a_name_is_named_by_its_id(store: ScriptedStore, held: Pool) -> None:
    other = elsewhere(store)
    second = other.create_pool("p", key="k")
    other.drop_pool("p")
    with pytest.raises(InvalidInput, match=f"p#{second.config.id}, p#{held.config.id}"):
        other.restore_pool("p")
    assert keys(other.restore_pool(f"p#{held.config.id}")) == [1, 2]
    assert [d.pool.id for d in other.dropped_pools()] == [second.config.id]


def test_what_was_not_dropped_is_not_restored(store: ScriptedStore, held: Pool) -> None:
    other = elsewhere(store)
    other.create_pool("q", key="k")
    with pytest.raises(InvalidInput, match="pool 'q' is not dropped"):
        other.restore_pool("q")
    with pytest.raises(NotFound, match="there are: p"):
        other.restore_pool("nobody")
    other.restore_pool("p")
    with pytest.raises(NotFound, match="no dropped pool can be restored"):
        other.restore_pool("nobody")


def test_an_interrupted_restore_is_finished_by_the_next_one_or_by_a_drop(
    store: ScriptedStore, lake: Lake, held: Pool
) -> None:
    for finish in (elsewhere(store).restore_pool, elsewhere(store).drop_pool):
        entry = naming.entry(held.history.journal.name, held.history.journal.load().version + 1)
        store.on("create", entry, instead=unavailable, times=ALWAYS)
        with pytest.raises(Unavailable):
            lake.restore_pool("p")
        assert (is_listed(store), is_open(store, held)) == (True, False)
        store.forget()
        finish("p")
        assert is_open(store, held) is is_listed(store)
        if is_listed(store):
            lake.drop_pool("p")


def test_an_interrupted_drop_is_taken_back(store: ScriptedStore, lake: Lake) -> None:
    lake.create_pool("p", key="k").branch().append(records(1))
    store.on("create", naming.entry(naming.POOLS_JOURNAL, 2), instead=unavailable, times=ALWAYS)
    with pytest.raises(Unavailable):
        lake.drop_pool("p")
    assert keys(elsewhere(store).restore_pool("p")) == [1]


Act = Callable[[Lake], object]


def drop(lake: Lake) -> object:
    return lake.drop_pool("p")


def restore(lake: Lake) -> object:
    return lake.restore_pool("p")


def interrupted_restore(lake: Lake) -> object:
    """A restore that dies before it opens the journal."""
    state = lake.catalog.load().state
    return lake.catalog.restore(pool_to_restore(state, "p").id, name="p")


def restore_and_drop(lake: Lake) -> None:
    restore(lake)
    drop(lake)


def drop_and_restore(lake: Lake) -> None:
    drop(lake)
    restore(lake)


@pytest.mark.parametrize(
    "others", [(drop,), (restore,), (restore_and_drop,), (drop_and_restore,), (drop, restore)]
)
@pytest.mark.parametrize(
    "before", [(), (restore,), (interrupted_restore,)], ids=["none", "restored", "interrupted"]
)
@pytest.mark.parametrize("ours", [drop, restore])
def test_a_pool_whose_journal_is_open_is_listed_whoever_comes_in_between(
    store: ScriptedStore, held: Pool, ours: Act, before: tuple[Act, ...], others: tuple[Act, ...]
) -> None:
    """Others act before any one request of ours, or one before each of two requests."""
    for act in before:
        act(elsewhere(store))
    for first in range(60):
        reached = False
        for second in range(first, first + 6) if len(others) > 1 else [first]:
            lake = Interrupted(copy_of(store), dict(zip((first, second), others, strict=False)))
            with contextlib.suppress(LakeError):
                ours(Lake.open_on(lake, author="test"))
            assert is_listed(lake) or not is_open(lake, held), (first, second, lake.requests)
            reached |= not lake.others
        if not reached:
            return
    raise AssertionError("ours makes more requests than were tried")


def copy_of(store: ScriptedStore) -> MemoryStore:
    copied = MemoryStore()
    for info in store.behind.list(""):
        copied.create(info.name, store.behind.get(info.name) or b"")
    return copied


class Interrupted(ScriptedStore):
    """Others do something right before requests of these numbers."""

    def __init__(self, behind: MemoryStore, others: dict[int, Act]) -> None:
        super().__init__(behind)
        self.others = others

    def ask(self, request: str, name: str, call: Callable[[], Any]) -> Any:
        act = self.others.pop(len(self.requests), None)
        if act is not None:
            with contextlib.suppress(LakeError):
                act(elsewhere(self))
        return super().ask(request, name, call)


def test_a_lake_of_version_1_drops_and_says_what_a_restore_needs(store: ScriptedStore, lake: Lake) -> None:
    old = Lake(store, lake.id, author="old", format_version=1)
    old.create_pool("p", key="k").branch().append(records(1))
    old.drop_pool("p")
    with pytest.raises(InvalidInput, match="lake restore: this lake has format version 1; run lake upgrade"):
        old.restore_pool("p")
    assert keys(elsewhere(store).restore_pool("p")) == [1]


def test_an_upgrade_is_durable_before_it_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Lake.create(str(tmp_path / "lake"))
    old = Lake(made.store, made.id, format_version=1)
    synced: list[str] = []
    real = os.fsync

    def sync(handle: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{handle}"))
        real(handle)

    monkeypatch.setattr(os, "fsync", sync)
    assert old.upgrade() == (1, FORMAT_VERSION)
    assert not old.context.gated, "an older program may have it open, which makes no gates"
    assert not Lake.open(old.store.uri).context.gated
    assert synced[-1] == str(tmp_path / "lake")
