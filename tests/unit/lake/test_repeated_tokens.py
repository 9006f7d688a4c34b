"""Tokens whose load is not on the branch: refused, so that no record is lost in silence (decision 163)."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lake_core.errors import InvalidInput
from log_lake import Lake
from log_lake.agents.tombstones.run import apply
from log_lake.lake.pool import Pool
from log_lake.rewriting.compaction import compact
from log_lake.stores.memory import MemoryStore


@pytest.fixture
def pool() -> Pool:
    pool = Lake.create_on(MemoryStore()).create_pool("p", key="k")
    pool.branch().append(pa.table({"k": [0]}))
    return pool


def load(pool: Pool, branch: str = "main") -> bool:
    """Whether the load of one record under the token `t` was repeated."""
    return pool.branch(branch).append(pa.table({"k": [1]}), token="t").repeated


def test_a_token_of_a_deleted_branch_is_refused(pool: Pool) -> None:
    pool.create_branch("audit")
    load(pool, "audit")
    pool.delete_branch("audit")
    with pytest.raises(
        InvalidInput, match=r"version 3 of branch 'audit', which was not merged.*another token"
    ):
        load(pool)
    assert not pool.branch().append(pa.table({"k": [1]}), token="u").repeated


def test_a_token_of_another_branch_is_refused_until_that_is_merged(pool: Pool) -> None:
    pool.create_branch("dev")
    pool.create_branch("fix")
    load(pool, "dev")
    for other in ("main", "fix"):
        with pytest.raises(InvalidInput, match="of branch 'dev', which was not merged into"):
            load(pool, other)
    pool.branch().merge("dev")
    assert load(pool)
    assert load(pool, "dev")
    pool.delete_branch("dev")
    assert load(pool)


def test_a_token_of_a_reverted_load_is_refused_until_the_revert_is_reverted(pool: Pool) -> None:
    load(pool)
    version = pool.branch().revert("2", message="a message of the user").version
    with pytest.raises(
        InvalidInput, match=rf"version 2, which version {version} took back.*or revert version 3"
    ):
        load(pool)
    pool.branch().revert(str(version))
    assert load(pool)
    pool.branch().revert("2")
    with pytest.raises(InvalidInput, match="took back"):
        load(pool)


def test_a_token_of_a_reverted_merge_is_refused(pool: Pool) -> None:
    pool.create_branch("dev")
    load(pool, "dev")
    merged = pool.branch().merge("dev").version
    pool.branch().revert(str(merged))
    with pytest.raises(InvalidInput, match="of branch 'dev', which was not merged into 'main'"):
        load(pool)


def test_a_token_of_a_load_that_was_deleted_or_compacted_answers(pool: Pool) -> None:
    load(pool)
    pool.branch().delete(where="k = 1")
    assert load(pool)
    apply(pool.branch(), now=4e9, at_once=True)
    assert load(pool)
    assert pool.at().to_table()["k"].to_pylist() == [0]


def test_a_token_of_a_load_that_a_new_branch_began_with_answers_there(pool: Pool) -> None:
    load(pool)
    pool.create_branch("dev")
    assert load(pool, "dev")
    pool.branch("dev").delete(where="k = 1")
    apply(pool.branch("dev"), now=4e9, at_once=True)
    assert load(pool, "dev")


def test_a_token_of_a_reverted_delete_is_refused(pool: Pool) -> None:
    version = pool.branch().delete(where="k = 0", token="t").version
    assert pool.branch().delete(where="k = 0", token="t").repeated
    pool.branch().revert(str(version))
    with pytest.raises(InvalidInput, match="took back"):
        pool.branch().delete(where="k = 0", token="t")


def compact_all(pool: Pool, branch: str = "main") -> None:
    """Merge the objects of a branch into one, of a branch with a parent those that it wrote."""
    target = pool.branch(branch)
    revision = target.revision()
    own = [r for r in revision.references if revision.held.is_unmerged(r)]
    compact(target, own or list(revision.references))


def test_a_token_of_a_reverted_load_is_refused_though_a_compaction_merged_older_and_newer_ones(
    pool: Pool,
) -> None:
    """The versions of the merged object enclose that of the load, and nothing of the load is in it."""
    load(pool)
    pool.branch().revert("2")
    pool.branch().append(pa.table({"k": [4]}))
    compact_all(pool)
    with pytest.raises(InvalidInput, match="version 2, which version 3 took back"):
        load(pool)


def test_a_token_of_a_deleted_branch_is_refused_though_a_compaction_merged_older_and_newer_loads(
    pool: Pool,
) -> None:
    pool.create_branch("audit")
    load(pool, "audit")
    pool.delete_branch("audit")
    pool.branch().append(pa.table({"k": [4]}))
    compact_all(pool)
    with pytest.raises(InvalidInput, match="of branch 'audit', which was not merged into 'main'"):
        load(pool)


def test_a_branch_of_the_same_name_is_another_one(pool: Pool) -> None:
    pool.create_branch("audit")
    load(pool, "audit")
    root = pool.delete_branch("audit").root
    pool.create_branch("audit")
    with pytest.raises(InvalidInput, match="not merged into 'audit'"):
        load(pool, "audit")
    other = pool.delete_branch("audit").root
    pool.create_branch("audit", at=root)
    compact_all(pool, "audit")
    assert load(pool, "audit")
    pool.delete_branch("audit")
    pool.create_branch("audit", at=other)
    with pytest.raises(InvalidInput, match="not merged into 'audit'"):
        load(pool, "audit")


def test_a_branch_that_was_deleted_before_the_load_comes_back_without_it(pool: Pool) -> None:
    pool.create_branch("audit")
    before = pool.delete_branch("audit").root
    pool.create_branch("audit")
    load(pool, "audit")
    pool.delete_branch("audit")
    pool.create_branch("audit", at=before)
    with pytest.raises(InvalidInput, match="not merged into 'audit'"):
        load(pool, "audit")


def test_a_branch_keeps_a_load_that_its_parent_took_back_later(pool: Pool) -> None:
    load(pool)
    pool.create_branch("dev")
    pool.branch().revert("2")
    compact_all(pool, "dev")
    assert load(pool, "dev")
    with pytest.raises(InvalidInput, match="took back"):
        load(pool)
