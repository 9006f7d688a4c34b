"""A range that is written before a record tells the type of the key covers what it was meant for, or is refused."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from lake_core.errors import InvalidInput
from lake_core.keys import KeyRange
from lake_core.keys.encoding import encode_value
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.lake.replaces import PendingReplace
from log_lake.loading.block import Block
from log_lake.stores.memory import MemoryStore
from log_lake.texts.keytext import RangeText
from tests.support.pools import a_pool, keys


def table(*numbers: int) -> pa.Table:
    return pa.table({"k": pa.array(numbers, pa.int64())})


def guessed(pool: Pool, text: str) -> KeyRange:
    """The range up to the text as a reading view gives it: a text, as long as nothing tells the class."""
    return KeyRange(b"", pool.at().bound_of_text(text))


def test_a_replace_reads_its_range_as_the_class_of_its_records_and_a_merge_keeps_it() -> None:
    pool = a_pool()
    pool.create_branch("d")
    pool.branch("d").replace_with(table(1), key_range=RangeText(high="7"))
    pool.branch().append(table(5, 8, 100))
    pool.branch().merge("d")
    assert keys(pool) == [1, 8, 100]


def test_a_first_replace_that_overtakes_a_load_hides_only_its_range() -> None:
    pool = a_pool()
    branch = pool.branch()
    pending = branch.begin_load()
    builder = branch.builder(pending)
    builder.add(Block(table(5, 8, 100)))
    written = builder.finish()
    pool.create_branch("other")  # an entry, so that the replace begins later
    branch.replace_with(table(1), key_range=RangeText(high="7"))
    done = branch.commit(pending, objects=[w.action for w in written], schemas=[w.schema for w in written])
    assert done.overtaken == ("overtaken by the replace of version 2",)
    assert keys(pool) == [1, 8, 100]


def test_a_first_replace_may_be_repeated() -> None:
    pool = a_pool()
    for _ in range(2):
        pool.branch().replace_with(table(1, 2, 4), key_range=RangeText(low="1", high="5"))
        assert keys(pool) == [1, 2, 4]


@pytest.mark.parametrize(
    ("column", "low", "high"),
    [
        (pa.array([dt.date(2026, 1, 31)]), "2026-01-01", "2026-02-01"),
        (pa.array([dt.datetime(2026, 1, 31, tzinfo=dt.UTC)]), "2026-01-31", "2026-02-01"),
        (pa.array(["10"]), "1", "2"),
        (pa.array([b"\x05"]), "BQ==", "Bg=="),
        (pa.array([False]), "false", "true"),
    ],
)
def test_a_first_replace_of_any_class_takes_its_range_as_text(column: pa.Array, low: str, high: str) -> None:
    pool = a_pool()
    for _ in range(2):
        pool.branch().replace_with(pa.table({"k": column}), key_range=RangeText(low=low, high=high))
    assert pool.at().to_table().num_rows == 1


def test_a_record_outside_of_the_range_of_a_first_replace_is_refused() -> None:
    pool = a_pool()
    with pytest.raises(InvalidInput, match=r"from key 9 to 9 \(both inclusive\) some lie outside the range"):
        pool.branch().replace_with(table(9), key_range=RangeText(high="7"))
    with pytest.raises(InvalidInput, match="is empty"):
        pool.branch().replace_with(table(9), key_range=RangeText(low="10", high="9"))
    with pytest.raises(InvalidInput, match="the field is a number, and this is not a number"):
        pool.branch().replace_with(table(9), key_range=RangeText(low="a"))
    assert not pool.at().version


def test_a_bound_of_another_class_than_the_records_is_refused() -> None:
    pool = a_pool()
    with pytest.raises(InvalidInput, match="'7' is a string, and the key field 'k' is a number"):
        pool.branch().replace_with(table(1), key_range=guessed(pool, "7"))
    assert not pool.at().version


def test_a_replace_by_nothing_needs_the_type_of_the_key() -> None:
    pool = a_pool()
    for key_range in (RangeText(high="7"), guessed(pool, "7"), KeyRange(encode_value(7), None)):
        with pytest.raises(InvalidInput, match=r"no record tells the type .* \(lake set POOL type.k=TYPE\)"):
            pool.branch().replace([], key_range=key_range)
    assert not pool.at().version
    pool = Lake.create_on(MemoryStore()).create_pool("p", key="k", settings={"type.k": "bigint"})
    pool.branch().replace([], key_range=RangeText(high="7"))
    pool.branch().append(table(5, 8))
    assert keys(pool) == [5, 8]


def test_a_delete_in_an_empty_pool_deletes_nothing_and_stores_nothing() -> None:
    pool = a_pool()
    pool.create_branch("d")
    for key_range in (RangeText(high="7"), RangeText(prefix="7"), guessed(pool, "7")):
        assert pool.branch("d").delete(key_range=key_range).version is None
    pool.branch().append(table(5, 8, 100))
    assert not pool.at("d").tombstones
    assert keys(pool) == [5, 8, 100]


def test_a_delete_of_texts_is_refused_where_keys_are_numbers() -> None:
    pool = a_pool()
    texts = guessed(pool, "7")
    pool.branch().append(table(5, 8, 100))
    with pytest.raises(InvalidInput, match="'7' is a string, and the key field 'k' is a number"):
        pool.branch().delete(key_range=texts)
    pool.branch().delete(key_range=RangeText(high="7"))
    assert keys(pool) == [8, 100]


def test_a_further_field_that_is_null_so_far_has_no_type_yet() -> None:
    pool = a_pool(pa.table({"a": ["x", "x"], "b": pa.nulls(2)}), key="a,b")
    pool.create_branch("d")
    with pytest.raises(InvalidInput, match="the type of the key field 'b' yet, so '7' could be of any"):
        pool.branch("d").delete(key_range=RangeText(high='["x", 7]'))
    with pytest.raises(InvalidInput, match="the type of the key field 'b' yet"):
        pool.branch("d").replace([], key_range=RangeText(high='["x", 7]'))
    new = pa.table({"a": ["x"], "b": [1]})
    pool.branch("d").replace_with(new, key_range=RangeText(low='["x", null]', high='["x", 7]'))
    pool.branch().append(pa.table({"a": ["x", "x"], "b": [5, 8]}))
    pool.branch().merge("d")
    assert pool.at().to_table()["b"].to_pylist() == [1, 8]


def test_errors_show_keys_as_they_are_written() -> None:
    pool = a_pool(pa.table({"k": [False, True]}))
    with pytest.raises(InvalidInput, match=r"from true \(inclusive\) to false \(exclusive\) is empty"):
        pool.branch().delete(key_range=RangeText(low="true", high="false"))
    with pytest.raises(InvalidInput, match=r"from key true to true \(both inclusive\) some lie outside"):
        pool.branch().replace_with(pa.table({"k": [True]}), key_range=RangeText(high="true"))
    with pytest.raises(InvalidInput, match="key k=5: the field is a boolean"):
        pool.at().bound(5)
    of_two = a_pool(pa.table({"a": [False], "b": ["x"]}), key="a,b")
    low = RangeText(low='[true, "a"]')
    with pytest.raises(InvalidInput, match=r'from key \[false, "x"\] to \[false, "x"\]'):
        of_two.branch().replace_with(pa.table({"a": [False], "b": ["x"]}), key_range=low)


def test_a_replace_whose_objects_are_built_elsewhere_is_checked_too() -> None:
    pool = a_pool()
    branch = pool.branch()
    begun = branch.begin_replace(key_range=guessed(pool, "7"))
    assert isinstance(begun, PendingReplace)
    pending, spec = begun.load, begun.spec
    builder = branch.builder(pending)
    builder.add(Block(table(1)))
    written = builder.finish()
    with pytest.raises(InvalidInput, match="'7' is a string, and the key field 'k' is a number"):
        branch.commit(
            pending, replaced=spec, objects=[w.action for w in written], schemas=[w.schema for w in written]
        )
    with pytest.raises(InvalidInput, match="no record tells the type"):
        branch.commit(pending, replaced=spec, objects=[], schemas=[])
    assert not pool.at().version


def test_a_range_that_no_record_explains_is_not_called_empty() -> None:
    with pytest.raises(InvalidInput, match="no record tells the type of the key field 'k'"):
        a_pool().branch().replace_with(pa.table({}), key_range=RangeText(low="7", high="11"))


def test_a_first_replace_takes_a_condition_over_the_fields_of_its_records_and_may_be_repeated() -> None:
    pool = a_pool()
    records = pa.table({"k": [1, 2], "day": [dt.date(2026, 1, 31)] * 2, "at": [{"zone": "a"}] * 2})
    for _ in range(2):
        pool.branch().replace_with(records, where="day = '2026-01-31' and at.zone = 'a'")
        assert keys(pool) == [1, 2]


def test_a_condition_over_a_field_that_a_replace_brings_keeps_what_has_no_such_field() -> None:
    pool = a_pool()
    pool.branch().append(table(5))
    pool.branch().replace_with(pa.table({"k": [1], "v": [7]}), where="v > 6")
    pool.branch().replace_with(pa.table({"k": [2], "v": [8]}), where="v > 6")
    assert keys(pool) == [2, 5]


def test_a_condition_over_a_field_that_neither_the_pool_nor_a_new_record_has_is_refused() -> None:
    pool = a_pool()
    with pytest.raises(InvalidInput, match="at `w`: no such field; there are: k, v"):
        pool.branch().replace_with(pa.table({"k": [1], "v": [7]}), where="w > 6")
    pool.branch().append(pa.table({"k": [1], "v": [7]}))
    with pytest.raises(InvalidInput, match="at `w`: no such field; there are: k, v"):
        pool.branch().replace_with(table(1), where="w > 6")
    assert keys(pool) == [1]
