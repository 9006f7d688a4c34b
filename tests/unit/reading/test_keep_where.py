"""keep.where: what does not fulfil the condition is not seen, compaction drops it, and deletes still reach it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lake_core.errors import InvalidInput
from lake_core.keys import KeyRange
from log_lake.agents.tombstones import run as tombstones
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.rewriting.compaction import compact
from log_lake.stores.memory import MemoryStore


@pytest.fixture
def lake() -> Lake:
    return Lake.create_on(MemoryStore())


def pool_in(lake: Lake, kind: str = "append", *, key: str = "n,k", where: str = "n > 10") -> Pool:
    return lake.create_pool("p", key=key, kind=kind, settings={"keep.where": where})


def keeping(lake: Lake, where: str) -> Pool:
    lake.catalog.configure("p", {"keep.where": where})
    return lake.pool("p")


def seen(pool: Pool, column: str = "k") -> list[Any]:
    return [record[column] for record in pool.at().to_table().to_pylist()]


def compacted(pool: Pool) -> None:
    compact(pool.branch(), pool.at().references, outputs=1)


@pytest.mark.parametrize("kind", ["append", "upsert", "aggregate"])
def test_what_does_not_fulfil_the_condition_is_not_seen_and_compaction_drops_it(
    lake: Lake, kind: str
) -> None:
    pool = pool_in(lake, kind)
    pool.branch().append(pa.table({"n": [5, 15], "k": [1, 2]}))
    pool.branch().append(pa.table({"n": [7, 25], "k": [3, 4]}))
    assert seen(pool) == [2, 4]
    assert pool.at().get([15, 2]).num_rows == 1
    assert pool.at().get([5, 1]).num_rows == 0
    compacted(pool)
    assert (seen(pool), pool.at().records) == ([2, 4], 2)


def test_null_and_a_value_of_another_class_do_not_fulfil_it(lake: Lake) -> None:
    pool = pool_in(lake, key="k")
    pool.branch().append(pa.table({"k": [1, 2], "n": [None, 11]}))
    pool.branch().append(pa.table({"k": [3], "n": ["twelve"]}))
    pool.branch().append(pa.table({"k": [4]}))
    assert seen(pool) == [2]
    assert seen(keeping(lake, "n > 10 or n is null")) == [1, 2, 4]


def test_while_no_record_has_the_field_nothing_is_hidden(lake: Lake) -> None:
    pool = pool_in(lake, key="k")
    pool.branch().append(pa.table({"k": [1]}))
    assert seen(pool) == [1]
    pool.branch().append(pa.table({"k": [2], "n": [20]}))
    assert seen(pool) == [2]


def test_a_compaction_that_drops_the_last_record_with_the_field_shows_no_other(lake: Lake) -> None:
    pool = pool_in(lake, key="k")
    pool.branch().append(pa.table({"k": [1]}))
    pool.branch().append(pa.table({"k": [2], "n": [5]}))
    assert seen(pool) == []
    compact(pool.branch(), [reference for reference in pool.at().references if reference.seq == 2 << 16])
    assert pool.at().schema.names == ["k"]
    assert (seen(pool), pool.at().records) == ([], 1)


def test_the_newest_record_of_a_key_decides(lake: Lake) -> None:
    pool = pool_in(lake, "upsert", key="k")
    pool.branch().append(pa.table({"k": [1, 2], "n": [20, 30]}))
    pool.branch().append(pa.table({"k": [1], "n": [5]}))
    assert seen(pool) == [2]
    newest = max(pool.at().references, key=lambda reference: reference.seq)
    compact(pool.branch(), [newest])
    assert seen(pool) == [2], "the older record of its key does not come back"
    compacted(pool)
    assert (seen(pool), pool.at().records) == ([2], 1)


def test_another_condition_shows_others_but_not_what_a_compaction_dropped(lake: Lake) -> None:
    pool = pool_in(lake, key="k")
    pool.branch().append(pa.table({"k": [1, 2], "n": [5, 20]}))
    assert seen(keeping(lake, "")) == [1, 2]
    pool = keeping(lake, "n < 10")
    compacted(pool)
    assert seen(keeping(lake, "")) == [1]


def test_counts_and_sums_from_the_state_do_not_count_what_is_hidden(lake: Lake) -> None:
    pool = pool_in(lake, key="k")
    pool.branch().append(pa.table({"k": [1, 2], "n": [5, 20]}))
    pool.branch().append(pa.table({"k": [3], "n": [30]}))
    summary = pool.at().summary()
    assert (summary.records, summary.at_most, summary.why) == (None, 3, "keep.where may hide records")
    read = pool.at().summary(read=True)
    assert (read.records, read.fields["n"].low) == (2, 20)
    assert pool.at().content().records == 2


def test_a_delete_reaches_hidden_records_too(lake: Lake) -> None:
    pool = pool_in(lake, key="k")
    pool.branch().append(pa.table({"k": [1, 2], "n": [5, 20]}))
    pool.branch().delete(where="k = 1")
    assert seen(keeping(lake, "")) == [2]


def test_an_object_with_nothing_else_is_removed_by_the_tombstones_agent(lake: Lake) -> None:
    pool = pool_in(lake, key="k")
    pool.branch().append(pa.table({"k": [1, 2], "n": [5, 6]}))
    pool.branch().append(pa.table({"k": [3], "n": [20]}))
    did = tombstones.apply(pool.branch(), now=pool.context.now())
    assert (did.rewritten, len(pool.at().references)) == (1, 1)


def test_explain_names_the_setting(lake: Lake) -> None:
    pool = pool_in(lake, key="k")
    pool.branch().append(pa.table({"k": [1], "n": [5]}))
    (version,) = pool.at().explain(KeyRange())
    assert (version.fate, version.by) == ("deleted", "keep-where")
    (filter,) = pool.at().filters
    assert filter.reason == "keep.where=n > 10"


def test_sub_pools_keep_all(lake: Lake) -> None:
    pool_in(lake, key="k").branch().append(pa.table({"k": [1, None], "n": [5, 6]}))
    assert lake.pool("p.$nokey").at().to_table().num_rows == 1


def test_what_was_written_before_the_setting_is_hidden_in_every_version(lake: Lake) -> None:
    pool = pool_in(lake, key="k", where="")
    pool.branch().append(pa.table({"k": [1, 2], "n": [5, 20]}))
    assert keeping(lake, "n > 10").at("1").to_table().num_rows == 1


@pytest.mark.parametrize("text", ["n >", "n = = 3", "n > 'x"])
def test_a_text_that_is_no_condition_is_refused(lake: Lake, text: str) -> None:
    with pytest.raises(InvalidInput, match=r"setting keep.where=.*column"):
        pool_in(lake, where=text)


def test_in_an_aggregate_pool_it_may_name_fields_of_the_key_only(lake: Lake) -> None:
    with pytest.raises(InvalidInput, match="'n' is combined from many records"):
        pool_in(lake, "aggregate", key="k")
