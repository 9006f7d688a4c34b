"""The requests that the page makes: files of the page, and what it shows as JSON.

All of them read.  All of them need a login and the right to see assets, since the dependency is the app's and not a
route's.  Errors of the lake are answers with one line, which the page shows.
"""

from __future__ import annotations

import os
from importlib.resources import files
from typing import Any

import msgspec
from fastapi import FastAPI, HTTPException, Query
from fastapi.exception_handlers import http_exception_handler
from fastapi.requests import Request
from fastapi.responses import Response

from airflow_lake.view.access import SameOrigin, User, may_read, may_start
from airflow_lake.view.graph import Graph, graph
from airflow_lake.view.lakes import Lakes, names_of
from airflow_lake.view.work import LakeThreads
from lake_core.errors import Corrupt, InvalidInput, LakeError, NotFound
from lake_core.naming import MAIN
from log_lake.agents.jobs import list_jobs
from log_lake.agents.roster import AGENTS
from log_lake.lake import Lake
from log_lake.lake.pool import Pool

FILES = {
    "view.css": "text/css",
    **dict.fromkeys(
        ("main.js", "dom.js", "pools.js", "geometry.js", "log.js", "jobs.js", "agents.js"), "text/javascript"
    ),
}
"""The files of the page, and what they are; no other name is looked up."""
BUTTONS = tuple(agent.name for agent in AGENTS.values() if agent.by_pool)
"""Agents that have a button.  The others need more than a pool: an interval of time, or which records to erase."""
JSON = "application/json"
REFUSED = {
    401: "You are not logged in: log in to Airflow, and open this page again.",
    403: "You do not have the right to see this: ask for the right to read assets.",
}
LINK = '<a href="../" target="_top">Airflow</a>'
REFUSAL = f'<!doctype html><html lang="en"><title>Lake</title><p>{{}} {LINK}</p></html>'
"""What a person sees who opens the page by its address, such as the link of a task."""
MAX_LOG = 200
"""Versions of one answer of the log."""
MAX_JOBS = 200
"""Jobs of one answer, the newest."""


def build(lakes: Lakes | None = None) -> SameOrigin:
    """The app that Airflow mounts; `lakes` are those that the environment names."""
    return SameOrigin(app_of(lakes or Lakes(names_of(os.environ))))


def app_of(lakes: Lakes) -> FastAPI:
    """The routes, without the guard against other origins."""
    app = FastAPI(title="Lake", dependencies=[may_read], docs_url=None, redoc_url=None, openapi_url=None)
    contents = {name: _file(name) for name in ("index.html", *FILES)}
    work, works = (
        LakeThreads(),
        {choice.key: LakeThreads() for choice in lakes.choices},
    )  # a lake that hangs holds no other back

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        text = REFUSED.get(error.status_code)
        if text is None or "text/html" not in request.headers.get("accept", ""):
            return await http_exception_handler(request, error)
        return Response(REFUSAL.format(text), status_code=error.status_code, media_type="text/html")

    @app.exception_handler(LakeError)
    async def error(request: Request, error: LakeError) -> Response:
        return Response(
            _json({"detail": lakes.without_users(str(error))}), status_code=_status(error), media_type=JSON
        )

    @app.get("/")
    async def page() -> Response:
        return Response(contents["index.html"], media_type="text/html")

    @app.get("/static/{name}")
    async def static(name: str) -> Response:
        if name not in FILES:
            raise NotFound(f"no file {name!r}")
        return Response(contents[name], media_type=FILES[name])

    @app.get("/data/lakes")
    async def names() -> Response:
        return Response(_json(lakes.choices), media_type=JSON)

    @app.get("/data/agents")
    async def agents(user: User) -> Response:
        may = await work.run(lambda: {f"lake_{agent}": may_start(user, f"lake_{agent}") for agent in BUTTONS})
        answer = [{"agent": dag.removeprefix("lake_"), "dag": dag, "may": one} for dag, one in may.items()]
        return Response(_json(answer), media_type=JSON)

    @app.get("/data/pools")
    async def pools(lake: str) -> Response:
        def read() -> bytes:
            opened, shown = lakes.shown(lake)
            return _json(shown.overview.table(opened))

        return Response(await works.get(lake, work).run(read), media_type=JSON)

    @app.get("/data/geometry")
    async def geometry(
        lake: str, pool: str, branch: str = MAIN, version: int | None = Query(None, ge=0)
    ) -> Response:
        def read() -> bytes:
            opened, shown = lakes.shown(lake)
            return _json(shown.layouts.layout(opened, pool, branch=branch, version=version))

        return Response(await works.get(lake, work).run(read), media_type=JSON)

    @app.get("/data/log")
    async def log(lake: str, pool: str, until: int | None = Query(None, ge=0)) -> Response:
        return Response(
            await works.get(lake, work).run(
                lambda: _json(graph_of(lakes.shown(lake)[0].pool(pool), until=until))
            ),
            media_type=JSON,
        )

    @app.get("/data/jobs")
    async def jobs(lake: str, pool: str = "") -> Response:
        return Response(
            await works.get(lake, work).run(lambda: _json(jobs_of(lakes.shown(lake)[0], pool))),
            media_type=JSON,
        )

    return app


def jobs_of(lake: Lake, pool_name: str) -> dict[str, Any]:
    """The newest jobs of a pool, "" for those of all; `more` says whether there are older ones."""
    listed = list_jobs(lake, pool_name=pool_name, limit=MAX_JOBS + 1)
    return {"jobs": listed[:MAX_JOBS], "more": len(listed) > MAX_JOBS, "now": lake.context.now()}


def graph_of(pool: Pool, *, until: int | None) -> Graph:
    """The last `MAX_LOG` versions of a pool up to `until` (inclusive); None: up to the newest."""
    history = pool.history
    newest = history.load_open()
    last = newest.version if until is None else min(until, newest.version)
    fence = history.journal.marks().fence
    entries = list(history.journal.between(max(fence, last - MAX_LOG), last))
    return graph(
        pool.name, entries, newest.state, newest=newest.version, first=min(fence + 1, newest.version)
    )


def _status(error: LakeError) -> int:
    """The status of an answer: the page was wrong, the store cannot be reached, or the lake is damaged."""
    if isinstance(error, NotFound):
        return 404
    if isinstance(error, InvalidInput):
        return 400
    return 500 if isinstance(error, Corrupt) else 503


def _json(value: Any) -> bytes:
    return msgspec.json.encode(value)


def _file(name: str) -> bytes:
    return (files("airflow_lake.view") / "static" / name).read_bytes()
