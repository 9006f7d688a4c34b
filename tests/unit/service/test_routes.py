"""Requests to the service become what they ask, or one clear line."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake_core.errors import InvalidInput
from log_lake.iceberg_catalog.callers import CallerRole
from log_lake.service.formats import ANSWERS, answer_format, body_format, media_type
from log_lake.service.problems import Problem
from log_lake.service.routes import (
    EndingAsked,
    Load,
    PoolToCreate,
    PoolToDrop,
    Query,
    asked_by,
    is_ours,
    role_for,
)

LOAD = "/lakes/l/pools/p/load"


def test_each_route_is_asked_of_one_role() -> None:
    load = Load("l", "p", "t", "m", "b", "csv", {"csv.null": "-", "type.k": "int64"})
    for method, path, query, asked, role in (
        ("POST", "/lakes/l/query", "", Query("l"), CallerRole.READER),
        (
            "POST",
            "/lakes/l/query",
            "token=t&message=m&dry_run=true",
            Query("l", "t", "m", True),
            CallerRole.READER,
        ),
        ("GET", "/queries/x", "", EndingAsked("x"), CallerRole.READER),
        (
            "POST",
            LOAD,
            "token=t&message=m&branch=b&format=csv&csv.null=-&type.k=int64",
            load,
            CallerRole.WRITER,
        ),
        (
            "PUT",
            "/lakes/l/pools/p",
            "key=a,b:desc",
            PoolToCreate("l", "p", "a,b:desc", "append"),
            CallerRole.KEEPER,
        ),
        ("DELETE", "/lakes/l/pools/p", "", PoolToDrop("l", "p"), CallerRole.KEEPER),
    ):
        assert asked_by(method, path, query) == asked
        assert role_for(asked) is role
        assert is_ours(path)
    assert not any(map(is_ours, ("/", "/v1/config", "/v1/namespaces/lakes", "/metrics", "/lakesx")))


@pytest.mark.parametrize(
    ("method", "path", "query", "status", "says"),
    [
        ("GET", "/lakes/l/query", "", 405, "takes POST"),
        ("POST", "/lakes/l/pools/p", "", 405, "takes PUT and DELETE"),
        ("HEAD", "/queries/x", "", 405, "takes GET"),
        ("POST", "/lakes", "", 404, "no such route"),
        ("POST", "/lakes/l/query/", "", 404, "no such route"),
        ("POST", "/lakes/l/query", "sql=x", 400, "'sql' is not known"),
        ("POST", "/lakes/l/query", "dry_run=yes", 400, "true or false"),
        ("POST", "/lakes/l/query", "token=a&token=b", 400, "twice"),
        ("POST", "/lakes/l/query", "token=%ff", 400, "cannot be read"),
        ("POST", "/lakes/l/query", "token=" + "a" * 9_000, 400, "shorten it"),
        ("POST", LOAD, "", 400, "token: a load needs one"),
        ("POST", LOAD, "token=", 400, "token: a load needs one"),
        ("POST", LOAD, "token=t&expansion.max=1000000", 400, "'expansion.max' is not known"),
        ("POST", LOAD, "token=t&load.memory=1TiB", 400, "'load.memory' is not known"),
        ("PUT", "/lakes/l/pools/p", "", 400, "add ?key=FIELD"),
        ("PUT", "/lakes/l/pools/p", "key=k&ingest.source=/etc/", 400, "'ingest.source' is not known"),
    ],
)
def test_what_is_no_route_gets_one_line(method: str, path: str, query: str, status: int, says: str) -> None:
    with pytest.raises(Problem) as problem:
        asked_by(method, path, query)
    assert problem.value.status == status
    assert says in str(problem.value)


@given(st.text(alphabet="a.*/%2F?#+&; \\\x00ü\u202e😀", min_size=1, max_size=20))
def test_any_name_of_a_pool_comes_back_as_it_was(name: str) -> None:
    asked = asked_by("DELETE", f"/lakes/l/pools/{quote(name, safe='')}", "")
    assert asked == PoolToDrop("l", name)


@given(st.text(alphabet="/.%2Flakesqury\x00é=&", max_size=40), st.sampled_from(["GET", "POST", "PUT", ""]))
def test_any_path_is_asked_or_refused(path: str, method: str) -> None:
    said = "asked"
    try:
        asked_by(method, f"/lakes/{path}", path)
    except (Problem, InvalidInput) as error:
        said = str(error)
    assert said


@pytest.mark.parametrize(
    ("accept", "name"),
    [
        ("", "json"),
        ("*/*", "json"),
        ("text/csv", "csv"),
        ("TEXT/CSV; charset=utf-8", "csv"),
        ("application/vnd.apache.arrow.stream", "arrow"),
        ("text/html, application/jsonl;q=0.5, text/csv;q=0.9", "csv"),
        ("text/csv;q=0, */*;q=0.1", "json"),
    ],
)
def test_the_answer_has_the_format_that_the_client_likes_best(accept: str, name: str) -> None:
    assert answer_format(accept).name == name


@pytest.mark.parametrize("accept", ["text/html", "application/json", "text/csv;q=0", "x"])
def test_a_client_that_takes_no_format_is_told_all(accept: str) -> None:
    with pytest.raises(Problem) as problem:
        answer_format(accept)
    assert problem.value.status == 406
    assert all(one.media_type in str(problem.value) for one in ANSWERS)


def test_the_format_of_a_body_is_that_of_its_type_unless_the_client_says_it() -> None:
    assert body_format("text/csv; charset=utf-8", "") == "csv"
    assert body_format("application/x-www-form-urlencoded", "") == "auto"  # curl's own
    assert body_format("text/csv", "zson") == "zson"
    assert media_type("Text/URI-List ; x=y") == "text/uri-list"
    with pytest.raises(Problem, match="a format is one of"):
        body_format("", "xml")
