"""The Iceberg catalog (`log_lake.iceberg_catalog`) in Airflow: its login, and its right to read assets.

Airflow hands requests to a mounted app without a look at them.  So every route depends on `may_read`, as in the
pages of the view: a pool is an asset.  The catalog serves the lakes that the view shows, each as a namespace.  The
server publishes tables with the rights of its own connections.
"""

from __future__ import annotations

import os

from fastapi import FastAPI, HTTPException
from fastapi.requests import Request
from fastapi.responses import Response

from airflow_lake.reach import open_lake, view_lakes
from airflow_lake.view.app import may_read
from log_lake.iceberg_catalog.app import Answering, request_of
from log_lake.iceberg_catalog.catalog import IcebergCatalog
from log_lake.iceberg_catalog.refusals import Refusal
from log_lake.iceberg_catalog.request import CatalogResponse
from log_lake.view.guard import SameOrigin
from log_lake.view.lakes import Lakes

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
"""All methods of HTTP; the catalog itself refuses those that would write."""


def build(lakes: Lakes | None = None) -> SameOrigin:
    """Returns the app that Airflow mounts; `lakes` are those that the environment names."""
    return SameOrigin(app_of(lakes or Lakes(view_lakes(os.environ), opener=open_lake)))


def app_of(lakes: Lakes) -> FastAPI:
    """Returns one route for all paths of the catalog, without the guard against other origins."""
    answering = Answering(IcebergCatalog(lakes))
    app = FastAPI(
        title="Lake catalog",
        dependencies=[may_read],
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        refusal = (
            Refusal.no_login("you are not logged in to Airflow; send a token (Authorization: Bearer TOKEN)")
            if error.status_code == 401
            else Refusal(
                error.status_code, "ForbiddenException", f"{error.detail}; ask for the right to read assets"
            )
        )
        return _sent(answering.refusal(refusal, request_of(request.scope)))

    @app.api_route("/{path:path}", methods=list(METHODS))
    async def answer(request: Request) -> Response:
        below = request.scope.get("root_path", "")
        return _sent(await answering.answer(request_of(request.scope, below=below)))

    return app


def _sent(response: CatalogResponse) -> Response:
    return Response(response.body, status_code=response.status, headers=dict(response.headers))
