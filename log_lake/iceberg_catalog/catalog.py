"""The answer of the catalog to a request: lakes are namespaces, pools are tables.

The list of namespaces opens no lake, so a lake that cannot be read hides no other.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass, field
from urllib.parse import quote

import msgspec

from lake_core.errors import LakeError, NotFound, Unavailable
from log_lake.iceberg_catalog.answers import (
    Config,
    Identifier,
    ListedNamespaces,
    ListedTables,
    LoadedTable,
    Namespace,
    encoded,
)
from log_lake.iceberg_catalog.refusals import Refusal, refusal_response, refused
from log_lake.iceberg_catalog.request import JSON, CatalogRequest, CatalogResponse
from log_lake.iceberg_catalog.routes import (
    ENDPOINTS,
    AllTables,
    ClientSettings,
    Namespaces,
    OneNamespace,
    OneTable,
    Question,
)
from log_lake.iceberg_catalog.tables import Loaded, loaded, table_names, table_of
from log_lake.lake import Lake
from log_lake.view.lakes import Lakes


@dataclass
class _Turns:
    """Lets one thread at a time publish a table; the others then find it published."""

    turns: dict[tuple[str, str], threading.Lock] = field(default_factory=dict)
    changing: threading.Lock = field(default_factory=threading.Lock)

    def of(self, namespace: str, table: str) -> threading.Lock:
        """The lock of a table; only names of tables that exist may be given, so that the locks are few."""
        with self.changing:
            return self.turns.setdefault((namespace, table), threading.Lock())


class IcebergCatalog:
    """The catalog over several lakes; safe to use from several threads."""

    def __init__(self, lakes: Lakes) -> None:
        self._lakes = lakes
        self._labels = {choice.key: choice.label for choice in lakes.choices}
        self._turns = _Turns()

    @property
    def namespaces(self) -> Collection[str]:
        """The names of the lakes."""
        return self._labels.keys()

    def answer(self, question: Question, request: CatalogRequest) -> CatalogResponse:
        """The answer to a question.  Raises LakeError."""
        match question:
            case ClientSettings(warehouse):
                return self._settings(warehouse)
            case Namespaces(warehouse, above):
                return self._namespaces(warehouse, above)
            case OneNamespace(namespace, exists):
                self._check(namespace)
                properties = {"lake": self._labels[namespace]}
                return _found(exists, Namespace((namespace,), properties))
            case AllTables(namespace):
                names = table_names(self._lake(namespace))
                return _answer(ListedTables([Identifier((namespace,), name) for name in names]))
            case OneTable(namespace, name, exists):
                return self._table(namespace, name, exists, request.etag)

    def refusal(self, error: LakeError | Refusal, *, with_body: bool) -> CatalogResponse:
        """The answer that says the error, without what may be a secret in the address of a lake."""
        return refusal_response(
            refused(error), text=self._lakes.without_users(str(error)), with_body=with_body
        )

    def _settings(self, warehouse: str) -> CatalogResponse:
        if not warehouse:
            return _answer(Config({}, {}, ENDPOINTS))
        self._check(warehouse)
        return _answer(Config({}, {"prefix": quote(warehouse, safe="")}, ENDPOINTS))

    def _namespaces(self, warehouse: str, above: str) -> CatalogResponse:
        if warehouse:
            self._check(warehouse)
        if above:
            self._check(above)
            return _answer(ListedNamespaces([]))
        names = [warehouse] if warehouse else list(self._labels)
        return _answer(ListedNamespaces([(name,) for name in names]))

    def _check(self, namespace: str) -> None:
        """Raises Refusal if there is no such namespace."""
        if namespace not in self._labels:
            raise Refusal.no_namespace(namespace)

    def _lake(self, namespace: str) -> Lake:
        self._check(namespace)
        try:
            return self._lakes.shown(namespace)[0]
        except NotFound as error:  # its namespace exists, so no client may take this for a missing table
            raise Unavailable(str(error)) from error

    def _table(self, namespace: str, name: str, exists: bool, etag: str) -> CatalogResponse:
        table = table_of(self._lake(namespace), name)
        if exists:
            return CatalogResponse(204)
        with self._turns.of(namespace, table.name):
            table_now = loaded(table)
        tag = _tag(table_now)
        if etag == tag:
            return CatalogResponse(304, headers={"ETag": tag})
        body = LoadedTable(table_now.location, msgspec.Raw(table_now.text), table_now.behind)
        return CatalogResponse(200, encoded(body), {"Content-Type": JSON, "ETag": tag})


def _tag(table: Loaded) -> str:
    """The ETag of a table: another number of its metadata, or another lag, is another answer."""
    behind = ",".join(table.behind.values())
    return f'"{quote(table.location, safe="/")}{behind and f";{behind}"}"'


def _found(exists: bool, body: msgspec.Struct) -> CatalogResponse:
    return CatalogResponse(204) if exists else _answer(body)


def _answer(body: msgspec.Struct) -> CatalogResponse:
    return CatalogResponse(200, encoded(body), {"Content-Type": JSON})
