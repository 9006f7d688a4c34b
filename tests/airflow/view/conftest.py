"""A real API server that shows lakes with all kinds of pools, with a thousand pools, with hostile texts."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from lake_core.errors import Unavailable
from log_lake.agents.jobs import recorded
from log_lake.lake import Lake
from log_lake.rewriting.compaction import compact
from log_lake.texts.keytext import RangeText
from tests.airflow.view.pages import WITHIN_MS, Open
from tests.support.repository import ROOT
from tests.support.servers.airflow_api import ApiServer, api_server
from tests.support.servers.auth_by_dag import BLIND, COMPACTOR
from tests.support.servers.chromium import chromium, watched

SHOWN, MANY, HOSTILE, LATER = "lake_shown", "lake_many", "lake_hostile", "lake_later"
READ = "lake_read"
"""As `SHOWN`, for the tests of the catalog: to publish a pool is a transaction, and the pages count those."""
HOSTILE_POOL = "<script>document.title=`owned`;<img-src=x>&amp;"
"""A name that a pool may have: as HTML it would be a script."""
PAYLOAD = "</script><img src=x onerror=\"document.title='owned'\"><svg onload=alert(1)>"
POOLS = 1_000


@dataclass(frozen=True)
class Shown:
    """The server, and the lakes behind it."""

    server: ApiServer
    lake: Lake
    many: Lake
    read: Lake


def fill(lake: Lake) -> None:
    """Pools with loads, deletes, a compaction, a branch, a tag and a sub-pool."""
    pool = lake.create_pool("flights", key="k")
    for start in range(0, 600, 50):
        pool.branch().append(
            pa.table({"k": list(range(start, start + 140)), "carrier": ["AA", "UA"] * 70}), message="load"
        )
    compact(pool.branch(), pool.at().references[:4], message="compaction")
    pool.branch().delete(key_range=RangeText(low="200", high="260"))
    pool.branch().delete(where="carrier = 'AA' and k >= 400 and k < 500")
    pool.create_branch("dev")
    pool.branch("dev").append(pa.table({"k": [700, 720], "carrier": ["DL", "DL"]}), message="on dev")
    pool.branch().append(pa.table({"k": [610, 690], "carrier": ["UA", "UA"]}), message="load")
    pool.branch().merge("dev")
    pool.tag("monthly", reason="report")
    pool.branch().append(pa.table({"other": ["no key"]}))  # version 21
    orders = lake.create_pool("orders", key="id", kind="upsert")
    for number in range(9):
        orders.branch().append(
            pa.table({"id": list(range(number, 900, 3)), "state": ["paid"] * len(range(number, 900, 3))})
        )
    clicks = lake.create_pool("clicks", key="ts")
    clicks.branch().append(pa.table({"ts": list(range(50_000))}), message="load")
    lake.create_pool("empty", key="k")
    in_run = Lake.open(lake.store.uri, metadata={"dag": "lake_compact", "run": "manual__1", "task": "run"})
    with recorded(in_run, agent="compact", pool_name="flights") as result:
        result |= {"jobs": 1, "inputs": 4, "size_in": 1_234_567}
    with contextlib.suppress(Unavailable), recorded(lake, agent="ingest", pool_name="orders"):
        raise Unavailable("the store does not answer")


def fill_hostile(lake: Lake) -> None:
    """A pool whose texts would be scripts if the page took them for HTML."""
    pool = lake.create_pool(HOSTILE_POOL, key="k")
    pool.branch().append(pa.table({"k": [PAYLOAD, "b"]}), message=PAYLOAD)
    pool.branch().delete(where="k = 'b'", reason=PAYLOAD)
    with contextlib.suppress(Unavailable), recorded(lake, agent="ingest", pool_name=HOSTILE_POOL):
        raise Unavailable(PAYLOAD)


def quick_start_dag() -> str:
    """The DAGs of docs/airflow-quickstart.md."""
    page = (ROOT / "docs/airflow-quickstart.md").read_text()
    (dag,) = re.findall(r"^ *```python\n(.*?)^ *```", page, re.MULTILINE | re.DOTALL)
    return textwrap.dedent(dag)


@pytest.fixture(scope="session")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    folder = tmp_path_factory.mktemp("view")
    lake = Lake.create(str(folder / "lake"), author="ada")
    hostile = Lake.create(str(folder / "hostile"), author=PAYLOAD)
    fill_hostile(hostile)
    fill(lake)
    read = Lake.create(str(folder / "read"), author="ada")
    fill(read)
    many = Lake.create(str(folder / "many"))
    for number in range(POOLS):
        many.create_pool(f"pool-{number:04d}", key="k").branch().append(pa.table({"k": [number]}))
    connections = {
        f"AIRFLOW_CONN_{name.upper()}": json.dumps({"conn_type": "lake", "host": one.store.uri})
        for name, one in ((SHOWN, lake), (MANY, many), (HOSTILE, hostile), (READ, read))
    }
    dags = shutil.copytree(ROOT / "dags", folder / "dags", ignore=shutil.ignore_patterns("__pycache__"))
    (dags / "logs.py").write_text(quick_start_dag())
    environ = {
        **connections,
        "LAKE_VIEW_LAKES": " ".join((SHOWN, MANY, HOSTILE, LATER, READ)),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__AUTH_MANAGER": "tests.support.servers.auth_by_dag.ByDag",
    }
    with api_server(folder, environ=environ, users={COMPACTOR: "user", BLIND: "user"}) as server:
        yield Shown(server, lake, many, read)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """For the tests of one file: while it runs, no other test can run an event loop of its own."""
    with chromium() as browser:
        yield browser


@pytest.fixture
def open_page(shown: Shown, browser: Any) -> Iterator[Open]:
    """Opens the view as a user of a role; no page may complain, and no text may run as a script."""
    with watched(browser, within_ms=WITHIN_MS) as new_page:

        def open_page(hash: str = "", *, role: str = "viewer", path: str = "/lake/", **how: Any) -> Any:
            page = new_page(viewport={"width": 1280, "height": 800}, **how)
            cookie = {"name": "_token", "value": shown.server.token(role), "url": shown.server.url}
            page.context.add_cookies([cookie])
            page.goto(f"{shown.server.url}{path}{hash and '#' + hash}")
            return page

        yield open_page
