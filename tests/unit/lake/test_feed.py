"""Following a branch: what its transactions brought, in order, each once; rewrites bring nothing."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lake_core.errors import NotFound, ObjectMissing
from lake_core.journal import purge, write_state
from lake_core.records import RemoveReference
from log_lake.lake.feed import brought, read_object
from log_lake.lake.pool import Pool
from log_lake.objects.located import Located
from tests.support.pools import a_pool
from tests.support.records import KNOWN, add, an_id, entry, transaction
from tests.support.rewrites import rewrite


def names(*numbers: int) -> list[str]:
    return [an_id(n) for n in numbers]


def objects(*transactions: object, branch: str = "main", sub_pool: str = "") -> list[str]:
    return [a.object for a in brought(entry(*transactions), branch=branch, sub_pool=sub_pool)]  # type: ignore[arg-type]


def test_objects_come_by_transaction_and_in_it_by_arrival() -> None:
    late, early = add(1, ordinal=7), add(2, ordinal=3)
    assert objects(transaction(KNOWN, late, early), transaction(add(3))) == names(2, 1, 3)


def test_a_transaction_that_removes_references_brings_nothing() -> None:
    rewrite = transaction(RemoveReference(an_id(1), b""), add(2))
    assert objects(transaction(KNOWN, add(1)), rewrite, transaction(add(3))) == names(1, 3)


def test_other_branches_and_sub_pools_have_feeds_of_their_own() -> None:
    both = transaction(KNOWN, add(1), add(2, sub_pool="$nokey"))
    side = transaction(add(3), branch="side")
    assert objects(both, side) == names(1)
    assert objects(both, side, sub_pool="$nokey") == names(2)
    assert objects(both, side, branch="side") == names(3)


@pytest.fixture
def pool() -> Pool:
    """Five transactions, of one record each."""
    return a_pool(*(pa.table({"k": [k]}) for k in range(5)))


def purge_up_to(pool: Pool, n: int) -> None:
    journal = pool.history.journal
    head = journal.load_version(n)
    assert head is not None
    write_state(journal, head, id=pool.context.ids.new(), now=0.0)
    purge(journal, until=n)


def test_the_feed_goes_on_from_any_entry_to_any(pool: Pool) -> None:
    feed = pool.feed()
    assert (feed.start(), feed.newest()) == (0, 5)
    assert [n for n, _ in feed.between(0, 5)] == [1, 2, 3, 4, 5]
    assert [n for n, _ in feed.between(2, 4)] == [3, 4]


def test_what_is_purged_can_no_longer_be_followed_and_the_state_there_begins_the_feed(pool: Pool) -> None:
    purge_up_to(pool, 3)
    feed = pool.feed()
    assert feed.start() == 3
    assert pool.at(str(feed.start())).to_table()["k"].to_pylist() == [0, 1, 2]
    assert [n for n, _ in feed.between(3, 5)] == [4, 5]
    with pytest.raises(NotFound, match=r"version 3 is purged.*history\.keep"):
        list(feed.between(2, 5))


def test_a_branch_that_does_not_exist_has_no_feed(pool: Pool) -> None:
    with pytest.raises(NotFound, match="branch 'side' does not exist"):
        pool.feed("side")


def test_an_object_is_read_whole_in_the_columns_that_it_has(pool: Pool) -> None:
    pool.branch().append(pa.table({"k": [9, 7, 8], "x": ["a", "b", "c"], "y": [1, 2, 3]}))
    (_, added) = next(pool.feed().between(5, 6))

    def rows(object_id: str) -> list[dict[str, object]]:
        tables = read_object(
            pool.store,
            pool_id=pool.config.id,
            located=Located(object_id),
            key=pool.config.key,
            columns=["k", "x", "z"],
        )
        return [row for table in tables for row in table.to_pylist()]

    assert rows(added.object) == [{"k": 7, "x": "b"}, {"k": 8, "x": "c"}, {"k": 9, "x": "a"}]
    with pytest.raises(ObjectMissing):
        rows(an_id(1))


def test_a_compaction_in_the_history_is_passed_by(pool: Pool) -> None:
    rewrite(pool)
    pool.branch().append(pa.table({"k": [99]}))
    assert [n for n, _ in pool.feed().between(0, 7)] == [1, 2, 3, 4, 5, 7]
    assert pool.at().to_table()["k"].to_pylist() == [0, 1, 2, 3, 4, 99]
