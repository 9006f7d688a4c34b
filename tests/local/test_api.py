"""The client of Airflow's API: one login, and patience with a server that is silent for a while.

Airflow is played by a small HTTP server that can be told what to do with its next requests; what the real one does
is in tests/airflow.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from local import airflow_service
from local.api import AirflowApi, ApiError
from local.errors import LocalError

RUNS = "/api/v2/dags/d/dagRuns"
SILENT = "silent"
"""The server takes the request, acts on it, and never answers."""


class Airflow(ThreadingHTTPServer):
    """Logins and runs of one DAG; `next_answers` are what becomes of the next requests that are not logins."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str] = []
        self.next_answers: list[int | str] = []
        self.next_logins: list[int | str] = []
        self.made: list[str] = []
        self.health = {name: {"status": "healthy"} for name in airflow_service.COMPONENTS}
        self.closing = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def act(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        """What Airflow would do."""
        if path == "/auth/token":
            return 201, {"access_token": "token"}
        if path == "/execution/health":
            return 200, {"status": "healthy"}
        if path == "/api/v2/monitor/health":
            return 200, self.health
        if (method, path) == ("POST", RUNS):
            if body["dag_run_id"] in self.made:
                return 409, {"detail": "there is one"}
            self.made.append(body["dag_run_id"])
            return 200, {"dag_run_id": body["dag_run_id"]}
        run = path.removeprefix(f"{RUNS}/")
        return (200, {"dag_run_id": run, "state": "success"}) if run in self.made else (404, {})


class Handler(BaseHTTPRequestHandler):
    server: Airflow

    def do_GET(self) -> None:
        self.answer()

    do_POST = do_PATCH = do_GET

    def answer(self) -> None:
        airflow = self.server
        airflow.asked.append(f"{self.command} {self.path}")
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        planned = airflow.next_logins if self.path == "/auth/token" else airflow.next_answers
        said = planned.pop(0) if planned else None
        status, found = (said, {}) if isinstance(said, int) else airflow.act(self.command, self.path, body)
        if said == SILENT:
            airflow.closing.wait(600)
            return
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(found).encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the tests look at `asked`."""


@pytest.fixture
def airflow() -> Iterator[Airflow]:
    with Airflow() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.closing.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def api(airflow: Airflow) -> AirflowApi:
    """As many requests as the test plans: an answer has as long as it takes."""
    return AirflowApi(airflow.url, user="u", password="p", patience=600, try_seconds=600, poll_seconds=0.01)


@pytest.fixture
def hasty(airflow: Airflow) -> AirflowApi:
    """For servers that do not answer; on a slow machine it asks again where an answer was on its way."""
    return AirflowApi(airflow.url, user="u", password="p", patience=600, try_seconds=0.2, poll_seconds=0.01)


def test_many_requests_take_one_login(airflow: Airflow, api: AirflowApi) -> None:
    run = api.trigger("d")
    assert [api.wait("d", run), api.run("d", run)["state"]] == ["success", "success"]
    assert airflow.asked.count("POST /auth/token") == 1


@pytest.mark.parametrize("first", [500, 503])
def test_a_request_that_found_the_server_busy_is_repeated(
    airflow: Airflow, api: AirflowApi, first: int
) -> None:
    airflow.made.append("r")
    airflow.next_answers = [first] * 3
    assert api.run("d", "r")["state"] == "success"
    assert airflow.asked.count(f"GET {RUNS}/r") == 4


def test_a_request_that_was_not_answered_is_repeated(airflow: Airflow, hasty: AirflowApi) -> None:
    airflow.made.append("r")
    airflow.next_answers = [SILENT] * 3
    assert hasty.run("d", "r")["state"] == "success"
    assert airflow.asked.count(f"GET {RUNS}/r") >= 4


def test_a_login_that_failed_is_repeated(airflow: Airflow, api: AirflowApi) -> None:
    airflow.made.append("r")
    airflow.next_logins = [500]
    assert api.run("d", "r")["state"] == "success"
    assert airflow.asked.count("POST /auth/token") == 2


def test_a_login_that_was_not_answered_is_repeated(airflow: Airflow, hasty: AirflowApi) -> None:
    airflow.made.append("r")
    airflow.next_logins = [SILENT]
    assert hasty.run("d", "r")["state"] == "success"
    assert airflow.asked.count("POST /auth/token") >= 2


def test_a_token_that_expired_is_asked_for_again(airflow: Airflow, api: AirflowApi) -> None:
    airflow.made.append("r")
    api.run("d", "r")
    airflow.next_answers = [401]
    assert api.run("d", "r")["state"] == "success"
    assert airflow.asked.count("POST /auth/token") == 2


def test_a_run_that_was_made_without_an_answer_is_not_made_twice(airflow: Airflow, hasty: AirflowApi) -> None:
    airflow.next_answers = [SILENT]
    run = hasty.trigger("d")
    assert airflow.made == [run]
    assert airflow.asked.count(f"POST {RUNS}") >= 2


def test_a_run_of_a_name_that_there_is_is_refused(airflow: Airflow, api: AirflowApi) -> None:
    api.trigger("d", run_id="mine")
    with pytest.raises(LocalError, match="d has a run mine already"):
        api.trigger("d", run_id="mine")
    assert airflow.made == ["mine"]


def test_an_answer_that_says_no_is_not_asked_for_again(airflow: Airflow, api: AirflowApi) -> None:
    with pytest.raises(ApiError, match="404"):
        api.run("d", "none")
    assert airflow.asked.count(f"GET {RUNS}/none") == 1


def test_repeating_ends_with_the_step_that_the_request_is_part_of(airflow: Airflow, api: AirflowApi) -> None:
    airflow.made.append("r")
    airflow.next_answers = [503] * 10_000
    with pytest.raises(ApiError, match=r"GET .*/dagRuns/r: 503 .*; gave up after \d+ s"), api.within(0.2):
        api.run("d", "r")
    assert len(airflow.next_answers) > 0
    airflow.next_answers = []
    assert api.run("d", "r")["state"] == "success", "the next step has a deadline of its own"


def test_where_airflow_has_ended_nothing_is_repeated(airflow: Airflow) -> None:
    def ended() -> None:
        raise LocalError("airflow ended; the end of its log")

    airflow.next_answers = [503]
    api = AirflowApi(airflow.url, user="u", password="p", check=ended)
    with pytest.raises(LocalError, match="airflow ended; the end of its log"):
        api.run("d", "r")
    assert airflow.asked.count(f"GET {RUNS}/r") == 1


def test_airflow_is_healthy_only_when_the_api_of_the_tasks_answers_too(
    airflow: Airflow, api: AirflowApi, hasty: AirflowApi
) -> None:
    airflow.next_answers = [SILENT]
    assert not airflow_service.is_healthy(hasty), "its routes are being built, and nothing else is answered"
    assert airflow_service.is_healthy(api)
    assert airflow.asked.count("GET /execution/health") == 2
    airflow.health["scheduler"] = {"status": "unhealthy"}
    assert not airflow_service.is_healthy(api)
