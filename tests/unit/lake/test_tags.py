"""Tags: names of revisions that stay readable, whatever is committed, compacted or purged afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from lake_core import naming
from lake_core.errors import AlreadyExists, InvalidInput, NotFound
from lake_core.history.state import PoolState
from lake_core.journal import purge
from lake_core.records import SetTag
from log_lake.lake.pool import Pool
from log_lake.rewriting.compaction import compact
from tests.unit.lake.test_branches import checkpointed, keys, load, new_pool, reopened


def purged(pool: Pool) -> Pool:
    """The pool after a purge of everything, in another process."""
    pool = checkpointed(pool)
    purge(pool.history.journal, until=pool.history.load().version)
    return reopened(pool)


def test_a_tag_names_a_revision_and_survives_purges() -> None:
    pool = new_pool()
    load(pool, 1)
    done = pool.tag("release", reason="audit")
    load(pool, 2)
    pool = purged(pool)
    load(pool, 3)
    pool = purged(pool)
    assert (done.tagged, keys(pool, "release"), keys(pool)) == (1, [1], [1, 2, 3])
    assert keys(pool, "1") == [1]
    with pytest.raises(NotFound, match="version 2 is purged"):
        pool.at("2")
    tag = pool.tags["release"]
    assert (tag.version, tag.branch, tag.reason, tag.expires) == (1, "main", "audit", None)


def test_a_tag_of_a_branch_stays_with_the_branch() -> None:
    pool = new_pool()
    pool.create_branch("dev")
    load(pool, 1, branch="dev")
    load(pool, 2)
    pool.tag("t", at="dev")
    load(pool, 3, branch="dev")
    pool.create_branch("from-tag", at="t")
    assert (keys(purged(pool), "t"), keys(pool, "from-tag")) == ([1], [1])


def test_a_tag_does_not_disturb_who_loads_into_its_branch() -> None:
    pool = new_pool()
    load(pool, 1)
    pool.tag("t")
    assert pool.history.load().state.branches["main"].tip == 1
    assert [action for _, action in pool.feed().between(1, 2)] == []
    assert pool.at("2").branch == "main"
    version, transaction = next(iter(pool.log()))
    assert (version, transaction.branch) == (2, "")
    assert pool.at(transaction.id).branch == "main"


def test_a_tag_is_not_moved_and_can_be_deleted() -> None:
    pool = new_pool()
    load(pool, 1)
    pool.create_branch("dev")
    pool.tag("t")
    with pytest.raises(AlreadyExists, match=r"'t' names version 2 of 'main' already"):
        pool.tag("t")
    with pytest.raises(AlreadyExists, match="branch 'dev' exists"):
        pool.tag("dev")
    with pytest.raises(AlreadyExists, match="tag 't' exists"):
        pool.create_branch("t")
    assert pool.delete_tag("t").tagged == 2
    with pytest.raises(NotFound, match="'t' does not exist"):
        pool.delete_tag("t")
    load(pool, 2)
    pool = purged(pool)
    with pytest.raises(NotFound):
        pool.at("2")
    assert pool.tags == {}


def test_an_expired_tag_is_listed_and_keeps_nothing() -> None:
    pool = new_pool()
    load(pool, 1)
    now = pool.context.now()
    with pytest.raises(InvalidInput, match="has passed"):
        pool.tag("t", expires=now - 1)
    pool.tag("t", expires=now + 3600)
    tag = pool.tags["t"]
    assert tag.is_live(int(now * 1e6))
    assert not tag.is_live(int((now + 3601) * 1e6))
    load(pool, 2)
    state = pool.history.load().state
    assert state.kept == {1}
    assert PoolState(tags=state.tags, time=int((now + 3601) * 1e6)).kept == frozenset()


def test_an_empty_pool_and_impossible_names_are_refused() -> None:
    pool = new_pool()
    with pytest.raises(InvalidInput, match="nothing to tag"):
        pool.tag("t")
    for name in ("a@1", "17", "", "a b"):
        with pytest.raises(InvalidInput, match="tag name"):
            pool.tag(name)


def test_a_tag_that_a_purge_overtakes_still_resolves(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = new_pool()
    load(pool, 1)
    other, commit = reopened(pool), pool.history.commit

    def overtaken(draft: Any) -> Any:
        if isinstance(draft.actions[0], SetTag):  # the checkpoint is there, the tag is not committed yet
            load(other, 2)
            purged(other)
        return commit(draft)

    monkeypatch.setattr(pool.history, "commit", overtaken)
    pool.tag("t", at="1")
    assert pool.history.journal.marks().fence == 2
    assert keys(reopened(pool), "t") == [1]
    assert keys(purged(pool), "t") == [1]


def test_the_cost_of_a_tag_is_what_it_alone_keeps() -> None:
    pool = new_pool()
    load(pool, 1)
    load(pool, 1)
    sizes = [r.size for r in pool.at().references]
    pool.tag("a")
    assert pool.tag_costs() == {"a": 0}
    compact(pool.branch(), pool.at().references)
    assert pool.tag_costs() == {"a": sum(sizes)}
    pool.tag("b", at="1")
    assert pool.tag_costs() == {"a": sizes[1], "b": 0}
    assert pool.tag_costs() == purged(pool).tag_costs()


def test_a_purge_deletes_checkpoints_that_no_tag_keeps() -> None:
    pool = new_pool()
    load(pool, 1)
    pool.tag("t")
    for n in range(2, 5):
        load(pool, n)
        pool = checkpointed(pool)
    pool = purged(pool)
    marks = [info.name for info in pool.store.list(naming.marks(pool.history.journal.name))]
    versions = [naming.checkpoint_version(name) for name in marks]
    assert {v for v in versions if v is not None} == {1, 5}
