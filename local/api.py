"""A small client of Airflow's REST API: log in, trigger a run, wait for it, look at what it did.

For the demo and the tests.  Only the standard library; proxies of the environment are not used, since it
talks to this machine.  Every wait is bounded."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

from local.errors import LocalError

Json = dict[str, Any]
FINISHED = ("success", "failed")
REQUEST_SECONDS = 30.0
POLL_SECONDS = 0.5
BUSY_TRIES = 5


class ApiError(LocalError):
    """Airflow did not answer, or answered with an error; `status` is None if it did not answer."""

    def __init__(self, message: str, *, status: int | None) -> None:
        super().__init__(message)
        self.status = status


class AirflowApi:
    """Airflow's API v2 as one user, logged in at the first request that needs it."""

    def __init__(self, url: str, *, user: str, password: str) -> None:
        self.url = url
        self._user = user
        self._password = password
        self._token: str | None = None
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    # --- requests

    def request(
        self, method: str, path: str, *, body: Json | None = None, query: Mapping[str, Any] | None = None
    ) -> Json:
        """One request below /api/v2, authenticated; the JSON of the answer.

        A request that may be repeated is, where Airflow's database was busy (sqlite gives up after a while).
        """
        for _ in range(BUSY_TRIES if method in ("GET", "PATCH") else 0):
            try:
                return self._authenticated(method, path, body=body, query=query)
            except ApiError as problem:
                if problem.status != 500:
                    raise
                time.sleep(POLL_SECONDS)
        return self._authenticated(method, path, body=body, query=query)

    def _authenticated(
        self, method: str, path: str, *, body: Json | None, query: Mapping[str, Any] | None
    ) -> Json:
        target = f"/api/v2/{path}" + (f"?{urllib.parse.urlencode(query, doseq=True)}" if query else "")
        fresh = self._token is None
        if self._token is None:
            self._token = self._log_in()
        try:
            return self._send(method, target, body=body, token=self._token)
        except ApiError as problem:
            if problem.status != 401 or fresh:
                raise
        self._token = self._log_in()  # the token had expired
        return self._send(method, target, body=body, token=self._token)

    def get(self, path: str, **query: Any) -> Json:
        return self.request("GET", path, query=query)

    def health(self) -> Json:
        """What the components say of themselves; needs no login."""
        return self._send("GET", "/api/v2/monitor/health")

    def version(self) -> str:
        return str(self.get("version")["version"])

    # --- DAGs and runs

    def dag_ids(self) -> list[str]:
        """The DAGs that Airflow knows by now, paused ones included."""
        return sorted(dag["dag_id"] for dag in self.get("dags", limit=1000, exclude_stale=True)["dags"])

    def import_errors(self) -> dict[str, str]:
        """The DAG files that could not be imported, with the traceback of each."""
        errors = self.get("importErrors", limit=1000)["import_errors"]
        return {error["filename"]: error["stack_trace"] for error in errors}

    def wait_for_dag(self, dag_id: str, *, seconds: float = 120.0) -> None:
        """Returns when Airflow has read the DAG's file."""

        def is_known() -> bool:
            try:
                self.get(f"dags/{_quoted(dag_id)}")
            except ApiError as problem:
                if problem.status == 404:
                    return False
                raise
            return True

        if not _await(is_known, seconds=seconds):
            broken = "; ".join(self.import_errors()) or "none"
            raise LocalError(
                f"Airflow does not know the DAG {dag_id} after {seconds:.0f} s (files with errors: {broken})"
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
        """A new run of the DAG; its id.  (Runs of a paused DAG wait until it is not paused.)"""
        body: Json = {"logical_date": logical_date, "conf": conf or {}}
        if run_id is not None:
            body["dag_run_id"] = run_id
        return str(self.request("POST", f"dags/{_quoted(dag_id)}/dagRuns", body=body)["dag_run_id"])

    def run(self, dag_id: str, run_id: str) -> Json:
        return self.get(_run_path(dag_id, run_id))

    def runs(self, dag_id: str) -> list[Json]:
        """The DAG's runs, newest first."""
        return list(
            self.get(f"dags/{_quoted(dag_id)}/dagRuns", limit=1000, order_by="-run_after")["dag_runs"]
        )

    def wait(self, dag_id: str, run_id: str, *, seconds: float = 300.0) -> str:
        """The state in which the run finished: `success` or `failed`."""
        state = ""

        def is_finished() -> bool:
            nonlocal state
            state = str(self.run(dag_id, run_id)["state"])
            return state in FINISHED

        if not _await(is_finished, seconds=seconds):
            where = self.run_url(dag_id, run_id)
            raise LocalError(f"the run {run_id} of {dag_id} is {state} after {seconds:.0f} s; see {where}")
        return state

    def run_url(self, dag_id: str, run_id: str) -> str:
        """Where a person looks at the run."""
        return f"{self.url}/dags/{_quoted(dag_id)}/runs/{_quoted(run_id)}"

    # --- tasks

    def tasks(self, dag_id: str, run_id: str) -> list[Json]:
        """The run's task instances, mapped ones each."""
        return list(self.get(f"{_run_path(dag_id, run_id)}/taskInstances", limit=1000)["task_instances"])

    def log(self, dag_id: str, run_id: str, task_id: str, *, attempt: int = 1, map_index: int = -1) -> str:
        """The log of one attempt of a task, as lines of text."""
        path = f"{_run_path(dag_id, run_id)}/taskInstances/{_quoted(task_id)}/logs/{attempt}"
        content = self.get(path, map_index=map_index, full_content=True)["content"]
        return "\n".join(
            str(line.get("event", line)) if isinstance(line, dict) else str(line) for line in content
        )

    def xcom(
        self, dag_id: str, run_id: str, task_id: str, *, key: str = "return_value", map_index: int = -1
    ) -> Any:
        """What a task returned."""
        path = f"{_run_path(dag_id, run_id)}/taskInstances/{_quoted(task_id)}/xcomEntries/{_quoted(key)}"
        return self.get(path, map_index=map_index, deserialize=False, stringify=False)["value"]

    # --- the wire

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
        try:
            with self._opener.open(request, timeout=REQUEST_SECONDS) as answer:
                text = answer.read()
        except urllib.error.HTTPError as problem:
            said = problem.read().decode(errors="replace")[:500]
            raise ApiError(
                f"{method} {self.url}{target}: {problem.code} {said}", status=problem.code
            ) from None
        except OSError as problem:
            raise ApiError(f"{method} {self.url}{target}: no answer ({problem})", status=None) from None
        found: Json = json.loads(text) if text else {}
        return found


def _quoted(part: str) -> str:
    return urllib.parse.quote(part, safe="")


def _run_path(dag_id: str, run_id: str) -> str:
    return f"dags/{_quoted(dag_id)}/dagRuns/{_quoted(run_id)}"


def _await(condition: Callable[[], bool], *, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True
