"""The route that a request takes: what it asks, as a value, or why it is refused; pure.

| route | asks for |
|---|---|
| `GET /v1/config` | `ClientSettings` |
| `GET /v1/{prefix}/namespaces` | `Namespaces` |
| `GET`, `HEAD /v1/{prefix}/namespaces/{namespace}` | `OneNamespace` |
| `GET /v1/{prefix}/namespaces/{namespace}/tables` | `AllTables` |
| `GET`, `HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}` | `OneTable` |

The prefix is optional: it is the lake that the client named as its warehouse.
"""

from __future__ import annotations

from dataclasses import dataclass

from log_lake.iceberg_catalog.refusals import Refusal
from log_lake.iceberg_catalog.request import CatalogRequest, parameter, parts_of

LEVELS = "\x1f"
"""Stands between the levels of a namespace in a path; no lake has several."""

ENDPOINTS = (
    "GET /v1/{prefix}/namespaces",
    "GET /v1/{prefix}/namespaces/{namespace}",
    "HEAD /v1/{prefix}/namespaces/{namespace}",
    "GET /v1/{prefix}/namespaces/{namespace}/tables",
    "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}",
)
"""What clients are told that they may ask."""


@dataclass(frozen=True)
class ClientSettings:
    """The settings of a client; `warehouse` is the lake that it named, "" for all."""

    warehouse: str


@dataclass(frozen=True)
class Namespaces:
    """A request for the lakes.  `warehouse`: the only lake to list, "" for all.  `above`: list only namespaces
    below this one."""

    warehouse: str
    above: str


@dataclass(frozen=True)
class OneNamespace:
    """A request for one lake."""

    namespace: str
    exists: bool


@dataclass(frozen=True)
class AllTables:
    """A request for the list of a lake's pools."""

    namespace: str


@dataclass(frozen=True)
class OneTable:
    """A request for the table of a pool: `table` is POOL or POOL@NAME.  `exists`: only whether it exists."""

    namespace: str
    table: str
    exists: bool


Question = ClientSettings | Namespaces | OneNamespace | AllTables | OneTable


def question_of(request: CatalogRequest) -> Question:
    """Returns what the request asks.  Raises Refusal, and InvalidInput for a path or query that cannot be
    read."""
    parts = parts_of(request.path)
    if request.method not in ("GET", "HEAD"):
        raise Refusal(
            406,
            "UnsupportedOperationException",
            f"{request.method}: this catalog is read-only; change the lake by its own commands",
        )
    exists = request.method == "HEAD"
    match parts:
        case ("v1", "config") if not exists:
            return ClientSettings(parameter(request.query, "warehouse"))
        case ("v1", *rest):
            question = _below(tuple(rest), request, exists)
            if question is not None:
                return question
    raise Refusal(
        404, "NoSuchRouteException", f"{request.method}: this catalog has no such route; see docs/catalog.md"
    )


def _below(rest: tuple[str, ...], request: CatalogRequest, exists: bool) -> Question | None:
    warehouse = ""
    if rest[:1] != ("namespaces",) and rest[1:2] == ("namespaces",):
        warehouse, *below = rest
        rest = tuple(below)
    match rest:
        case ("namespaces",) if not exists:
            return Namespaces(warehouse, parameter(request.query, "parent"))
        case ("namespaces", namespace):
            return OneNamespace(_within(warehouse, namespace), exists)
        case ("namespaces", namespace, "tables") if not exists:
            return AllTables(_within(warehouse, namespace))
        case ("namespaces", namespace, "tables", table):
            return OneTable(_within(warehouse, namespace), table, exists)
    return None


def _within(warehouse: str, namespace: str) -> str:
    """Returns the namespace.  Raises Refusal if it is not in the warehouse."""
    if LEVELS in namespace or (warehouse and warehouse != namespace):
        raise Refusal.no_namespace(namespace)
    return namespace
