"""The answer of the catalog to a request: lakes are namespaces, pools are tables.

The list of namespaces opens no lake, so a lake that cannot be read hides no other.
"""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import quote

import msgspec

from lake_core.errors import LakeError, NotFound, Unavailable
from log_lake.iceberg_catalog.ages import PublicationAges
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
from log_lake.iceberg_catalog.request import JSON, CatalogResponse
from log_lake.iceberg_catalog.routes import (
    ENDPOINTS,
    AllTables,
    ClientSettings,
    Namespaces,
    OneNamespace,
    OneTable,
)
from log_lake.iceberg_catalog.tables import Loaded, loaded, table_names, table_of
from log_lake.lake import Lake
from log_lake.view.lakes import Lakes


class IcebergCatalog:
    """The catalog over several lakes; safe to use from several threads."""

    def __init__(self, lakes: Lakes) -> None:
        self._lakes = lakes
        self._ages = PublicationAges()
        self._labels = {choice.key: choice.label for choice in lakes.choices}

    @property
    def namespaces(self) -> Collection[str]:
        """The names of the lakes."""
        return self._labels.keys()

    def answer(self, question: ClientSettings | Namespaces | OneNamespace) -> CatalogResponse:
        """Returns the answer to a question for which no lake is opened.  Raises Refusal."""
        match question:
            case ClientSettings(warehouse):
                return self._settings(warehouse)
            case Namespaces(warehouse, above):
                return self._namespaces(warehouse, above)
            case OneNamespace(namespace, exists):
                self.check(namespace)
                properties = {"lake": self._labels[namespace]}
                return _found(exists, Namespace((namespace,), properties))

    def read(self, question: AllTables | OneTable) -> CatalogResponse:
        """Returns the answer with the pools of a lake, or the answer that a table exists.  Raises Refusal,
        LakeError."""
        lake = self._lake(question.namespace)
        match question:
            case AllTables(namespace):
                return _answer(ListedTables([Identifier((namespace,), name) for name in table_names(lake)]))
            case OneTable(_, name):
                table_of(lake, name)
                return CatalogResponse(204)

    def loaded(self, question: OneTable) -> Loaded:
        """Returns the table, published first if it lags behind.  Raises Refusal, LakeError."""
        return loaded(table_of(self._lake(question.namespace), question.table), self._ages)

    def refusal(self, error: LakeError | Refusal, *, with_body: bool) -> CatalogResponse:
        """Returns the error as an answer, without possible secrets in the address of a lake."""
        return refusal_response(
            refused(error), text=self._lakes.without_users(str(error)), with_body=with_body
        )

    def _settings(self, warehouse: str) -> CatalogResponse:
        if not warehouse:
            return _answer(Config({}, {}, ENDPOINTS))
        self.check(warehouse)
        return _answer(Config({}, {"prefix": quote(warehouse, safe="")}, ENDPOINTS))

    def _namespaces(self, warehouse: str, above: str) -> CatalogResponse:
        if warehouse:
            self.check(warehouse)
        if above:
            self.check(above)
            return _answer(ListedNamespaces([]))
        names = [warehouse] if warehouse else list(self._labels)
        return _answer(ListedNamespaces([(name,) for name in names]))

    def check(self, namespace: str) -> None:
        """Raises Refusal if there is no such namespace."""
        if namespace not in self._labels:
            raise Refusal.no_namespace(namespace)

    def _lake(self, namespace: str) -> Lake:
        self.check(namespace)
        try:
            return self._lakes.shown(namespace)[0]
        except NotFound as error:  # its namespace exists, so no client may take this for a missing table
            raise Unavailable(str(error)) from error


def table_response(table: Loaded, *, etag: str) -> CatalogResponse:
    """Returns the answer with the table; or status 304 if `etag`, which the client sent, shows that it has this
    table."""
    tag = _tag(table)
    if etag == tag:
        return CatalogResponse(304, headers={"ETag": tag})
    body = LoadedTable(table.location, msgspec.Raw(table.text), table.behind)
    return CatalogResponse(200, encoded(body), {"Content-Type": JSON, "ETag": tag})


def _tag(table: Loaded) -> str:
    """Returns the ETag of a table.  It changes if the table has other metadata or another lag."""
    behind = ",".join(table.behind.values())
    return f'"{quote(table.location, safe="/")}{behind and f";{behind}"}"'


def _found(exists: bool, body: msgspec.Struct) -> CatalogResponse:
    return CatalogResponse(204) if exists else _answer(body)


def _answer(body: msgspec.Struct) -> CatalogResponse:
    return CatalogResponse(200, encoded(body), {"Content-Type": JSON})
