"""Counts and bounds from the state are those of the records, or there are none and the reason is said."""

from __future__ import annotations

import datetime as dt
import math
import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from log_lake.lake.pool import Pool
from log_lake.objects.read import DataObject
from log_lake.reading.summary import FieldSummary
from tests.support.pools import a_pool, compact_all


def filled(seed: int) -> Pool:
    chance = random.Random(seed)
    return a_pool(
        *(
            pa.table(
                {
                    "k": [chance.randrange(1_000) for _ in range(20)],
                    "day": pa.array([chance.choice([None, dt.date(2026, 1, n + 1)]) for _ in range(20)]),
                    **({} if n % 2 else {"t": [chance.choice(["x", "y", None]) for _ in range(20)]}),
                }
            )
            for n in range(5)
        )
    )


@pytest.mark.parametrize("seed", range(4))
def test_they_are_those_of_the_records_and_no_object_is_opened(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = filled(seed)
    if seed % 2:
        compact_all(pool)
    table = pool.at().to_table()

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("an object was opened")

    monkeypatch.setattr(DataObject, "__init__", refuse)
    found = pool.at().summary()
    assert (found.records, found.version, found.why) == (table.num_rows, pool.at().version, "")
    for name in table.schema.names:
        bounds = pc.min_max(table[name]).as_py()
        assert found.fields[name] == FieldSummary(table[name].null_count, bounds["min"], bounds["max"]), name


def test_what_the_statistics_do_not_hold_exactly_is_not_known() -> None:
    pool = a_pool(
        pa.table(
            {
                "k": [1, 2],
                "x": [1.5, math.nan],
                "long": ["a" * 100, "b" * 100],
                "high": [b"\xff" * 100, b"\xff" * 61],
                "list": [[1], [2]],
                "none": pa.nulls(2),
            }
        )
    )
    assert pool.at().summary().fields == {
        "k": FieldSummary(0, 1, 2),
        "x": FieldSummary(0, 1.5, None),
        "long": FieldSummary(0),
        "high": FieldSummary(0, b"\xff" * 61, None),
        "list": FieldSummary(0),
        "none": FieldSummary(2),
    }
    assert a_pool().at().summary().records == 0


def test_a_delete_that_is_open_leaves_no_figures_and_its_application_brings_them_back() -> None:
    pool = a_pool(pa.table({"k": [1, 2, 3]}))
    pool.branch().delete(where="k = 2")
    found = pool.at().summary()
    assert (found.records, found.at_most, found.fields) == (None, 3, {})
    assert found.why == "1 delete may still hide records (lake tombstones removes them)"
    compact_all(pool)
    assert pool.at().summary().records == 2


@pytest.mark.parametrize("kind", ["upsert", "aggregate"])
def test_pools_that_combine_records_have_figures_until_objects_share_a_key(kind: str) -> None:
    pool = a_pool(pa.table({"k": [1, 1], "v": [1, 2]}), kind=kind)
    found = pool.at().summary()
    assert (found.records, found.fields["k"], found.why) == (1, FieldSummary(0, 1, 1), "")
    pool.branch().append(pa.table({"k": [1], "v": [3]}))
    found = pool.at().summary()
    why = f"records of equal keys are combined ({kind})"
    assert (found.records, found.at_most, found.fields, found.why) == (None, 2, {}, why)
    assert pool.at().summary(read=True).records == 1


def test_records_that_a_delete_hides_whole_do_not_count() -> None:
    pool = a_pool(pa.table({"k": [1, 2, 3]}))
    pool.branch().delete(key_range=pool.at().key_range(low=0))
    pool.branch().append(pa.table({"k": [7]}))
    assert pool.at().summary().fields == {"k": FieldSummary(0, 7, 7)}
    assert pool.at().summary().records == 1


def test_to_read_means_only_the_objects_of_which_the_state_does_not_tell() -> None:
    pool = a_pool(pa.table({"k": [1, 2, 3], "s": ["a" * 100, "b", None]}), pa.table({"k": [7], "s": ["c"]}))
    pool.branch().delete(where="k = 3")
    found = pool.at().summary(read=True)
    assert (found.records, found.why) == (3, "")
    assert found.fields == {"k": FieldSummary(0, 1, 7), "s": FieldSummary(0, "a" * 100, "c")}
