"""A transaction in words: what a reader of the log is told, with counts."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lake_core.history.covered import interval_source
from lake_core.keys import KeyRange
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.rewriting.compaction import compact
from log_lake.stores.memory import MemoryStore
from log_lake.texts.keytext import RangeText, range_words
from log_lake.view.sayings import MAX_CONDITION, says


@pytest.fixture
def pool() -> Pool:
    return Lake.create_on(MemoryStore()).create_pool("logs", key="k")


def told(pool: Pool) -> list[str]:
    """What each transaction did, oldest first."""
    return [says(transaction, pool.config.key) for _, transaction in pool.log()][::-1]


def test_loads_count_records_and_those_beside_the_pool(pool: Pool) -> None:
    pool.branch().append(pa.table({"k": [1, 2, None]}))
    assert told(pool) == ["loaded 2 records and 1 record into $nokey"]


def test_a_delete_says_its_keys_and_its_condition(pool: Pool) -> None:
    pool.branch().append(pa.table({"k": list(range(100)), "user": ["ada", "bob"] * 50}))
    for low, high, where in (
        ("3", "5", None),
        ("90", None, None),
        (None, "3", None),
        ("7", "9", "user = 'ada'"),
    ):
        pool.branch().delete(key_range=RangeText(low=low, high=high), where=where)
    pool.branch().delete(where="user = 'bob'")
    assert told(pool)[1:] == [
        "deleted keys from 3 to below 5",
        "deleted keys from 90 on",
        "deleted keys below 3",
        "deleted keys from 7 to below 9 where user = 'ada'",
        "deleted records where user = 'bob'",
    ]


def test_a_delete_of_a_key_names_it_and_an_end_says_whether_it_belongs_to_it() -> None:
    pool = Lake.create_on(MemoryStore()).create_pool("pairs", key="a,b")
    pool.branch().append(pa.table({"a": [1, 1, 2], "b": [4, 5, 6]}))
    one, other = "[1, 4]", "[2, 6]"
    for span in (RangeText(prefix=one), RangeText(low=one, high=other), RangeText(prefix="2")):
        pool.branch().delete(key_range=span)
    assert told(pool)[1:] == [
        "deleted the key [1, 4]",
        "deleted keys from [1, 4] to below [2, 6]",
        "deleted keys that begin with 2",
    ]
    first, last = (
        RangeText(prefix=text).read(pool.config.key, {"a": "number", "b": "number"}) for text in (one, other)
    )
    assert range_words(first.low, last.high, pool.config.key) == "keys from [1, 4] up to [2, 6] (inclusive)"
    assert range_words(first.high or b"", last.low, pool.config.key) == "keys after [1, 4] to below [2, 6]"
    assert range_words(first.high or b"", None, pool.config.key) == "keys after [1, 4] on"
    assert range_words(b"", last.high, pool.config.key) == "keys up to [2, 6] (inclusive)"
    assert range_words(b"", None, pool.config.key) == ""


def test_an_empty_interval_is_said_in_words(pool: Pool) -> None:
    source = interval_source(KeyRange(b"a", b"b"), id=pool.context.ids.new())
    assert source is not None
    pool.branch().commit(pool.branch().begin_load(), objects=[], schemas=[], sources=[source])
    assert told(pool) == ["says that an interval is held, and empty"]


def test_a_long_condition_is_cut(pool: Pool) -> None:
    pool.branch().append(pa.table({"k": [1], "user": ["x" * 1_000]}))
    pool.branch().delete(where=f"user = '{'x' * 1_000}'")
    assert len(told(pool)[-1]) < MAX_CONDITION + 40


def test_a_replace_says_what_it_wrote_and_what_it_replaced(pool: Pool) -> None:
    pool.branch().append(pa.table({"k": list(range(10))}))
    pool.branch().replace_with(pa.table({"k": [3]}), key_range=RangeText(low="2", high="5"))
    assert told(pool)[-1] == "wrote 1 record; replaced keys from 2 to below 5"


def test_a_compaction_says_what_it_read_and_wrote(pool: Pool) -> None:
    for _ in range(3):
        pool.branch().append(pa.table({"k": [1, 2]}))
    compact(pool.branch(), pool.at().references)
    assert told(pool)[-1] == "rewrote 3 objects into 1 with 6 records"


def test_branches_tags_and_merges_are_named(pool: Pool) -> None:
    pool.branch().append(pa.table({"k": [1]}))
    pool.create_branch("dev")
    pool.branch("dev").append(pa.table({"k": [2]}))
    pool.branch().merge("dev")
    pool.tag("monthly")
    entries = pool.history.journal.between(0, pool.history.load().version)
    all_told = [says(one, pool.config.key) for _, entry in entries for one in entry.transactions]
    assert all_told == [
        "loaded 1 record",
        "created the branch from main at version 1",
        "loaded 1 record",
        "merged dev up to version 3; brought 1 record in 1 object",
        "set the tag monthly",
    ]
