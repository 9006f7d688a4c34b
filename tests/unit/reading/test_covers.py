"""Many tombstones and references: the same answers as one by one, with few questions to the statistics."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lake_core.history import Reference
from lake_core.history.tombstone import Tombstone
from lake_core.keys import PoolKey
from lake_core.keys.encoding import encode_key
from lake_core.records.transactions import sequence
from log_lake.objects.statistics import column_statistics
from log_lake.reading.covers import Covering
from log_lake.where import check
from tests.support.conditions import SCHEMA, paths, some_condition, some_records, to_table

KEY = PoolKey.parse("k")
FIELDS = paths(SCHEMA)


def some_tombstone(random: Random, number: int) -> Tombstone:
    low, high = sorted(random.sample(range(20), 2))
    version = random.randint(1, 9)
    return Tombstone(
        f"t{number}",
        version,
        sequence(version),
        0,
        "",
        0,
        random.choice([b"", encode_key([low], KEY)]),
        random.choice([None, encode_key([high], KEY)]),
        random.choice([None, some_condition(random, FIELDS, depth=random.randrange(3))]),
        self_only=random.random() < 0.1,
    )


def some_reference(random: Random, number: int) -> Reference:
    low, high = sorted(random.sample(range(20), 2))
    seq, oldest = sorted((sequence(random.randint(1, 9)), sequence(random.randint(1, 9))), reverse=True)
    table = to_table(some_records(random, random.randint(1, 3)))
    columns = tuple(column_statistics(table)) if random.random() < 0.9 else ()
    bounds: tuple[Any, Any] = (encode_key([low], KEY), encode_key([high], KEY))
    applied = random.randint(0, 4)
    rows, old = table.num_rows, oldest if random.random() < 0.5 else None
    return Reference(f"o{number}", *bounds, seq, 0, rows, 1, "s", "", columns, old, applied)


def one(id: str) -> pa.Schema:
    return SCHEMA


@given(st.randoms(use_true_random=True), st.integers(0, 30))
def test_many_are_found_as_one_by_one(random: Random, count: int) -> None:
    tombstones = [some_tombstone(random, number) for number in range(count)]
    covering = Covering(tombstones, one)
    for number in range(4):
        reference = some_reference(random, number)
        found = covering.of(reference)
        reaching = {t for t in tombstones if t.reaches(reference)}
        assert reaching >= set(found.tombstones) >= {t for t in reaching if t.may_cover(reference, one)}
        assert set(found.whole) == {t for t in reaching if t.covers_all(reference, one)}


def test_a_reference_is_compared_with_arrays_of_a_thousand_tombstones_and_with_few_of_them_one_by_one() -> (
    None
):
    schema = pa.schema({"k": pa.int64(), "v": pa.int64()})
    asked: list[str] = []

    def schema_of(id: str) -> pa.Schema:
        asked.append(id)
        return schema

    tombstones = [
        Tombstone(f"t{n}", 9, sequence(9), 0, "", 0, condition=check(f"v = {n}", schema))
        for n in range(1_000)
    ]
    covering = Covering(tombstones, schema_of)
    for first in range(100):
        columns = tuple(column_statistics(pa.table({"k": [1, 2], "v": [first, first + 1]})))
        low, high = encode_key([1], KEY), encode_key([3], KEY)
        found = covering.of(Reference("o", low, high, sequence(1), 0, 2, 1, "s", "", columns))
        assert [t.id for t in found.tombstones] == [f"t{first}", f"t{first + 1}"]
    assert len(asked) == 1  # prepared once; a question to the statistics asks for the schema too
