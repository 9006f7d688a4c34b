"""openapi.json is right by the specification, and says what the routes do; the page has no script."""

from __future__ import annotations

import json
from typing import Any

import pytest

from log_lake.iceberg_catalog.callers import CallerRole
from log_lake.loading.options import FORMATS
from log_lake.service import description
from log_lake.service.endings import QueryEnding
from log_lake.service.formats import ANSWERS
from log_lake.service.handing_over import HandedOver
from log_lake.service.problems import Problem, ProblemBody
from log_lake.service.routes import asked_by, is_ours, role_for
from log_lake.service.writes import PoolCreated, PoolDropped

DOCUMENT: dict[str, Any] = json.loads(description.document()[0])
OPERATIONS = [
    (method.upper(), path, operation)
    for path, there in DOCUMENT["paths"].items()
    for method, operation in there.items()
    if method != "parameters"
]


def test_the_document_is_valid() -> None:
    validator = pytest.importorskip("openapi_spec_validator")
    validator.validate(DOCUMENT)


@pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS)
def test_each_operation_is_a_route_with_its_parameters(method: str, path: str, operation: Any) -> None:
    if description.is_page(path) is not None:
        assert operation["security"] == []
        return
    assert is_ours(path)
    values = {"dry_run": "true", "bad_records": "fail", "format": "csv"}
    names = [one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"]
    role = role_for(asked_by(method, path, "&".join(f"{name}={values.get(name, 'x')}" for name in names)))
    if role > CallerRole.READER:
        assert f"For {role.name.lower()}s." in operation["description"]
    assert {"401", "403", "404", "503"} <= operation["responses"].keys()
    needed = [
        one["name"] for one in operation.get("parameters", ()) if one["in"] == "query" and one["required"]
    ]
    for name in needed:
        with pytest.raises(Problem, match=name):
            asked_by(method, path, "&".join(f"{other}=x" for other in needed if other != name))


def test_the_document_has_the_formats_and_fields_of_the_code() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    for kind, name in (
        (ProblemBody, "Problem"),
        (QueryEnding, "QueryEnding"),
        (HandedOver, "HandedOver"),
        (PoolCreated, "Created"),
        (PoolDropped, "Dropped"),
    ):
        assert set(schemas[name]["properties"]) == set(kind.__struct_fields__)
    query = DOCUMENT["paths"]["/lakes/{lake}/query"]["post"]
    (accept,) = [one for one in query["parameters"] if one["name"] == "Accept"]
    assert accept["schema"]["enum"] == [one.media_type for one in ANSWERS]
    load = DOCUMENT["paths"]["/lakes/{lake}/pools/{pool}/load"]["post"]
    (format,) = [one for one in load["parameters"] if one["name"] == "format"]
    assert tuple(format["schema"]["enum"]) == FORMATS


def test_the_page_shows_every_operation_and_loads_nothing() -> None:
    body, kind = description.page()
    text = body.decode()
    assert kind.startswith("text/html")
    for method, path, _ in OPERATIONS:
        assert f"<code>{method} {path}</code>" in text
    assert "<script" not in text
    assert "http:" not in text
    assert "https:" not in text
    assert "default-src 'none'" in description.HEADERS["Content-Security-Policy"]
