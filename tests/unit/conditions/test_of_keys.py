"""The condition of keys holds for the records of these keys and for no other, and is limited in size."""

from __future__ import annotations

import itertools
import random

import pyarrow as pa
import pytest

from lake_core.conditions import In
from lake_core.errors import InvalidInput
from lake_core.keys import PoolKey
from log_lake.where import check, holds
from log_lake.where.of_keys import MAX_COMPARISONS, MAX_KEYS, of_keys


def key(text: str) -> PoolKey:
    return PoolKey.parse(text)


@pytest.mark.parametrize("seed", range(20))
def test_it_holds_for_the_records_of_these_keys_and_for_no_other(seed: int) -> None:
    chance = random.Random(seed)
    every = list(itertools.product([1, 2, 3], ["x", "y", None], [0.0, None, float("inf")]))
    records = pa.Table.from_pylist([dict(zip("abc", row, strict=True)) for row in every])
    chosen = chance.sample(every, chance.randrange(1, len(every)))
    keys = pa.Table.from_pylist([dict(zip("abc", row, strict=True)) for row in chosen], schema=records.schema)
    condition = of_keys(keys, key("a,b:desc,c"))
    assert condition is not None
    found = records.filter(holds(check(condition, records.schema), records)).to_pylist()
    assert [tuple(row.values()) for row in found] == [row for row in every if row in chosen]


def test_keys_of_one_field_are_one_set() -> None:
    keys = pa.table({"k": [3, 1, 3], "other": ["is", "not", "read"]})
    condition = of_keys(keys, key("k"))
    assert isinstance(condition, In)
    assert len(condition.values) == 2


def test_regular_keys_of_several_fields_take_few_comparisons() -> None:
    grid = pa.Table.from_pylist([{"a": a, "b": b} for a in range(100) for b in range(100)])
    assert of_keys(grid, key("a,b")) is not None, "100 times 100 are two sets"


def test_without_keys_there_is_no_condition() -> None:
    assert of_keys(pa.table({"k": pa.array([], pa.int64())}), key("k")) is None


def test_what_no_condition_can_name_is_refused_and_what_to_do_is_said() -> None:
    with pytest.raises(InvalidInput, match=r"more than 10,000 keys; .* upsert pool"):
        of_keys(pa.table({"k": list(range(MAX_KEYS + 1))}), key("k"))
    irregular = pa.table({"a": list(range(MAX_COMPARISONS)), "b": list(range(MAX_COMPARISONS))})
    with pytest.raises(InvalidInput, match="200 keys of 2 fields need 400 comparisons, and at most 200"):
        of_keys(irregular, key("a,b"))
    with pytest.raises(InvalidInput, match=r"no column 'b'; there are: a\."):
        of_keys(pa.table({"a": [1]}), key("a,b"))
    with pytest.raises(InvalidInput, match=r"1 key without 'k' \(null\)"):
        of_keys(pa.table({"k": [1, None]}), key("k"))
