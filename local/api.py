"""A small client of Airflow's REST API: log in, trigger a run, wait for it, look at its results.

Used by the demo and the tests.  It needs only the standard library, and ignores proxies of the environment,
because it talks to this machine.

Airflow's API server does nothing else while it builds its routes, which takes long on a busy machine (decision
45). An SQLite database is busy at times.  So the client repeats a request that got no answer, or met a busy
database, until the deadline of its step (`within`).  Every request may be repeated: the client names a new run,
so Airflow refuses a repeated request and runs nothing twice.
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPException
from typing import Any

from local.errors import LocalError

Json = dict[str, Any]
FINISHED = ("success", "failed")
PATIENCE_SECONDS = 180.0
"""How long a request is repeated, in a step that sets no deadline (`within`)."""
TRY_SECONDS = 30.0
"""How long one try of a request waits for its answer."""
POLL_SECONDS = 0.5
SHORTEST_TRY_SECONDS = 1.0
UNAUTHORIZED, NOT_FOUND, CONFLICT, SERVER_ERROR = 401, 404, 409, 500


class ApiError(LocalError):
    """Airflow did not answer, or answered with an error; `status` is None if it did not answer."""

    def __init__(self, message: str, *, status: int | None) -> None:
        super().__init__(message)
        self.status = status


class AirflowApi:
    """Airflow's API v2 for one user, who logs in once, at the first request that needs it.

    The client calls `check` before it repeats a request; `check` raises LocalError if Airflow has ended.
    """

    def __init__(
        self,
        url: str,
        *,
        user: str,
        password: str,
        check: Callable[[], None] = lambda: None,
        patience: float = PATIENCE_SECONDS,
        try_seconds: float = TRY_SECONDS,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        self.url = url
        self._user = user
        self._password = password
        self._check = check
        self._patience = patience
        self._try_seconds = try_seconds
        self._poll_seconds = poll_seconds
        self._deadline: float | None = None
        self._token: str | None = None
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    # --- requests

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Requests inside the block are repeated until `seconds` have passed since the block began."""
        outer = self._deadline
        deadline = time.monotonic() + seconds
        self._deadline = deadline if outer is None else min(outer, deadline)
        try:
            yield
        finally:
            self._deadline = outer

    def request(
        self, method: str, path: str, *, body: Json | None = None, query: Mapping[str, Any] | None = None
    ) -> Json:
        """The JSON answer of one authenticated request below /api/v2.  It must be safe to repeat."""
        target = f"/api/v2/{path}" + (f"?{urllib.parse.urlencode(query, doseq=True)}" if query else "")
        if self._deadline is None:
            with self.within(self._patience):
                return self._repeated(method, target, body=body)
        return self._repeated(method, target, body=body)

    def _repeated(self, method: str, target: str, *, body: Json | None) -> Json:
        begun = time.monotonic()
        while True:  # until Airflow answers or the deadline is over
            try:
                return self._authenticated(method, target, body=body)
            except ApiError as problem:
                if problem.status is not None and problem.status < SERVER_ERROR:
                    raise
                self._check()
                if self._left() <= 0:
                    waited = time.monotonic() - begun
                    raise ApiError(
                        f"{problem}; gave up after {waited:.0f} s", status=problem.status
                    ) from None
            time.sleep(self._poll_seconds)

    def _left(self) -> float:
        """Seconds until the deadline."""
        return float("inf") if self._deadline is None else self._deadline - time.monotonic()

    def _authenticated(self, method: str, target: str, *, body: Json | None) -> Json:
        fresh = self._token is None
        if self._token is None:
            self._token = self._log_in()
        try:
            return self._send(method, target, body=body, token=self._token)
        except ApiError as problem:
            if problem.status != UNAUTHORIZED or fresh:
                raise
        self._token = self._log_in()  # the token had expired
        return self._send(method, target, body=body, token=self._token)

    def get(self, path: str, **query: Any) -> Json:
        return self.request("GET", path, query=query)

    def health(self) -> Json:
        """The health that the components report, from one request without a login."""
        return self._send("GET", "/api/v2/monitor/health")

    def wake_task_api(self) -> None:
        """Asks once for the health of the API that tasks use, which Airflow builds at the first request."""
        self._send("GET", "/execution/health")

    def version(self) -> str:
        return str(self.get("version")["version"])

    # --- DAGs and runs

    def import_errors(self) -> dict[str, str]:
        """The DAG files that Airflow could not import, with their tracebacks."""
        errors = self.get("importErrors", limit=1000)["import_errors"]
        return {error["filename"]: error["stack_trace"] for error in errors}

    def wait_for_dag(self, dag_id: str, *, seconds: float = 120.0) -> None:
        """Returns when Airflow has read the DAG's file."""

        def is_known() -> bool:
            try:
                self.get(f"dags/{_quoted(dag_id)}")
            except ApiError as problem:
                if problem.status == NOT_FOUND:
                    return False
                raise
            return True

        if not self._await(is_known, seconds=seconds):
            broken = "; ".join(self.import_errors()) or "none"
            raise LocalError(
                f"Airflow does not know the DAG {dag_id} after {seconds:.0f} s (files with errors: {broken}); "
                "see the log of the DAG processor"
            )

    def set_paused(self, dag_id: str, paused: bool) -> None:
        self.request("PATCH", f"dags/{_quoted(dag_id)}", body={"is_paused": paused})

    def trigger(
        self,
        dag_id: str,
        *,
        conf: Json | None = None,
        logical_date: str | None = None,
        run_id: str | None = None,
    ) -> str:
        """Triggers a run of the DAG and returns its id.  Runs of a paused DAG wait until it is unpaused."""
        if run_id is None:
            run_id = f"manual__{uuid.uuid4()}"
        elif self._has_run(dag_id, run_id):
            raise LocalError(f"{dag_id} has a run {run_id} already: use another run_id")
        body: Json = {"dag_run_id": run_id, "logical_date": logical_date, "conf": conf or {}}
        try:
            self.request("POST", f"dags/{_quoted(dag_id)}/dagRuns", body=body)
        except ApiError as problem:
            # An earlier try of this request may have made the run without our hearing of it.
            if problem.status != CONFLICT or not self._has_run(dag_id, run_id):
                raise
        return run_id

    def _has_run(self, dag_id: str, run_id: str) -> bool:
        try:
            self.run(dag_id, run_id)
        except ApiError as problem:
            if problem.status == NOT_FOUND:
                return False
            raise
        return True

    def run(self, dag_id: str, run_id: str) -> Json:
        return self.get(_run_path(dag_id, run_id))

    def runs(self, dag_id: str) -> list[Json]:
        """The DAG's runs, newest first."""
        return list(
            self.get(f"dags/{_quoted(dag_id)}/dagRuns", limit=1000, order_by="-run_after")["dag_runs"]
        )

    def wait(
        self,
        dag_id: str,
        run_id: str,
        *,
        seconds: float = 300.0,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> str:
        """The state in which the run finished: `success` or `failed`.  Calls `meanwhile` while it runs."""
        state = ""

        def is_finished() -> bool:
            nonlocal state
            state = str(self.run(dag_id, run_id)["state"])
            if state not in FINISHED:
                meanwhile()
            return state in FINISHED

        if not self._await(is_finished, seconds=seconds):
            where = self.run_url(dag_id, run_id)
            raise LocalError(f"the run {run_id} of {dag_id} is {state} after {seconds:.0f} s; see {where}")
        return state

    def run_url(self, dag_id: str, run_id: str) -> str:
        """The address of the page that shows the run."""
        return f"{self.url}/dags/{_quoted(dag_id)}/runs/{_quoted(run_id)}"

    # --- tasks

    def tasks(self, dag_id: str, run_id: str) -> list[Json]:
        """The task instances of the run, a mapped task once for each index."""
        return list(self.get(f"{_run_path(dag_id, run_id)}/taskInstances", limit=1000)["task_instances"])

    def log(self, dag_id: str, run_id: str, task_id: str, *, attempt: int = 1, map_index: int = -1) -> str:
        """The log of one attempt of a task, as lines of text, with the errors that ended it."""
        path = f"{_run_path(dag_id, run_id)}/taskInstances/{_quoted(task_id)}/logs/{attempt}"
        content = self.get(path, map_index=map_index, full_content=True)["content"]
        lines: list[str] = []
        for line in content:
            lines.append(str(line.get("event", line)) if isinstance(line, dict) else str(line))
            errors = line.get("error_detail") if isinstance(line, dict) else None
            lines += [f"{error.get('exc_type')}: {error.get('exc_value')}" for error in errors or ()]
        return "\n".join(lines)

    def xcom(
        self, dag_id: str, run_id: str, task_id: str, *, key: str = "return_value", map_index: int = -1
    ) -> Any:
        """The value that a task returned."""
        path = f"{_run_path(dag_id, run_id)}/taskInstances/{_quoted(task_id)}/xcomEntries/{_quoted(key)}"
        return self.get(path, map_index=map_index, deserialize=False, stringify=False)["value"]

    # --- the wire

    def _await(self, condition: Callable[[], bool], *, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        with self.within(seconds):
            while not condition():
                if time.monotonic() >= deadline:
                    return False
                time.sleep(self._poll_seconds)
        return True

    def _log_in(self) -> str:
        answer = self._send("POST", "/auth/token", body={"username": self._user, "password": self._password})
        return str(answer["access_token"])

    def _send(self, method: str, target: str, *, body: Json | None = None, token: str | None = None) -> Json:
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + target, data=data, headers=headers, method=method)
        timeout = min(self._try_seconds, max(self._left(), SHORTEST_TRY_SECONDS))
        try:
            with self._opener.open(request, timeout=timeout) as answer:
                parsed: Json = json.loads(answer.read() or b"{}")
                return parsed
        except urllib.error.HTTPError as problem:
            detail = problem.read().decode(errors="replace")[:500]
            raise ApiError(
                f"{method} {self.url}{target}: {problem.code} {detail}", status=problem.code
            ) from None
        except (OSError, HTTPException, ValueError) as problem:
            raise ApiError(f"{method} {self.url}{target}: no answer ({problem})", status=None) from None


def _quoted(part: str) -> str:
    return urllib.parse.quote(part, safe="")


def _run_path(dag_id: str, run_id: str) -> str:
    return f"dags/{_quoted(dag_id)}/dagRuns/{_quoted(run_id)}"
