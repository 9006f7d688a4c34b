"""`lake load --bulk`: the objects share no key and cross no split point, however small the load is."""

from __future__ import annotations

from itertools import pairwise

import pytest

from log_lake.lake import Lake
from log_lake.lake.view import View
from tests.support.command import Command


def view_of(lake: Command, pool: str = "p") -> View:
    return Lake.open(lake.uri).pool(pool).at()


def records(*keys: int) -> str:
    return "".join(f'{{"k":{key},"n":{place}}}\n' for place, key in enumerate(keys))


@pytest.mark.parametrize("sort", ["run", "parts"])
def test_a_small_bulk_load_is_cut_at_the_split_points(lake: Command, sort: str) -> None:
    lake.pool("p", load_sort=sort)
    file = lake.file("a.ndjson", records(5, 1, 9, 3, 7, 5))
    assert lake.load("p", file)["objects"] == 1
    lake("split", "p", "--at", "3", "--at", "7", "--at", "20")
    assert lake.load("p", file, "--bulk")["objects"] == 3
    assert lake.load("p", file)["objects"] == 1, "an ordinary load need not obey the points"
    held = sorted((r for r in view_of(lake).references if r.seq == 3 << 16), key=lambda r: r.low)
    assert [r.records for r in held] == [1, 3, 2]
    assert all(one.high <= other.low for one, other in pairwise(held))
    assert [r["n"] for r in lake.scan("p") if r["k"] == 5] == [0, 5] * 3


def test_a_bulk_load_is_one_run_though_the_pool_keeps_parts(lake: Command) -> None:
    lake.pool("p", load_memory="1kB", load_sort="parts")
    files = [lake.file(f"{n}.ndjson", records(*range(n, 400, 4))) for n in range(4)]
    assert lake.load("p", *files, "--bulk", "--token", "t")["objects"] == 1
    assert lake.load("p", *files, "--bulk", "--token", "t")["version"] == 1
    assert [r["k"] for r in lake.scan("p")] == list(range(400))


def test_bad_records_and_those_without_the_key_go_where_a_load_puts_them(lake: Command) -> None:
    lake.pool("p", types={"k": "bigint"}, bad_records="quarantine")
    lake("split", "p", "--at", "2")
    done = lake.load("p", lake.file("a.ndjson", '{"k":1}\n{"n":2}\n{"k":\n{"k":3}\n'), "--bulk")
    assert (done["records"], done["nokey"], done["rejected"]) == (2, 1, 1)
    assert len(view_of(lake).references) == 2
