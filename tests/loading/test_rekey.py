"""`lake rekey`: a new pool with another key and the same records, or nothing."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from lake_core.errors import AlreadyExists, InvalidInput
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.lake.rekey import rekey
from log_lake.workers import Here, Workers
from tests.support.workers import Shuffling

RECORDS = [{"k": n, "city": f"c{n * 7 % 13}", "n": n % 5, "x": {"y": [n]}} for n in range(300)]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.create(str(tmp_path / "lake"))


def filled(lake: Lake, *, kind: str = "append", **settings: str) -> Pool:
    import pyarrow as pa

    pool = lake.create_pool("old", key="k", kind=kind, settings=settings)
    for begin in range(0, 300, 100):
        pool.branch().append(pa.Table.from_pylist(RECORDS[begin : begin + 100]))
    pool.branch().append(pa.Table.from_pylist([{"k": None, "city": "c1", "n": -1, "x": None}]))
    pool.branch().delete(where="n = 4")
    return pool


def rows(pool: Pool) -> list[dict[str, Any]]:
    return list(pool.at().to_table().to_pylist())


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("format", ["parquet", "zng", "zst"])
def test_the_new_pool_has_the_readable_records_in_its_order(lake: Lake, format: str, many: bool) -> None:
    old = filled(lake, format=format)
    workers: Workers = Here.of(lake.context)
    if many:
        workers = Shuffling(Here.of(lake.context).worker)
    done = rekey(lake, "old", "new", key="city:desc,k", workers=workers, ranges=3 if many else None)
    new = lake.pool("new")
    assert (done.version, done.result.records) == (5, 241)
    expected = [*rows(old), {"k": None, "city": "c1", "n": -1, "x": None}]
    expected.sort(key=lambda row: -1 if row["k"] is None else row["k"])
    expected.sort(key=lambda row: row["city"], reverse=True)
    assert rows(new) == expected
    held = sorted(new.at().references, key=lambda r: r.low)
    if format == "parquet":  # otherwise the record of $nokey, which has no types of its own, is a run beside
        assert all(one.high <= other.low for one, other in pairwise(held))
    assert len(new.at().points) == (2 if many else 0)
    assert new.settings["format"] == format
    assert sum(transaction.branch == "main" for _, transaction in new.log()) == 1


def test_what_cannot_be_is_refused_and_no_pool_is_listed(lake: Lake) -> None:
    filled(lake, kind="upsert")
    lake.create_pool("sums", key="k", kind="aggregate", aggregates={"n": "sum"})
    for name, key, kind, why in (
        ("old", "nowhere", None, "no record has the key field 'nowhere'"),
        ("old", "city", None, "the new key of another one"),
        ("sums", "n", None, "combined once more"),
        ("old.$nokey", "k", None, "without a sub-pool"),
    ):
        with pytest.raises(InvalidInput, match=why):
            rekey(lake, name, "new", key=key, kind=kind)
    with pytest.raises(AlreadyExists):
        rekey(lake, "old", "sums", key="city")
    assert [pool.name for pool in lake.pools()] == ["old", "sums"]
    assert rekey(lake, "old", "new", key="city", kind="append").result.records == 241
