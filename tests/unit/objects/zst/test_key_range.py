"""The positions of values in a range of a field, from the segments of that field alone."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from log_lake.zng.zst.key_range import positions
from tests.support.zng_files import opened, rows_of_text, zst_of

TEXT = """{ts:2026-01-01T00:00:00Z,id:{p:1},n:1}
{ts:2026-01-02T00:00:00Z,id:{p:2},n:"two"}
{other:1}
{ts:2026-01-03T00:00:00Z,id:{p:3},n:3}
{ts:2026-01-04T00:00:00Z,id:{p:null(int64)},n:null(int64)}
{ts:2026-01-05T00:00:00Z,id:{p:2},n:5}
"""


def day(number: int) -> dt.datetime:
    return dt.datetime(2026, 1, number, tzinfo=dt.UTC)


@pytest.mark.parametrize("segment_bytes", [1, 5_000_000])
@pytest.mark.parametrize(
    ("field", "low", "high", "runs"),
    [
        ("ts", day(2), day(5), [(1, 2), (3, 5)]),
        ("ts", day(3), None, [(3, 6)]),
        ("ts", None, day(2), [(0, 1)]),
        ("ts", None, None, [(0, 2), (3, 6)]),
        ("ts", day(6), None, []),
        ("id.p", 2, 3, [(1, 2), (5, 6)]),
        (("id", "p"), 2, None, [(1, 2), (3, 4), (5, 6)]),
        ("n", 2, None, [(3, 4), (5, 6)]),
        ("n", "a", "z", [(1, 2)]),
        ("none", 1, 2, []),
        ("ts.none", 1, 2, []),
    ],
)
def test_the_runs_of_a_range(
    field: Any, low: Any, high: Any, runs: list[tuple[int, int]], segment_bytes: int
) -> None:
    file = opened(zst_of(rows_of_text(TEXT), segment_bytes=segment_bytes))
    assert list(positions(file, field, low=low, high=high)) == runs


def test_a_sorted_file_has_one_run_also_over_many_batches() -> None:
    count = 70_000  # more than a batch
    file = opened(zst_of(rows_of_text("".join(f"{{k:{n}}}\n" for n in range(count)))))
    ((first, last),) = positions(file, "k", low=10, high=pa.scalar(count - 3))
    assert (first, last) == (10, count - 3)
    assert sum(len(batch) for batch in file.batches(start=first, stop=last)) == count - 13
