"""The requests for one range of a large pool on S3: they follow the range, not the pool."""

from __future__ import annotations

import time
from functools import partial

import pyarrow as pa
import pytest

from benchmarks.requests import BUCKET, Counted, Counter, counting, s3_client
from lake_core.history import Draft
from lake_core.keys.encoding import encode_value
from lake_core.records import AddObject
from lake_core.schemas.schema import schema_id
from log_lake.agents.checkpoint.run import write_checkpoint
from log_lake.lake import Lake

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64())])
WIDE = 1_000_000
"""Keys of a range."""
OBJECTS = 8
"""Objects in the ranges that are read; the others of the pool are only in its state."""


def counted(proxy: Counter, *, references: int) -> list[Counted]:
    """What the reads of one range, and of two, ask for in a pool of so many references."""
    uri, options = f"s3://{BUCKET}/lake-{references}", s3_client(proxy.url)
    lake = Lake.create(uri, options=options)
    pool = lake.create_pool("p", key="k")
    for number in range(2 * OBJECTS):
        keys = range(number * WIDE // OBJECTS, number * WIDE // OBJECTS + 10)
        pool.branch().append(pa.table({"k": keys, "v": keys}, schema=SCHEMA))
    each = (encode_value(n * 1_000) for n in range(2 * WIDE // 1_000, 2 * WIDE // 1_000 + references))
    absent = tuple(
        AddObject(lake.context.ids.new(), 10, 1 << 20, schema_id(SCHEMA), low, low + b"\0", ordinal=number)
        for number, low in enumerate(each)
    )
    pool.history.commit(Draft(lake.context.ids.new(), "main", 0, "test", absent, (SCHEMA,)))
    pool.split(at=[WIDE * number for number in range(1, 12)])
    write_checkpoint(lake, "p", now=time.time())

    def read(ranges: int) -> None:
        view = Lake.open(uri, options=options).pool("p").at()
        assert (
            view.to_table(key_range=view.key_range(low=0, high=ranges * WIDE)).num_rows
            == 10 * ranges * OBJECTS
        )

    return [proxy.count(f"{ranges} of 12 ranges", partial(read, ranges)) for ranges in (1, 2)]


def test_requests_for_a_range_do_not_grow_with_the_pool() -> None:
    with counting() as proxy:
        small, large = (counted(proxy, references=references) for references in (60_000, 120_000))
    opening = 8  # the lake, its pools, the journal; three for the checkpoint's end and the group of the range
    expected = [(opening + ranges * OBJECTS, 2, 0) for ranges in (1, 2)]
    assert [(one.requests, one.lists, one.writes) for one in small] == expected, small
    assert [(one.requests, one.lists, one.writes) for one in large] == expected, large
    assert all(one.bytes <= 500_000 for one in (*small, *large)), (small, large)
