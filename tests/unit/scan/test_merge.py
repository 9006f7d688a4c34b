"""Merging streams: how many turns it takes, and what is open at once; the order itself is a property test."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from lake_core.keys import PoolKey
from lake_core.keys.columns import key_at
from lake_core.scan.merge import Stream, merge

KEY = PoolKey.parse("k")


def stream(*keys: int, seq: int, opened: list[int] | None = None) -> Stream:
    """One batch of records, that say their sequence."""
    table = pa.table({"k": list(keys), "seq": [seq] * len(keys)})

    def batches() -> Iterator[pa.Table]:
        if opened is not None:
            opened.append(seq)
        yield table

    return Stream(key_at(table, 0, KEY), seq, 0, batches)


def test_streams_that_begin_at_one_key_are_merged_in_one_turn() -> None:
    """In a turn each, the work would grow as the square of their number: minutes for thousands of small loads."""
    windows = list(merge([stream(1, 2, 3, seq=n) for n in range(100)], key=KEY))
    assert [window.num_rows for window in windows] == [300]
    assert windows[0]["k"].to_pylist() == [1] * 100 + [2] * 100 + [3] * 100
    assert windows[0]["seq"].to_pylist() == [*range(100)] * 3


def test_a_stream_is_opened_when_the_merge_reaches_it() -> None:
    opened: list[int] = []
    found = merge([stream(1, 5, seq=1, opened=opened), stream(5, 9, seq=2, opened=opened)], key=KEY)
    assert next(found)["k"].to_pylist() == [1, 5]
    assert opened == [1]
    assert next(found)["k"].to_pylist() == [5, 9]
    assert opened == [1, 2]
