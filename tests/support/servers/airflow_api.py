"""Runs Airflow's real API server, with the project's plugins and DAGs and a user for each role, but without
scheduler and Spark.

A run that is triggered stays queued, because nothing executes it.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from local import airflow_service
from local.credentials import load_or_make
from local.environ import inherited
from tests.support.repository import ROOT
from tests.support.servers.daemons import daemon, free_port, run

ROLES = ("viewer", "user", "op", "admin")
GUEST = "guest"
"""A user who may log in and has no rights."""
START_SECONDS = 600.0
TRY_SECONDS = 60.0


@dataclass(frozen=True)
class Answer:
    """The answer of the server."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class ApiServer:
    """A running API server. There is one user for each role, with its name, and those that the test adds."""

    url: str
    passwords: Mapping[str, str]
    tokens: dict[str, str] = field(default_factory=dict)

    def request(
        self,
        path: str,
        *,
        role: str = "",
        method: str = "GET",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        cookie: bool = False,
    ) -> Answer:
        """Sends one request as a user, by a token or by the cookie of a browser; "": not logged in."""
        sent = dict(headers or {})
        if role and cookie:
            sent["Cookie"] = f"_token={self.token(role)}"
        elif role:
            sent["Authorization"] = f"Bearer {self.token(role)}"
        request = urllib.request.Request(f"{self.url}{path}", data=body, headers=sent, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=TRY_SECONDS) as answer:
                return Answer(answer.status, dict(answer.headers), answer.read())
        except urllib.error.HTTPError as error:
            return Answer(error.code, dict(error.headers), error.read())

    def token(self, role: str) -> str:
        """Returns the token that a user gets for the password."""
        if role not in self.tokens:
            login = json.dumps({"username": role, "password": self.passwords[role]}).encode()
            answer = self.request(
                "/auth/token", method="POST", body=login, headers={"Content-Type": "application/json"}
            )
            self.tokens[role] = str(answer.json["access_token"])
        return self.tokens[role]


@contextlib.contextmanager
def api_server(
    folder: Path, *, environ: Mapping[str, str], users: Mapping[str, str] | None = None
) -> Iterator[ApiServer]:
    """Runs the server while the block runs, which begins with the first healthy answer.

    `environ` is added to its environment; `users` are the names of further users, each with a role.
    """
    credentials = load_or_make(folder / "credentials")
    roles = {**{role: role for role in ROLES}, GUEST: "", **(users or {})}
    passwords = {name: secrets.token_urlsafe(8) for name in roles}
    credentials.password_file.write_text(json.dumps(passwords))
    port = free_port()
    settings = airflow_service.settings(
        home=folder / "airflow",
        dags=ROOT / "dags",
        plugins=ROOT / "plugins",
        port=port,
        credentials=credentials,
    )
    environment = {
        **inherited(os.environ, prefix=Path(sys.prefix)),
        **settings,
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(
            f"{name}:{role}" for name, role in roles.items()
        ),
        "PYTHONPATH": str(ROOT),
        **environ,
    }
    airflow = (sys.executable, "-m", "airflow")
    run(*airflow, "db", "migrate", within=START_SECONDS, environ=environment)
    run(*airflow, "dags", "reserialize", within=START_SECONDS, environ=environment)
    server = ApiServer(airflow_service.url(port), passwords)

    def healthy() -> bool:
        try:
            return server.request("/api/v2/monitor/health").status == 200
        except OSError:
            return False

    with daemon(
        *airflow,
        "api-server",
        log=folder / "api-server.log",
        ready=healthy,
        within=START_SECONDS,
        environ=environment,
    ):
        yield server
