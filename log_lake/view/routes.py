"""The requests that the page makes: files of the page, and what it shows as JSON.

All of them only read. An address names a lake, a pool, a branch or a version, and no value of a record
(`bodies`). The server sets what every request needs, in Airflow a login and the right to see assets. This is
set for the whole app and not for each route, so that no route can be forgotten.  Errors of the lake are answers
with one line, which the page shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import Any

import msgspec
from fastapi import FastAPI, Query
from fastapi.params import Depends
from fastapi.requests import Request
from fastapi.responses import Response

from lake_core.errors import Corrupt, InvalidInput, LakeError, NotFound
from lake_core.naming import MAIN
from log_lake.agents.jobs import list_jobs
from log_lake.lake import Lake
from log_lake.lake.open_transactions import transactions
from log_lake.lake.pool import Pool
from log_lake.view.bodies import JSON
from log_lake.view.coverage import coverage_page
from log_lake.view.graph import Graph, graph
from log_lake.view.lakes import Lakes, ShownLake
from log_lake.view.pool_page import pool_page
from log_lake.view.sample import sample_of
from log_lake.view.work import LakeThreads

SCRIPTS = (
    "main",
    "dom",
    "pools",
    "health",
    "pool",
    "coverage",
    "geometry",
    "log",
    "jobs",
    "transactions",
    "agents",
    "ask",
)
FILES = {
    "view.css": "text/css",
    "icon.svg": "image/svg+xml",
    **{f"{name}.js": "text/javascript" for name in SCRIPTS},
}
"""The files of the page, by name, with their types. No other file is served."""
MAX_LOG = 200
"""The most versions in one answer of the log."""
MAX_JOBS = 200
"""The most jobs in one answer, the newest."""
MAX_TRANSACTIONS = 100
"""The most transactions over several pools in one answer, the newest; each takes some requests."""


class LakeApp(FastAPI):
    """The app: the routes that every server has, over these lakes.

    `server` tells the page what serves it: "airflow", or "" for a server that starts no agents.
    """

    def __init__(self, lakes: Lakes, *, server: str = "", dependencies: Sequence[Depends] = ()) -> None:
        super().__init__(
            title="Lake",
            dependencies=list(dependencies),
            docs_url=None,
            redoc_url=None,
            openapi_url=None,
            redirect_slashes=False,  # a redirect would not know the prefix, such as the token of lake ui
        )
        self.lakes = lakes
        self.work = LakeThreads()
        # a lake that hangs holds no other back
        self._works = {choice.key: LakeThreads() for choice in lakes.choices}
        self.add_exception_handler(LakeError, self._error)
        contents = {name: _file(name) for name in ("index.html", *FILES)}

        async def page() -> Response:
            return Response(contents["index.html"], media_type="text/html")

        async def static(name: str) -> Response:
            if name not in FILES:
                raise NotFound(f"no file {name!r}")
            return Response(contents[name], media_type=FILES[name])

        async def about() -> Response:
            return answer({"server": server, "lakes": lakes.choices})

        self.get("/")(page)
        self.get("/static/{name}")(static)
        self.get("/data/about")(about)
        self.get("/data/pools")(self._pools)
        self.get("/data/health")(self._health)
        self.get("/data/pool")(self._pool)
        self.get("/data/coverage")(self._coverage)
        self.get("/data/records")(self._records)
        self.get("/data/geometry")(self._geometry)
        self.get("/data/log")(self._log)
        self.get("/data/jobs")(self._jobs)
        self.get("/data/transactions")(self._transactions)

    async def read(self, lake: str, call: Callable[[Lake, ShownLake], Any]) -> Response:
        """Calls `call` with the lake of this key and its caches, and returns the result as an answer of JSON."""
        threads = self._works.get(lake, self.work)
        return Response(await threads.run(lambda: encoded(call(*self.lakes.shown(lake)))), media_type=JSON)

    async def _pools(self, lake: str) -> Response:
        return await self.read(lake, lambda opened, shown: shown.overview.table(opened))

    async def _health(self, lake: str) -> Response:
        return await self.read(lake, lambda opened, shown: shown.verdicts.shown(opened))

    async def _pool(self, lake: str, pool: str, branch: str = MAIN) -> Response:
        return await self.read(lake, lambda opened, _: pool_page(opened, pool, branch=branch))

    async def _coverage(self, lake: str, pool: str, branch: str = MAIN) -> Response:
        return await self.read(lake, lambda opened, _: coverage_page(opened, pool, branch=branch))

    async def _records(
        self, lake: str, pool: str, branch: str = MAIN, version: int | None = Query(None, ge=0)
    ) -> Response:
        return await self.read(
            lake, lambda opened, _: sample_of(opened, pool, branch=branch, version=version)
        )

    async def _geometry(
        self, lake: str, pool: str, branch: str = MAIN, version: int | None = Query(None, ge=0)
    ) -> Response:
        return await self.read(
            lake,
            lambda opened, shown: shown.layouts.layout(opened, pool, branch=branch, version=version),
        )

    async def _log(self, lake: str, pool: str, until: int | None = Query(None, ge=0)) -> Response:
        return await self.read(lake, lambda opened, _: graph_of(opened.pool(pool), until=until))

    async def _jobs(self, lake: str, pool: str = "") -> Response:
        return await self.read(lake, lambda opened, _: jobs_of(opened, pool))

    async def _transactions(self, lake: str) -> Response:
        return await self.read(lake, lambda opened, _: transactions_of(opened))

    async def _error(self, request: Request, error: Exception) -> Response:
        text, status = self.lakes.without_users(str(error)), _status(error)
        return Response(encoded({"detail": text}), status_code=status, media_type=JSON)


def jobs_of(lake: Lake, pool_name: str) -> dict[str, Any]:
    """Returns the newest jobs of a pool, or of all pools if the name is ""; `more` says whether there are older
    ones."""
    listed = list_jobs(lake, pool_name=pool_name, limit=MAX_JOBS + 1)
    return {"jobs": listed[:MAX_JOBS], "more": len(listed) > MAX_JOBS, "now": lake.context.now()}


def transactions_of(lake: Lake) -> dict[str, Any]:
    """Returns the newest transactions over several pools; `more` says whether there are older ones."""
    listed = transactions(lake, limit=MAX_TRANSACTIONS + 1)
    shown = listed[-MAX_TRANSACTIONS:][::-1]
    return {"transactions": shown, "more": len(listed) > MAX_TRANSACTIONS, "now": lake.context.now()}


def graph_of(pool: Pool, *, until: int | None) -> Graph:
    """Returns the last `MAX_LOG` versions of a pool up to `until` (inclusive); None: up to the newest."""
    history = pool.history
    newest = history.load_open()
    last = newest.version if until is None else min(until, newest.version)
    fence = history.journal.marks().fence
    entries = list(history.journal.between(max(fence, last - MAX_LOG), last))
    first = min(fence + 1, newest.version)
    return graph(pool.name, entries, newest.state, key=pool.config.key, newest=newest.version, first=first)


def answer(value: Any) -> Response:
    """Returns an answer whose body is the value as JSON."""
    return Response(encoded(value), media_type=JSON)


def encoded(value: Any) -> bytes:
    """Returns the value as the bytes of JSON."""
    return msgspec.json.encode(value)


def _status(error: Exception) -> int:
    """Returns the status of the answer to an error: the request was wrong, the store cannot be reached, or the
    lake is damaged."""
    if isinstance(error, NotFound):
        return 404
    if isinstance(error, InvalidInput):
        return 400
    return 500 if isinstance(error, Corrupt) else 503


def _file(name: str) -> bytes:
    return (files("log_lake.view") / "static" / name).read_bytes()
