"""Queries and loads of `lake serve` by real clients: the page's lines of curl, and 200 clients at once."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import duckdb
import polars as pl
import pyarrow as pa
import pytest

from log_lake.lake import Lake
from tests.support.repository import ROOT
from tests.support.served_catalog import ServedCatalog, serving_catalog

TOKENS = {role: f"{role}-0123456789abc" for role in ("reader", "writer", "keeper")}
CLIENTS = 200
MOST_MORE = 300 << 20
"""Bytes of memory that 200 clients may cost more than one; they were 110 MB, a third of them of DuckDB's caches."""


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    lake = Lake.create(str(tmp_path_factory.mktemp("service") / "lake"))
    big = lake.create_pool("big", key="k")
    big.branch().append(pa.table({"k": range(20_000), "s": [f"text {k}" for k in range(20_000)]}))
    return lake


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scratch")


@pytest.fixture(scope="module")
def served(there: Lake, scratch: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedCatalog]:
    tokens = tmp_path_factory.mktemp("tokens") / "tokens"
    tokens.write_text("".join(f"{role} {role} {token}\n" for role, token in TOKENS.items()))
    with serving_catalog(there.store.uri, "--token-file", str(tokens), TMPDIR=str(scratch)) as served:
        yield served


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_the_lines_of_the_page(served: ServedCatalog, there: Lake, tmp_path: Path) -> None:
    page = (ROOT / "docs/service.md").read_text()
    (script,) = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    assert len(script.strip().splitlines()) == 10
    (tmp_path / "logs.ndjson").write_text('{"ts": 1, "level": "info"}\n{"ts": 2, "level": "debug"}\n')
    (tmp_path / "late.csv").write_text("ts,level\n0,info\n")
    environ = {"TOKEN": TOKENS["keeper"], "LAKE": f"{served.address}/lakes/lake", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        ["sh", "-e"],
        input=script,
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count('"repeated":true') == 1
    assert '{"level":"info","n":2}' in done.stdout
    assert '"verb":"deleted"' in done.stdout
    assert '{"name":"logs","key":"ts"}' in done.stdout
    rows = [{"ts": 0, "level": "info"}, {"ts": 1, "level": "info"}, {"ts": 2, "level": "debug"}]
    with duckdb.connect() as connection:
        csv = connection.sql(f"FROM '{tmp_path}/logs.csv' ORDER BY ts").to_arrow_table()
    assert csv.select(["ts", "level"]).to_pylist() == rows
    arrow = pl.read_ipc_stream(tmp_path / "logs.arrows").select("ts", "level").sort("ts")
    assert arrow.to_dicts() == rows
    assert there.pool("logs").at().to_table().num_rows == 2


def memory_of(served: ServedCatalog) -> int:
    """The most memory that the server has had, in bytes."""
    status = Path(f"/proc/{served.process.pid}/status").read_text()
    return int(re.findall(r"VmHWM:\s*(\d+) kB", status)[0]) << 10


async def asked(session: aiohttp.ClientSession, address: str, number: int) -> int:
    """What one client of many gets: a count, all records, or its load."""
    if number % 10 == 9:
        url, body, role = f"{address}/pools/many/load?token=t{number}", f'{{"k": {number}}}\n', "writer"
    else:
        sql = ("SELECT count(*) AS n FROM big", "SELECT * FROM big")[number % 2]
        url, body, role = f"{address}/query", sql, "reader"
    headers = {"Authorization": f"Bearer {TOKENS[role]}", "Content-Type": "text/plain"}
    async with session.post(url, data=body, headers=headers) as response:
        answer = await response.read()
        assert response.status == 200, answer
    return answer.count(b"\n")


def test_of_many_clients_at_once_none_is_lost_and_memory_is_bounded(
    served: ServedCatalog, there: Lake, scratch: Path
) -> None:
    there.create_pool("many", key="k")
    address = f"{served.address}/lakes/lake"

    async def work() -> list[int]:
        timeout = aiohttp.ClientTimeout(total=300)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout) as session:
            for number in (0, 1, 9):  # each kind alone
                await asked(session, address, number)
            before = memory_of(served)
            got = await asyncio.gather(*(asked(session, address, number) for number in range(CLIENTS)))
            if sys.platform == "linux":
                assert memory_of(served) - before < MOST_MORE
            return got

    got = asyncio.run(work())
    assert got == [1 if number % 10 == 9 or number % 2 == 0 else 20_000 for number in range(CLIENTS)]
    assert sorted(there.pool("many").at().to_table()["k"].to_pylist()) == list(range(9, CLIENTS, 10))
    assert [
        path.name for path in scratch.iterdir() if path.name.startswith(("lake-body", "lake-answer"))
    ] == []
