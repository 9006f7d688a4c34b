"""The Iceberg catalog on Airflow's server: every route by every role and by no one, and pyiceberg's client."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyiceberg")

from tests.airflow.view.conftest import HOSTILE, HOSTILE_POOL, LATER, MANY, READ, SHOWN, Shown
from tests.support.iceberg import shown as values_of
from tests.support.iceberg import values
from tests.support.servers.airflow_api import ROLES
from tests.support.servers.auth_by_dag import BLIND

pytestmark = pytest.mark.airflow

BASE = "/lake-catalog"
TABLE = f"{BASE}/v1/namespaces/{READ}/tables/flights"
ROUTES = (
    f"{BASE}/v1/config",
    f"{BASE}/v1/namespaces",
    f"{BASE}/v1/namespaces/{READ}",
    f"{BASE}/v1/namespaces/{READ}/tables",
    TABLE,
    f"{BASE}/v1/{READ}/namespaces/{READ}/tables/flights",
)
ELSEWHERE = (
    f"{BASE}/v1/views",
    f"{BASE}/",
    f"{BASE}/docs",
    f"{BASE}/openapi.json",
    f"{BASE}/v1/oauth/tokens",
)
each_route = pytest.mark.parametrize("path", ROUTES)
any_path = pytest.mark.parametrize("path", [*ROUTES, *ELSEWHERE])


@any_path
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE"])
def test_nobody_sees_anything(shown: Shown, path: str, method: str) -> None:
    answer = shown.server.request(path, method=method)
    assert answer.status == 401
    assert b"flights" not in answer.body
    if method != "HEAD":
        assert answer.json["error"]["type"] == "NotAuthorizedException"
    for headers in ({"Authorization": "Bearer x.y.z"}, {"Cookie": "_token=x.y.z"}):
        assert shown.server.request(path, method=method, headers=headers).status in (401, 403)


@any_path
@pytest.mark.parametrize("role", ["guest", BLIND])
def test_a_user_without_the_right_to_see_assets_sees_nothing(shown: Shown, path: str, role: str) -> None:
    answer = shown.server.request(path, role=role)
    assert (answer.status, answer.json["error"]["type"]) == (403, "ForbiddenException")
    assert b"flights" not in answer.body


@each_route
@pytest.mark.parametrize("role", ROLES)
def test_every_role_that_may_see_assets_reads(shown: Shown, path: str, role: str) -> None:
    assert shown.server.request(path, role=role).status == 200


@any_path
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_no_path_takes_a_write_not_even_of_an_admin(shown: Shown, path: str, method: str) -> None:
    answer = shown.server.request(path, role="admin", method=method, body=b"{}")
    assert (answer.status, answer.json["error"]["type"]) == (406, "UnsupportedOperationException")


@any_path
def test_a_page_of_another_origin_is_refused(shown: Shown, path: str) -> None:
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}):
        assert shown.server.request(path, role="admin", cookie=True, headers=headers).status == 403


@pytest.mark.parametrize("path", ELSEWHERE)
def test_other_paths_do_not_exist(shown: Shown, path: str) -> None:
    answer = shown.server.request(path, role="viewer")
    assert (answer.status, answer.json["error"]["type"]) == (404, "NoSuchRouteException")


@pytest.mark.parametrize(
    "name", ["..", "%2e%2e", "..%2F..%2Fflights", "%2A", "flights%00", "fl%C3%BC", "a%1Fb"]
)
def test_a_name_leads_nowhere_else(shown: Shown, name: str) -> None:
    for path in (f"{BASE}/v1/namespaces/{name}/tables", f"{BASE}/v1/namespaces/{READ}/tables/{name}"):
        assert shown.server.request(path, role="viewer").status == 404


def client(shown: Shown) -> Any:
    from pyiceberg.catalog.rest import RestCatalog

    return RestCatalog("airflow", uri=f"{shown.server.url}{BASE}", token=shown.server.token("viewer"))


@pytest.mark.parametrize("ref", ["", "@monthly"])
def test_pyiceberg_reads_what_the_lake_gives(shown: Shown, ref: str) -> None:
    table = client(shown).load_table((READ, f"flights{ref}")).scan().to_arrow()
    pool = shown.read.pool("flights")
    assert values(table.to_pylist()) == values_of(pool.at(ref.removeprefix("@") or "main"))


def test_pyiceberg_finds_the_lakes_of_the_view_and_a_hostile_name_stays_a_name(shown: Shown) -> None:
    catalog = client(shown)
    assert set(catalog.list_namespaces()) == {(name,) for name in (SHOWN, MANY, HOSTILE, LATER, READ)}
    assert catalog.table_exists((HOSTILE, HOSTILE_POOL))
    assert catalog.load_table((HOSTILE, HOSTILE_POOL)).scan().to_arrow().num_rows == 1


def test_a_lake_that_cannot_be_opened_is_an_error_of_its_own(shown: Shown) -> None:
    answer = shown.server.request(f"{BASE}/v1/namespaces/{LATER}/tables", role="viewer")
    assert answer.status in (400, 503)
    assert "\n" not in answer.json["error"]["message"]
