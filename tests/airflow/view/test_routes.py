"""Every route of the view, asked by every role, by no one, and by pages of other origins, on Airflow's server."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any
from urllib.parse import urlencode

import httpx
import pyarrow as pa
import pytest

from log_lake.agents.jobs import KEY, KIND, SETTINGS
from log_lake.lake import Lake
from log_lake.stores.memory import MemoryStore
from tests.airflow.view.conftest import HOSTILE, HOSTILE_POOL, LATER, MANY, PAYLOAD, POOLS, SHOWN, Shown
from tests.support.servers.airflow_api import ROLES
from tests.support.servers.auth_by_dag import BLIND, COMPACTOR

pytestmark = pytest.mark.airflow


def data(name: str, **query: Any) -> str:
    return f"/lake/data/{name}" + (f"?{urlencode(query)}" if query else "")


MATCHING = "/lake/data/matching"
COUNTED: dict[str, Any] = {"lake": SHOWN, "pool": "flights", "where": "carrier = 'AA'"}


def ask(shown: Shown, path: str, **how: Any) -> Any:
    """A request as the page makes it: what may name a person is in a body."""
    if path == MATCHING:
        headers = {"Content-Type": "application/json", **how.pop("headers", {})}
        how = {"method": "POST", "body": json.dumps(COUNTED).encode(), "headers": headers, **how}
    return shown.server.request(path, **how)


ROUTES = {
    "/": "/lake/",
    "/static/{name}": "/lake/static/main.js",
    "/data/about": data("about"),
    "/data/agents": data("agents"),
    "/data/pools": data("pools", lake=SHOWN),
    "/data/health": data("health", lake=SHOWN),
    "/data/pool": data("pool", lake=SHOWN, pool="flights"),
    "/data/records": data("records", lake=SHOWN, pool="flights"),
    "/data/coverage": data("coverage", lake=SHOWN, pool="flights"),
    "/data/geometry": data("geometry", lake=SHOWN, pool="flights"),
    "/data/log": data("log", lake=SHOWN, pool="flights"),
    "/data/jobs": data("jobs", lake=SHOWN),
    "/data/transactions": data("transactions", lake=SHOWN),
    "/data/matching": MATCHING,
}
"""An address for each route."""
each_route = pytest.mark.parametrize("path", ROUTES.values())
OF_STARTERS = {MATCHING}
"""Those that need the right to start an agent too."""


def test_the_list_of_these_tests_is_complete_and_no_route_changes_anything() -> None:
    from airflow_lake.view.app import app_of
    from log_lake.view.lakes import Lakes

    routes = {route.path: route.methods for route in app_of(Lakes([])).routes}
    posted = {"/data/matching": {"POST"}}  # it counts
    assert routes == {**{path: {"GET"} for path in ROUTES}, **posted}


@each_route
def test_nobody_sees_anything(shown: Shown, path: str) -> None:
    answer = ask(shown, path)
    assert answer.status == 401
    assert b"flights" not in answer.body


@pytest.mark.parametrize(
    ("role", "says"), [("", "You are not logged in"), ("guest", "ask for the right to read")]
)
def test_who_opens_the_address_without_the_right_is_told_so_in_words(
    shown: Shown, role: str, says: str
) -> None:
    answer = shown.server.request("/lake/", role=role, headers={"Accept": "text/html,*/*"})
    assert answer.status == (403 if role else 401)
    assert says in answer.body.decode()
    assert '<a href="../" target="_top">' in answer.body.decode()


@each_route
def test_a_false_token_sees_nothing(shown: Shown, path: str) -> None:
    for headers in ({"Authorization": "Bearer x.y.z"}, {"Cookie": "_token=x.y.z"}):
        assert ask(shown, path, headers=headers).status in (401, 403)


@each_route
def test_a_user_without_rights_sees_nothing(shown: Shown, path: str) -> None:
    answer = ask(shown, path, role="guest")
    assert answer.status == 403
    assert b"flights" not in answer.body


@each_route
@pytest.mark.parametrize("role", ROLES)
def test_every_role_that_may_see_assets_sees_the_view(shown: Shown, path: str, role: str) -> None:
    expected = 403 if role == "viewer" and path in OF_STARTERS else 200
    assert ask(shown, path, role=role).status == expected
    assert ask(shown, path, role=role, cookie=True).status == expected, "as a browser"


@each_route
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_no_route_takes_a_write_not_even_of_an_admin(shown: Shown, path: str, method: str) -> None:
    expected = 400 if path == MATCHING and method == "POST" else 405
    assert shown.server.request(path, role="admin", method=method, body=b"{}").status == expected


@each_route
@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
    ],
)
def test_a_page_of_another_origin_is_refused_with_the_cookie_of_an_admin(
    shown: Shown, path: str, headers: dict[str, str]
) -> None:
    answer = ask(shown, path, role="admin", cookie=True, headers=headers)
    assert answer.status == 403
    assert answer.json == {"detail": "refused: a page of another origin asked"}


def test_a_page_of_this_origin_is_answered(shown: Shown) -> None:
    for headers in (
        {"Sec-Fetch-Site": "same-origin"},
        {"Origin": shown.server.url},
        {"Sec-Fetch-Site": "none"},
    ):
        answer = shown.server.request(data("about"), role="viewer", cookie=True, headers=headers)
        assert answer.status == 200


@pytest.mark.parametrize("role", ["", "viewer", "guest"])
@each_route
def test_every_answer_tells_the_browser_to_load_nothing_from_elsewhere(
    shown: Shown, path: str, role: str
) -> None:
    headers = ask(shown, path, role=role).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert (headers["x-content-type-options"], headers["cache-control"]) == ("nosniff", "no-store")


@pytest.mark.parametrize("name", ["..%2fpages.py", "index.html", "%2fetc%2fpasswd", "view.js"])
def test_only_the_files_of_the_page_are_files(shown: Shown, name: str) -> None:
    assert shown.server.request(f"/lake/static/{name}", role="admin").status == 404


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        (data("pools", lake="lake_other"), 404, "lake 'lake_other' is not shown here"),
        (data("pools", lake="/etc"), 404, "not shown here"),
        (data("geometry", lake=SHOWN, pool="nope"), 404, "nope"),
        (data("geometry", lake=SHOWN, pool="flights", version=999), 404, "version 999 does not exist"),
        (data("geometry", lake=SHOWN, pool="flights", version=-1), 422, ""),
        (data("geometry", lake=SHOWN, pool="flights", branch="x"), 404, "branch 'x' does not exist"),
        (data("log", lake=SHOWN, pool="nope"), 404, "nope"),
        (data("pools"), 422, ""),
    ],
)
def test_what_cannot_be_answered_is_one_clear_line(shown: Shown, path: str, status: int, says: str) -> None:
    answer = shown.server.request(path, role="viewer")
    assert answer.status == status
    assert says in str(answer.json["detail"])


def test_the_plugin_is_registered_once_and_has_an_entry_in_the_menu(shown: Shown) -> None:
    plugins = shown.server.request("/api/v2/plugins", role="admin").json["plugins"]
    ours = [plugin for plugin in plugins if plugin["name"] == "lake_view"]
    assert len(ours) == 1
    assert [(view["name"], view["href"], view["destination"]) for view in ours[0]["external_views"]] == [
        ("Lake", "lake/", "nav")
    ]
    errors = shown.server.request("/api/v2/plugins/importErrors", role="admin").json
    assert errors["import_errors"] == []


def test_the_pools_of_a_lake_are_shown_with_their_figures(shown: Shown) -> None:
    table = shown.server.request(data("pools", lake=SHOWN), role="viewer").json
    rows = {row["pool"]: row for row in table["pools"]}
    assert set(rows) == {"flights", "orders", "clicks", "empty", "$jobs"}
    view = shown.lake.pool("flights").at()
    figures = rows["flights"]["figures"]
    assert (figures["stored"], figures["depth"]) == (sum(r.records for r in view.references), view.depth)
    assert (figures["records"], figures["is_exact"]) == (figures["stored"], False), "deletes may hide some"
    assert (figures["tombstones"], figures["branches"], figures["beside"]) == (2, 2, 1)
    assert rows["flights"]["how"] == "compaction"


def test_a_thousand_pools_are_answered(shown: Shown) -> None:
    table = shown.server.request(data("pools", lake=MANY), role="viewer").json
    assert (table["total"], len(table["pools"])) == (POOLS, POOLS)
    assert all(row["figures"]["records"] == 1 for row in table["pools"])


def test_a_connection_that_is_made_later_is_shown_without_a_restart(shown: Shown) -> None:
    before = shown.server.request(data("pools", lake=LATER), role="viewer")
    assert before.status == 400
    assert f"no connection '{LATER}' in Airflow; make one of type lake" in before.json["detail"]
    connection = {"connection_id": LATER, "conn_type": "lake", "host": shown.lake.store.uri}
    created = shown.server.request(
        "/api/v2/connections",
        role="op",
        method="POST",
        body=json.dumps(connection).encode(),
        headers={"Content-Type": "application/json"},
    )
    assert created.status == 201
    after = shown.server.request(data("pools", lake=LATER), role="viewer")
    assert after.status == 200
    assert {row["pool"] for row in after.json["pools"]} >= {"flights"}


def test_the_log_says_who_did_what(shown: Shown) -> None:
    graph = shown.server.request(data("log", lake=SHOWN, pool="flights"), role="viewer").json
    assert graph["nodes"][0]["version"] == graph["newest"] == 21
    assert [lane["name"] for lane in graph["lanes"]] == ["main", "dev"]
    assert [tag["name"] for tag in graph["tags"]] == ["monthly"]
    assert {node["author"] for node in graph["nodes"]} == {"ada"}
    older = shown.server.request(data("log", lake=SHOWN, pool="flights", until=5), role="viewer").json
    assert [node["version"] for node in older["nodes"]] == [5, 4, 3, 2, 1]


def test_jobs_are_shown_newest_first_of_all_pools_or_of_one(shown: Shown) -> None:
    jobs = shown.server.request(data("jobs", lake=SHOWN), role="viewer").json["jobs"]
    assert [(job["agent"], job["pool"], job["state"]) for job in jobs] == [
        ("ingest", "orders", "failed"),
        ("compact", "flights", "done"),
    ]
    assert jobs[0]["error"] == "Unavailable: the store does not answer"
    (job,) = shown.server.request(data("jobs", lake=SHOWN, pool="flights"), role="viewer").json["jobs"]
    assert job["figures"] == {"jobs": 1, "inputs": 4, "size_in": 1_234_567}


def test_a_lake_that_hangs_holds_no_other_back(shown: Shown) -> None:
    from airflow_lake.view.app import app_of, may_read
    from log_lake.view.lakes import Lakes

    answered = threading.Event()
    there = Lake.create_on(MemoryStore())

    def opened(name: str) -> Lake:
        if name == "hangs":
            answered.wait()
        return there

    app = app_of(Lakes(["hangs", "there"], opener=opened))
    app.dependency_overrides[may_read.dependency] = lambda: None

    async def ask() -> set[int]:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://view") as client:
            waiting = [asyncio.create_task(client.get("/data/pools?lake=hangs")) for _ in range(10)]
            try:
                first = await asyncio.wait_for(client.get("/data/pools?lake=there"), 60)
                assert not any(page.done() for page in waiting)
            finally:
                answered.set()
            return {first.status_code, *(page.status_code for page in await asyncio.gather(*waiting))}

    assert asyncio.run(ask()) == {200}


def test_a_record_of_jobs_that_is_no_job_is_one_line_and_hides_no_pool() -> None:
    from airflow_lake.view.app import app_of, may_read
    from log_lake.view.lakes import Lakes

    lake = Lake.create_on(MemoryStore())
    lake.create_pool("p", key="k").branch().append(pa.table({"k": [1]}))
    jobs = lake.own_pool("$jobs", key=KEY, kind=KIND, settings=SETTINGS)
    jobs.branch().append(pa.table({"began": [5], "id": ["x"], "pool": [7]}))
    app = app_of(Lakes(["it"], opener=lambda name: lake))
    app.dependency_overrides[may_read.dependency] = lambda: None

    async def ask(path: str) -> httpx.Response:
        transport = httpx.ASGITransport(app=app)  # an error that is no answer is raised here
        async with httpx.AsyncClient(transport=transport, base_url="http://view") as client:
            return await client.get(path)

    for path in ("/data/jobs?lake=it", "/data/jobs?lake=it&pool=p"):
        answer = asyncio.run(ask(path))
        assert answer.status_code == 500
        assert answer.json()["detail"].startswith("pool '$jobs': ")
        assert "\n" not in answer.json()["detail"]
    rows = asyncio.run(ask("/data/pools?lake=it")).json()["pools"]
    assert [(row["pool"], "error" in row) for row in rows] == [("$jobs", False), ("p", False)]


def test_hostile_texts_come_as_they_are(shown: Shown) -> None:
    rows = shown.server.request(data("pools", lake=HOSTILE), role="viewer").json["pools"]
    assert HOSTILE_POOL in {row["pool"] for row in rows}
    graph = shown.server.request(data("log", lake=HOSTILE, pool=HOSTILE_POOL), role="viewer").json
    assert (graph["nodes"][-1]["message"], graph["nodes"][-1]["author"]) == (PAYLOAD, PAYLOAD)
    sample = shown.server.request(data("records", lake=HOSTILE, pool=HOSTILE_POOL), role="viewer").json
    assert sample["rows"] == [[PAYLOAD]]
    layout = shown.server.request(data("geometry", lake=HOSTILE, pool=HOSTILE_POOL), role="viewer").json
    assert layout["geometry"]["edges"][0] == PAYLOAD


def test_the_page_of_a_pool_counts_what_readers_see_and_shows_records(shown: Shown) -> None:
    page = shown.server.request(data("pool", lake=SHOWN, pool="flights"), role="viewer").json
    seen = shown.lake.pool("flights").at().to_table(columns=["k"]).num_rows
    assert (page["records"], page["is_exact"]) == (seen, True)
    assert page["stored"] > seen
    assert [field["name"] for field in page["fields"]] == ["k", "carrier"]
    sample = shown.server.request(data("records", lake=SHOWN, pool="flights"), role="viewer").json
    assert sample["rows"][:2] == [["0", "AA"], ["1", "UA"]]


def test_the_count_of_an_erasure_needs_the_right_to_start_it(shown: Shown) -> None:
    asked = {"lake": SHOWN, "pool": "flights", "low": "0", "high": "10"}
    refused = ask(shown, MATCHING, role="viewer", body=json.dumps(asked).encode())
    assert (refused.status, b"match" in refused.body) == (403, False)
    found = ask(shown, MATCHING, role="user", body=json.dumps(asked).encode()).json
    assert (found["records"], found["is_exact"]) == (10, True)
    unnamed = json.dumps({"lake": SHOWN, "pool": "flights"}).encode()
    nothing = ask(shown, MATCHING, role="user", body=unnamed)
    assert (nothing.status, "name the records" in nothing.json["detail"]) == (400, True)


@pytest.mark.parametrize(("role", "may"), [("viewer", False), ("user", True), ("op", True), ("admin", True)])
def test_who_may_start_an_agent_is_what_airflow_itself_says(shown: Shown, role: str, may: bool) -> None:
    agents = shown.server.request(data("agents"), role=role).json
    assert {agent["may"] for agent in agents} == {may}
    assert [agent["agent"] for agent in agents if agent["deletes"]] == ["retention", "erasure"]
    for agent in agents:
        answer = start(shown, agent["dag"], role=role)
        assert answer.status == (200 if may else 403)
        if may:
            assert answer.json["conf"] == CONF
            assert answer.json["triggering_user_name"] == role


def test_who_may_start_one_dag_starts_that_one_alone_and_is_shown_that(shown: Shown) -> None:
    agents = shown.server.request(data("agents"), role=COMPACTOR).json
    assert {agent["agent"] for agent in agents if agent["may"]} == {"compact"}
    assert len(agents) > 1
    for agent in agents:
        assert start(shown, agent["dag"], role=COMPACTOR).status == (200 if agent["may"] else 403)
    for dag in ("lake_erasure", "lake_intervals", "lake_apply"):  # those without a button
        assert start(shown, dag, role=COMPACTOR).status in (403, 404)
    assert shown.server.request(data("pools", lake=SHOWN), role=COMPACTOR).status == 200


@each_route
def test_who_may_start_every_dag_and_see_no_asset_sees_nothing(shown: Shown, path: str) -> None:
    assert start(shown, "lake_compact", role=BLIND).status == 200
    for cookie in (False, True):
        answer = ask(shown, path, role=BLIND, cookie=cookie)
        assert answer.status == 403
        assert b"flights" not in answer.body


CONF = {"lake": SHOWN, "pools": ["flights"], "dry_run": True}


def start(shown: Shown, dag: str, *, role: str, **how: Any) -> Any:
    """What the page asks Airflow's API."""
    body = json.dumps({"logical_date": None, "conf": CONF}).encode()
    headers = {"Content-Type": "application/json", **how.pop("headers", {})}
    return shown.server.request(
        f"/api/v2/dags/{dag}/dagRuns",
        role=role,
        method="POST",
        body=body,
        headers=headers,
        cookie=True,
        **how,
    )


def test_nobody_starts_an_agent(shown: Shown) -> None:
    assert start(shown, "lake_compact", role="").status == 401


@pytest.mark.parametrize("content", ["text/plain", "application/x-www-form-urlencoded"])
def test_a_form_of_another_page_starts_no_agent(shown: Shown, content: str) -> None:
    """What a browser lets any page send; the cookie, which the browser would leave out, is there all the same."""
    before = shown.server.request("/api/v2/dags/lake_compact/dagRuns", role="admin").json["total_entries"]
    forged = {"Content-Type": content, "Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
    assert start(shown, "lake_compact", role="admin", headers=forged).status in (400, 403, 415, 422)
    after = shown.server.request("/api/v2/dags/lake_compact/dagRuns", role="admin").json["total_entries"]
    assert after == before
