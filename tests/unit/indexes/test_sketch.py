"""A sketch keeps what it promises: exact small counts, a bounded error of large ones, and a sure bound of ranks."""

from __future__ import annotations

import datetime as dt
import decimal
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake_core.errors import Corrupt
from lake_core.keys.encoding import decode_value, encode_value
from log_lake.indexes.gathering import SketchedValues
from log_lake.indexes.sketch import (
    DISTINCT_ERROR,
    EXACT,
    RUNS,
    RankedRuns,
    Sketch,
    decoded_sketch,
    encoded_sketch,
    united,
    united_ranks,
)


def sketch_of(values: Any, kind: pa.DataType | None = None, *, step: int = 10_000) -> Sketch:
    """The sketch of these values, which come in tables of `step` records."""
    column = values if isinstance(values, pa.Array) else pa.array(values, kind)
    gathered = SketchedValues(("v",), pa.field("v", column.type))
    for start in range(0, max(1, len(column)), step):
        table = pa.table({"v": column.slice(start, step)})
        gathered.add(table, [table.num_rows])
    return decoded_sketch(encoded_sketch(gathered.sketch()))


def worst(sketch: Sketch, values: np.ndarray[Any, Any]) -> float:
    """How far the ranks of some quantiles are from the wanted ones, as a share of all."""
    ordered, far = np.sort(values), 0.0
    for share in (0.001, 0.01, 0.1, 0.25, 0.5, 0.9, 0.99, 0.999):
        bound = sketch.quantile(share)
        assert bound is not None
        low, high = (np.searchsorted(ordered, decode_value(bound), side) for side in ("left", "right"))
        wanted = np.ceil(share * len(ordered))
        far = max(far, low + 1 - wanted, wanted - high)
    return far / len(ordered)


@pytest.mark.parametrize("count", [0, 1, EXACT, EXACT + 1, 5_000, 300_000])
def test_distinct_values_are_counted(count: int) -> None:
    sketch = sketch_of([f"v{number}" for number in range(count)] * 2, pa.string())
    if count <= EXACT:
        assert (sketch.distinct, sketch.is_exact) == (count, True)
    else:
        assert not sketch.is_exact
        assert abs(sketch.distinct - count) < 4 * DISTINCT_ERROR * count
    assert sketch.quantile(0.5) is None


def test_the_error_of_counts_is_what_a_sketch_says() -> None:
    errors = []
    for seed in range(40):
        count = 3_000 * (1 + seed)
        numbers = np.random.default_rng(seed).integers(0, 2**63, count)
        errors.append(sketch_of(numbers).distinct / count - 1)
    assert abs(np.mean(errors)) < DISTINCT_ERROR / 2
    assert np.std(errors) < 1.5 * DISTINCT_ERROR


@pytest.mark.parametrize("seed", range(4))
def test_ranks_are_within_their_bound(seed: int) -> None:
    chance = np.random.default_rng(seed)
    parts = [
        chance.normal(size=30_000),
        np.sort(chance.integers(0, 50, 20_000)).astype(float),
        chance.exponential(size=7) * 100,
        np.zeros(1_000),
    ][: seed + 1]
    whole = united([sketch_of(part) for part in parts])
    values = np.concatenate(parts)
    assert 0 < whole.rank_error <= 1 / 2 / RUNS * 1.2
    assert worst(whole, values) <= whole.rank_error
    assert (decode_value(whole.low), decode_value(whole.high)) == (values.min(), values.max())


def test_few_values_have_exact_quantiles() -> None:
    values = np.arange(RUNS) ** 2
    sketch = sketch_of(values)
    assert sketch.rank_error == 0
    assert [decode_value(sketch.quantile(q) or b"") for q in (0, 0.25, 0.5, 1)] == [
        0,
        63**2,
        127**2,
        255**2,
    ]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=60), min_size=1, max_size=5),
    st.integers(1, 12),
)
def test_united_ranks_keep_their_bound(parts: list[list[int]], most: int) -> None:
    ranks = [
        united_ranks([RankedRuns(tuple(encode_value(v) for v in sorted(part)), (1,) * len(part))], most=most)
        for part in parts
    ]
    whole, ordered = united_ranks(ranks, most=most), sorted(v for part in parts for v in part)
    assert sum(whole.lengths) == len(ordered)
    assert len(whole.values) <= most + 2
    for x in range(-1, 42):
        true = sum(v <= x for v in ordered)
        known = sum(n for v, n in zip(whole.values, whole.lengths, strict=True) if v <= encode_value(x))
        assert true - whole.off <= known <= true


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([3, None, 1, 2], pa.int8()),
        ([decimal.Decimal("1.50"), None, decimal.Decimal("-2.25")], pa.decimal128(9, 2)),
        ([dt.date(2026, 1, 31), dt.date(1969, 1, 1), None], pa.date32()),
        ([1, 5, None], pa.timestamp("ns", "UTC")),
        ([1.5, float("nan"), -0.5, None], pa.float32()),
        ([7, None, 5], pa.duration("s")),
        ([7, None, 5], pa.time64("us")),
        ([None, None], pa.float64()),
    ],
)
def test_types_with_quantiles(values: list[Any], kind: pa.DataType) -> None:
    sketch = sketch_of(values, kind)
    given = len(values) - values.count(None)
    assert (sketch.records, sketch.nulls, sum(sketch.lengths)) == (len(values), values.count(None), given)
    assert sketch.distinct == given
    assert list(sketch.values) == sorted(sketch.values)
    assert bool(sketch.low) == bool(given)


def test_bytes_that_are_no_sketch_are_corrupt() -> None:
    data, chance = encoded_sketch(sketch_of(np.arange(5_000))), random.Random(3)
    for _ in range(300):
        bad = bytearray(data[: chance.randrange(len(data))] if chance.random() < 0.3 else data)
        if bad:
            bad[chance.randrange(len(bad))] ^= 1 << chance.randrange(8)
        try:
            decoded_sketch(bytes(bad))
        except Corrupt:
            continue


def test_no_sketch_at_all_is_one_of_nothing() -> None:
    nothing = united([])
    assert (nothing.records, nothing.distinct, nothing.rank_error, nothing.quantile(0.5)) == (0, 0, 0, None)
