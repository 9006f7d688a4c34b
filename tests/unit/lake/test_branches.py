"""Branches: created on any revision by one small transaction, apart from each other, deleted and restored."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.errors import AlreadyExists, InvalidInput, NotFound
from lake_core.journal import purge, write_state
from lake_core.records import Source
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.stores.memory import MemoryStore


def new_pool(kind: str = "append") -> Pool:
    return Lake.create_on(MemoryStore()).create_pool("p", key="k", kind=kind)


def load(pool: Pool, *keys: int, branch: str = "main") -> int:
    version = pool.branch(branch).append(pa.table({"k": list(keys)})).version
    assert version is not None
    return version


def keys(pool: Pool, revision: str = "main") -> list[int]:
    return [row["k"] for row in pool.at(revision).to_table().to_pylist()]


def reopened(pool: Pool) -> Pool:
    """The pool in another process."""
    return Lake.open_on(pool.store).pool(pool.name)


def checkpointed(pool: Pool) -> Pool:
    """The pool in another process that starts from a checkpoint."""
    journal = pool.history.journal
    write_state(journal, journal.load(), id=pool.context.ids.new(), now=pool.context.now())
    return reopened(pool)


def test_a_branch_begins_with_what_its_parent_holds_and_goes_its_own_way() -> None:
    pool = new_pool()
    load(pool, 1)
    made = pool.create_branch("dev")
    assert (made.version, made.parent, made.at) == (2, "main", 1)
    load(pool, 2, branch="dev")
    load(pool, 3)
    for again in (pool, reopened(pool), checkpointed(pool)):
        assert (keys(again), keys(again, "dev")) == ([1, 3], [1, 2])


def test_a_branch_of_an_empty_pool_is_empty() -> None:
    pool = new_pool()
    assert pool.create_branch("dev").at == 0
    load(pool, 1, branch="dev")
    assert (keys(pool), keys(pool, "dev")) == ([], [1])


def test_deletes_and_replaces_on_a_branch_leave_the_parent_alone() -> None:
    pool = new_pool()
    load(pool, 1, 2)
    pool.create_branch("dev")
    dev = pool.branch("dev")
    dev.delete(where="k = 1")
    dev.replace_with(pa.table({"k": [2, 2]}), key_range=pool.at("dev").key_range(low=2))
    pool.branch().delete(where="k = 2")
    assert (keys(pool), keys(pool, "dev")) == ([1], [2, 2])


def test_a_delete_of_the_parent_before_the_branch_holds_on_the_branch() -> None:
    pool = new_pool()
    load(pool, 1, 2)
    pool.branch().delete(where="k = 1")
    pool.create_branch("dev")
    assert keys(pool, "dev") == [2]


@pytest.mark.parametrize("revision", ["1", "transaction", "main@TIME", "dev"])
def test_a_branch_begins_on_any_revision(revision: str) -> None:
    pool = new_pool()
    load(pool, 1)
    first = next(iter(pool.log()))[1]
    if revision == "dev":
        pool.create_branch("dev")
    load(pool, 2)
    pool.branch().delete(where="k = 1")
    at = {"transaction": first.id, "main@TIME": f"main@{_iso(first.time)}"}.get(revision, revision)
    pool.create_branch("old", at=at)
    for again in (pool, checkpointed(pool)):
        assert (keys(again), keys(again, "old")) == ([2], [1])


def _iso(microseconds: int) -> str:
    import datetime as dt

    return dt.datetime.fromtimestamp(microseconds / 1e6, dt.UTC).isoformat()


def test_a_branch_on_an_older_revision_shows_what_was_deleted_and_applied_since() -> None:
    from log_lake.agents.tombstones.run import apply

    pool = new_pool()
    load(pool, 1, 2)
    pool.branch().delete(where="k = 1")
    apply(pool.branch(), now=pool.context.now(), at_once=True)
    pool.create_branch("before", at="1")
    pool.create_branch("between", at="2")
    assert (keys(pool), keys(pool, "before"), keys(pool, "between")) == ([2], [1, 2], [2])
    assert apply(pool.branch("between"), now=pool.context.now(), at_once=True).left == 0
    assert keys(pool, "between") == [2]


def test_a_branch_is_created_while_its_parent_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, other = new_pool(), None
    load(pool, 1)
    load(pool, 2)
    other, moves, commit = reopened(pool), [3, 4], pool.history.commit

    def moved(draft: Any) -> Any:
        if moves:
            load(other, moves.pop(0))
        return commit(draft)

    monkeypatch.setattr(pool.history, "commit", moved)
    pool.create_branch("old", at="1")
    assert keys(pool, "old") == [1]


@pytest.mark.parametrize(
    "name", ["", "a@b", "a:b", "a/b", "$x", "a b", "17", "2Zk1abcdefghijklmnopqrstuvw", "x" * 256, "a\n"]
)
def test_names_that_read_as_another_revision_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="branch name"):
        new_pool().create_branch(name)


def test_a_name_is_used_once() -> None:
    pool = new_pool()
    pool.create_branch("dev")
    for name in ("main", "dev"):
        with pytest.raises(AlreadyExists, match=name):
            pool.create_branch(name)


def test_a_revision_that_does_not_exist_is_refused() -> None:
    with pytest.raises(NotFound, match="version 9"):
        new_pool().create_branch("dev", at="9")


def test_main_and_branches_with_children_cannot_be_deleted() -> None:
    pool = new_pool()
    pool.create_branch("dev")
    pool.create_branch("child", at="dev")
    with pytest.raises(InvalidInput, match="main"):
        pool.delete_branch("main")
    with pytest.raises(InvalidInput, match=r"child began on it"):
        pool.delete_branch("dev")
    pool.delete_branch("child")
    pool.delete_branch("dev")
    with pytest.raises(NotFound, match="dev"):
        pool.at("dev")
    with pytest.raises(NotFound, match="dev"):
        pool.branch("dev")


def test_a_deleted_branch_is_restored_as_it_was_even_after_a_purge() -> None:
    pool = new_pool()
    load(pool, 1)
    pool.create_branch("dev")
    load(pool, 2, branch="dev")
    pool.branch("dev").delete(where="k = 1")
    before = pool.history.load().state.branches["dev"]
    gone = pool.delete_branch("dev")
    assert gone.unmerged == 2
    load(pool, 3)
    pool = checkpointed(pool)
    purge(pool.history.journal, until=pool.history.load().version)
    pool = reopened(pool)
    assert keys(pool, gone.root) == [2]
    with pytest.raises(InvalidInput, match="under its name"):
        pool.create_branch("other", at=gone.root)
    pool.create_branch("dev", at=gone.root)
    assert keys(pool, "dev") == [2]
    after = pool.history.load().state.branches["dev"]
    assert before.fork is not None
    assert after.fork == replace(before.fork, restored=after.tip)
    assert list(after.tombstones) == list(before.tombstones)
    load(pool, 4, branch="dev")
    assert keys(checkpointed(pool), "dev") == [2, 4]


def test_work_on_a_branch_that_was_deleted_does_not_land_on_its_namesake() -> None:
    pool = new_pool()
    pool.create_branch("dev")
    dev = pool.branch("dev")
    pending = dev.begin_load()
    pool.delete_branch("dev")
    pool.create_branch("dev")
    with pytest.raises(NotFound, match="another one of this name"):
        dev.commit(pending, objects=[], schemas=[], sources=[Source("f", 1)])  # type: ignore[arg-type]


def test_source_files_are_known_as_of_the_parents_version_that_the_branch_began_on() -> None:
    pool = new_pool()
    ingest(pool, "main", "before")
    pool.create_branch("dev")
    ingest(pool, "main", "after")
    ingest(pool, "dev", "own")
    pool.create_branch("grandchild", at="dev")
    ingest(pool, "dev", "later")
    for again in (pool, checkpointed(pool)):
        state = again.history.load().state
        known = {
            branch: [name for name in ("before", "after", "own", "later") if state.ingested(branch, name)]
            for branch in ("main", "dev", "grandchild")
        }
        assert known == {
            "main": ["before", "after"],
            "dev": ["before", "own", "later"],
            "grandchild": ["before", "own"],
        }


def ingest(pool: Pool, branch: str, name: str) -> None:
    target = pool.branch(branch)
    pending = target.begin_load()
    target.commit(pending, objects=[], schemas=[], sources=[Source(name, 1)])  # type: ignore[arg-type]


def test_a_namesake_of_a_deleted_branch_knows_none_of_its_source_files() -> None:
    pool = new_pool()
    pool.create_branch("dev")
    ingest(pool, "dev", "f")
    root = pool.delete_branch("dev").root
    pool.create_branch("dev")
    assert pool.history.load().state.ingested("dev", "f") is None
    pool.delete_branch("dev")
    pool.create_branch("dev", at=root)
    assert checkpointed(pool).history.load().state.ingested("dev", "f") == Source("f", 1)


def test_a_version_that_changed_no_branch_is_read_as_main() -> None:
    pool = new_pool()
    load(pool, 1)
    pool.create_branch("dev")
    version = pool.delete_branch("dev").version
    assert pool.at(str(version)).branch == "main"


def test_a_feed_of_a_branch_begins_with_its_state() -> None:
    pool = new_pool()
    load(pool, 1)
    pool.create_branch("dev")
    load(pool, 2, branch="dev")
    feed = pool.feed("dev")
    assert (feed.start(), pool.feed().start()) == (2, 0)
    assert [version for version, _ in feed.between(feed.start(), feed.newest())] == [3]


def test_a_lake_of_version_1_has_no_branches_until_it_is_upgraded() -> None:
    store = MemoryStore()
    Lake.create_on(store).create_pool("p", key="k")
    head = store.get(naming.LAKE_FILE) or b""
    store.put(naming.LAKE_FILE, head.replace(b'"version": 3', b'"version": 1'))
    lake = Lake.open_on(store)
    pool = lake.pool("p")
    load(pool, 1)
    with pytest.raises(InvalidInput, match=r"format version 1.*lake upgrade"):
        pool.create_branch("dev")
    lake.upgrade()
    pool = lake.pool("p")
    pool.create_branch("dev")
    entries = [store.get(naming.entry(naming.pool_journal(pool.config.id), version)) for version in (1, 2)]
    assert [entry and entry[3] for entry in entries] == [1, 2], "an entry has a checksum after the upgrade"
    assert keys(pool, "dev") == [1]
