"""The bytes of a bucket, and the buckets of values: what an older program divided is left out rightly."""

from __future__ import annotations

import datetime as dt

import msgspec
import pyarrow as pa
import pytest

from lake_core.records.column import Bucket, Column
from log_lake.indexes.cluster import buckets_of
from log_lake.indexes.cluster_rule import ClusterRule

STATED = "83a46e616d65a377686fa56e756c6c7302a66275636b657483a26f6610a66e756d62657203a47061746891a26964"


def test_the_bytes_of_statistics_with_a_bucket() -> None:
    column = Column("who", 2, bucket=Bucket(16, 3, ("id",)))
    assert msgspec.msgpack.encode(column).hex() == STATED


@pytest.mark.parametrize(
    ("values", "buckets"),
    [
        (pa.array([1, 2, 3, None]), [88, 122, 217, 0]),
        (pa.array(["UA1545", "", "é"]), [75, 245, 78]),
        (pa.array([0.5, float("nan")]), [243, 115]),
        (pa.array([dt.date(2026, 1, 31)]), [177]),
        (pa.array([True, False]), [189, 114]),
    ],
)
def test_the_buckets_of_values(values: pa.Array, buckets: list[int]) -> None:
    found = buckets_of(pa.table({"f": values}), ClusterRule("f", 256))
    assert found is not None
    assert found.tolist() == buckets
