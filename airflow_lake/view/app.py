"""The pages of `log_lake.view` in Airflow: who may see them, and what only Airflow can answer.

Airflow hands requests to a mounted app without a look at them.  So every route depends on `may_read`: the user is
logged in, and may see assets, since a pool is an asset.  The right to start an agent is Airflow's own right to
start a run of its DAG; Airflow's API checks it again when the page asks for a run (decision 91).

All routes need a login and the right to see assets.  Two routes are Airflow's alone: one says which agents the user
may start.  The other counts the records that an erasure would find, and needs the right to start it.
"""

from __future__ import annotations

import os
from typing import Annotated

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import get_user, requires_access_asset
from fastapi import Depends, HTTPException
from fastapi.exception_handlers import http_exception_handler
from fastapi.requests import Request
from fastapi.responses import Response

from airflow_lake.reach import open_lake, view_lakes
from log_lake.agents.roster import AGENTS
from log_lake.view.bodies import AskedRecords, body_of
from log_lake.view.guard import SameOrigin
from log_lake.view.lakes import Lakes
from log_lake.view.matching import matching
from log_lake.view.routes import LakeApp, answer

User = Annotated[BaseUser, Depends(get_user)]
"""The user of the request; 401 if there is none."""

may_read = Depends(requires_access_asset("GET"))
"""Lets a request through if its user may see assets; otherwise 401 or 403."""

BUTTONS = tuple(agent.name for agent in AGENTS.values() if agent.by_pool)
"""The agents with a button; a user can start them for one pool or for all pools."""
FORMS = ("erasure",)
"""Agents that have a form of their own, since they need more than a pool.  (`intervals` needs a time.)"""
ERASURE = "lake_erasure"
REFUSED = {
    401: "You are not logged in: log in to Airflow, and open this page again.",
    403: "You do not have the right to see this: ask for the right to read assets.",
}
LINK = '<a href="../" target="_top">Airflow</a>'
REFUSAL = f'<!doctype html><html lang="en"><title>Lake</title><p>{{}} {LINK}</p></html>'
"""The page for a person who opens the address directly, for example by the link of a task, and has no right to see
the view."""


def may_start(user: BaseUser, dag_id: str) -> bool:
    """Whether the user may start runs of the DAG."""
    return bool(
        get_auth_manager().is_authorized_dag(
            method="POST", access_entity=DagAccessEntity.RUN, details=DagDetails(id=dag_id), user=user
        )
    )


async def _starts_erasures(request: Request, user: User) -> None:
    if not await request.app.work.run(lambda: may_start(user, ERASURE)):
        raise HTTPException(403, f"a count needs the right to start {ERASURE}")


may_erase = Depends(_starts_erasures)
"""Lets a request through if its user may start an erasure; otherwise 403."""


def build(lakes: Lakes | None = None) -> SameOrigin:
    """Returns the app that Airflow mounts; `lakes` are those that the environment names."""
    return SameOrigin(app_of(lakes or Lakes(view_lakes(os.environ), opener=open_lake)))


def app_of(lakes: Lakes) -> LakeApp:
    """Returns the routes of the pages, without the guard against other origins."""
    app = LakeApp(lakes, server="airflow", dependencies=[may_read])

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        text = REFUSED.get(error.status_code)
        if text is None or "text/html" not in request.headers.get("accept", ""):
            return await http_exception_handler(request, error)
        return Response(REFUSAL.format(text), status_code=error.status_code, media_type="text/html")

    @app.get("/data/agents")
    async def agents(user: User) -> Response:
        names = (*BUTTONS, *FORMS)
        may = await app.work.run(lambda: {agent: may_start(user, f"lake_{agent}") for agent in names})
        return answer(
            [
                {
                    "agent": agent,
                    "dag": f"lake_{agent}",
                    "may": one,
                    "deletes": AGENTS[agent].deletes,
                    "form": agent in FORMS,
                }
                for agent, one in may.items()
            ]
        )

    @app.post("/data/matching", dependencies=[may_erase])  # it changes nothing; an address would be logged
    async def matching_records(request: Request) -> Response:
        named = await body_of(request, AskedRecords)
        return await app.read(
            named.lake,
            lambda opened, _: matching(
                opened, named.pool, where=named.where, key=named.key, low=named.low, high=named.high
            ),
        )

    return app
