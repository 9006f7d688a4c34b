"""Hypothesis strategies for values of every type that objects store."""

from __future__ import annotations

import decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from lake_core.keys.encoding import Instant
from log_lake.texts.fit import array_of

NUMBERS = st.integers(-(2**63), 2**63 - 1)
DOUBLES = st.floats(width=64)
STRINGS = st.sampled_from(["1.1", "1.10", "true", "null", "1e5", "[1]", '"', "", " 1", "NaN", "é\0", "x'00'"])
STRINGS = STRINGS | st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
SECONDS = st.integers(-62_135_596_800, 253_402_300_799)
NANOS = st.sampled_from([0, 1, 123_456_789, 123_456_000, 999_999_999]) | st.integers(0, 999_999_999)
DATES = st.dates()


def instants(tag: int, step: int, seconds: st.SearchStrategy[int] = SECONDS) -> st.SearchStrategy[Instant]:
    return st.builds(lambda s, n: Instant((tag, s, n - n % step)), seconds, NANOS)


def decimals(precision: int, scale: int) -> st.SearchStrategy[decimal.Decimal]:
    largest = 10**precision - 1
    with decimal.localcontext(prec=60):
        return st.integers(-largest, largest).map(
            lambda i: decimal.Decimal(i).scaleb(-scale, decimal.Context(prec=60))
        )


NEAR = st.integers(-9_000_000_000, 9_000_000_000)
TYPES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.bool_(), st.booleans()),
    (pa.int64(), NUMBERS),
    (pa.uint64(), st.integers(0, 2**64 - 1)),
    (pa.int8(), st.integers(-128, 127)),
    (pa.float64(), DOUBLES),
    (pa.float32(), st.floats(width=32)),
    (pa.string(), STRINGS),
    (pa.binary(), st.binary(max_size=5)),
    (pa.date32(), DATES),
    (pa.timestamp("ms"), instants(0x08, 10**6)),
    (pa.timestamp("us", "UTC"), instants(0x09, 10**3)),
    (pa.timestamp("ns"), instants(0x08, 1, NEAR)),
    (pa.timestamp("ns", "UTC"), instants(0x09, 1, NEAR)),
    (pa.time64("ns"), instants(0x0A, 1, st.integers(0, 86_399))),
    (pa.time32("ms"), instants(0x0A, 10**6, st.integers(0, 86_399))),
    (pa.duration("ns"), instants(0x0B, 1, NEAR)),
    (pa.decimal128(9, 2), decimals(9, 2)),
    (pa.decimal128(38, 10), decimals(38, 10)),
]


@st.composite
def columns(draw: st.DrawFn, kinds: list[tuple[pa.DataType, Any]] = TYPES) -> pa.Array:
    kind, values = draw(st.sampled_from(kinds))
    return array_of(draw(st.lists(values, min_size=1, max_size=4)), kind)
