"""Requests become questions, or refusals; a name is cut out of its path before it is decoded."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake_core.errors import InvalidInput
from log_lake.iceberg_catalog.refusals import Refusal, refusal_response
from log_lake.iceberg_catalog.request import MAX_PATH, CatalogRequest, parameter
from log_lake.iceberg_catalog.routes import (
    ENDPOINTS,
    AllTables,
    ClientSettings,
    Namespaces,
    OneNamespace,
    OneTable,
    Question,
    question_of,
)

NAMES = ("logs", "a*b", "..", "a/b", "%", "%2F", "ü😀", "a b", "?x=1", "#", "+", ";v=1", "v1", "namespaces")


def asked(path: str, query: str = "", *, method: str = "GET") -> Question:
    return question_of(CatalogRequest(method, path, query))


def test_each_route_is_a_question() -> None:
    assert asked("/v1/config") == ClientSettings("")
    assert asked("/v1/config", "warehouse=a%20b") == ClientSettings("a b")
    assert asked("/v1/namespaces") == Namespaces("", "")
    assert asked("/v1/lake/namespaces", "parent=lake") == Namespaces("lake", "lake")
    assert asked("/v1/namespaces/lake") == OneNamespace("lake", exists=False)
    assert asked("/v1/lake/namespaces/lake", method="HEAD") == OneNamespace("lake", exists=True)
    assert asked("/v1/namespaces/lake/tables") == AllTables("lake")
    assert asked("/v1/namespaces/lake/tables/logs") == OneTable("lake", "logs", exists=False)
    assert asked("/v1/namespaces/lake/tables/logs", method="HEAD") == OneTable("lake", "logs", exists=True)


def test_clients_are_told_of_each_route_that_is_there() -> None:
    for endpoint in ENDPOINTS:
        method, _, path = endpoint.partition(" ")
        path = path.replace("{prefix}", "lake").replace("{namespace}", "lake").replace("{table}", "logs")
        asked(path, method=method)


@pytest.mark.parametrize("name", NAMES)
def test_an_encoded_name_stays_one_name(name: str) -> None:
    path = f"/v1/namespaces/lake/tables/{quote(name, safe='')}"
    assert asked(path) == OneTable("lake", name, exists=False)
    assert asked(f"/v1/namespaces/{quote(name, safe='')}") == OneNamespace(name, exists=False)


@given(st.text(alphabet="a.*/%2F?#+&; \\\x00\x7fü\u202e😀", min_size=1, max_size=20))
def test_any_name_comes_back_as_it_was(name: str) -> None:
    question = asked(f"/v1/namespaces/lake/tables/{quote(name, safe='')}", method="HEAD")
    assert question == OneTable("lake", name, exists=True)


@given(
    st.text(alphabet="/.%2Ffev1namespc*\x00?é", max_size=40),
    st.sampled_from(["GET", "HEAD", "POST", "TRACE"]),
)
def test_any_path_is_a_question_or_a_refusal_in_one_line(path: str, method: str) -> None:
    said = ""
    try:
        question_of(CatalogRequest(method, f"/{path}", path))
    except (Refusal, InvalidInput) as error:
        said = str(error)
    assert "\n" not in said


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/v1", "/v1/", "/v2/config", "/v1/config/", "//v1/config", "/v1/namespaces/lake/views"),
        *("/v1/namespaces/lake/tables/logs/credentials", "/v1/namespaces/lake/tables/logs/plan"),
        *("/v1/oauth/tokens", "/v1/namespaces/lake/tables/a/b", "/v1/a/b/namespaces"),
    ],
)
def test_other_routes_do_not_exist(path: str) -> None:
    with pytest.raises(Refusal) as refusal:
        asked(path)
    assert (refusal.value.status, refusal.value.type) == (404, "NoSuchRouteException")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "get", ""])
def test_a_request_that_would_write_is_refused_on_every_route(method: str) -> None:
    for path in ("/v1/config", "/v1/namespaces", "/v1/namespaces/lake/tables/logs", "/v1/oauth/tokens"):
        with pytest.raises(Refusal, match="read-only") as refusal:
            asked(path, method=method)
        assert (refusal.value.status, refusal.value.type) == (406, "UnsupportedOperationException")


@pytest.mark.parametrize(
    "path", ["/v1/namespaces/%", "/v1/namespaces/%f", "/v1/namespaces/%zz", "/v1/namespaces/%ff"]
)
def test_a_name_that_is_encoded_wrongly_is_refused(path: str) -> None:
    with pytest.raises(InvalidInput, match="encode"):
        asked(path)


@pytest.mark.parametrize("namespace", ["a%1Fb", "other"])
def test_a_namespace_of_several_levels_or_beside_the_warehouse_does_not_exist(namespace: str) -> None:
    with pytest.raises(Refusal, match="does not exist") as refusal:
        asked(f"/v1/lake/namespaces/{namespace}/tables/logs")
    assert (refusal.value.status, refusal.value.type) == (404, "NoSuchNamespaceException")


def test_a_path_or_query_without_bound_is_refused() -> None:
    for path, query in (("/v1/" + "a" * MAX_PATH, ""), ("/v1/config", "a" * (MAX_PATH + 1))):
        with pytest.raises(InvalidInput, match="more than"):
            asked(path, query)


def test_a_parameter_is_given_once_and_as_utf_8() -> None:
    assert parameter("warehouse=%C3%BC&x", "warehouse") == "ü"
    for query in ("warehouse=a&warehouse=b", "warehouse=%ff"):
        with pytest.raises(InvalidInput):
            parameter(query, "warehouse")


def test_a_refusal_is_the_body_of_the_specification_in_one_line() -> None:
    response = refusal_response(Refusal(503, "ServiceUnavailableException", "the store\n waits"))
    error = {"message": "the store waits", "type": "ServiceUnavailableException", "code": 503}
    assert (response.status, json.loads(response.body)) == (503, {"error": error})
    assert response.headers["Retry-After"] == "5"
    assert refusal_response(Refusal.no_login("no"), with_body=False).body == b""
