"""`lake serve`: the catalog as pyiceberg's client sees it, who may ask, and what the command refuses."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest

pytest.importorskip("pyiceberg")

from log_lake.lake import Lake
from tests.support.command import INVALID_INPUT, NOT_FOUND, Command
from tests.support.iceberg import shown, values
from tests.support.served_catalog import ServedCatalog, serving_catalog

ODD = "a*..%2Fü.<b>"
TOKEN = "0123456789-abcdefgh"


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    lake = Lake.create(str(tmp_path_factory.mktemp("serve") / "lake"))
    for name in ("logs", ODD):
        pool = lake.create_pool(name, key="k")
        pool.branch().append(pa.table({"k": [1, 2, 3], "s": ["a", "b", None]}))
        pool.tag("v1")
        pool.branch().append(pa.table({"k": [2, 4], "s": ["c", "d"]}))
        pool.branch().delete(where="k = 3")
    lake.create_pool("overlap", key="k", kind="upsert")
    for number in range(2):
        lake.pool("overlap").branch().append(pa.table({"k": [1, number]}))
    return lake


@pytest.fixture(scope="module")
def served(there: Lake) -> Iterator[ServedCatalog]:
    with serving_catalog(there.store.uri, "--also", f"other={there.store.uri}") as served:
        yield served


@pytest.fixture(scope="module")
def token_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("token") / "token"
    file.write_text(f"{TOKEN}\n")
    return file


@pytest.fixture(scope="module")
def guarded(there: Lake, token_file: Path) -> Iterator[ServedCatalog]:
    with serving_catalog(there.store.uri, "--token-file", str(token_file), "--host", "127.0.0.2") as served:
        yield served


def client(served: ServedCatalog, **properties: str) -> Any:
    from pyiceberg.catalog.rest import RestCatalog

    return RestCatalog("lake", uri=served.address, **properties)


@pytest.mark.parametrize("name", ["logs", "logs@v1", ODD, f"{ODD}@v1"])
def test_pyiceberg_reads_what_the_lake_gives(there: Lake, served: ServedCatalog, name: str) -> None:
    pool, _, tag = name.partition("@")
    table = client(served).load_table(("lake", name)).scan().to_arrow()
    assert values(table.to_pylist()) == shown(there.pool(pool).at(tag or "main"))
    assert client(served).table_exists(("lake", name))


def test_pyiceberg_finds_all_lakes_and_pools(served: ServedCatalog) -> None:
    catalog = client(served)
    assert catalog.list_namespaces() == [("lake",), ("other",)]
    assert catalog.list_tables("lake") == [("lake", ODD), ("lake", "logs"), ("lake", "overlap")]
    assert catalog.namespace_exists("other")
    assert not catalog.namespace_exists("nope")
    assert not catalog.table_exists(("lake", "nope"))
    one = client(served, warehouse="other")
    assert one.list_namespaces() == [("other",)]
    assert one.load_table(("other", "logs")).scan().to_arrow().num_rows == 4


def test_pyiceberg_shows_what_the_lake_says(served: ServedCatalog) -> None:
    from pyiceberg.exceptions import BadRequestError, NoSuchTableError

    with pytest.raises(BadRequestError, match="lake compact overlap --strategy full"):
        client(served).load_table(("lake", "overlap"))
    with pytest.raises(NoSuchTableError, match="tag it first"):
        client(served).load_table(("lake", "logs@1"))


def test_a_client_that_would_write_is_refused_and_nothing_changes(there: Lake, served: ServedCatalog) -> None:
    before = there.pool("logs").at().version
    path = "/v1/namespaces/lake/tables/logs"
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        for asked in (
            path,
            "/v1/namespaces",
            "/v1/transactions/commit",
            "/v1/tables/rename",
            f"{path}/metrics",
        ):
            status, body = served.ask(asked, method=method)
            assert (status, json.loads(body)["error"]["type"]) == (406, "UnsupportedOperationException")
    assert there.pool("logs").at().version == before


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "", "[::1]:{port}"])
def test_a_name_that_leads_here_by_another_host_is_refused(served: ServedCatalog, host: str) -> None:
    port = served.address.rpartition(":")[2]
    status, body = served.ask("/v1/config", Host=host.format(port=port))
    assert (status, json.loads(body)["error"]["type"]) == (403, "ForbiddenException")


@pytest.mark.parametrize("headers", [{"Sec_Fetch_Site": "cross-site"}, {"Origin": "https://evil.example"}])
def test_a_page_of_another_origin_is_refused(served: ServedCatalog, headers: dict[str, str]) -> None:
    assert served.ask("/v1/namespaces", **headers)[0] == 403


@pytest.mark.parametrize(
    "path",
    [
        "/v1/config",
        "/v1/namespaces",
        "/v1/namespaces/lake/tables",
        "/v1/namespaces/lake/tables/logs",
        "/v1/x",
        "/",
    ],
)
def test_without_the_token_nothing_is_answered(guarded: ServedCatalog, path: str) -> None:
    for headers in (
        {},
        {"Authorization": "Bearer "},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": TOKEN},
    ):
        status, body = guarded.ask(path, **headers)
        assert (status, json.loads(body)["error"]["type"]) == (401, "NotAuthorizedException")
        assert b"logs" not in body
        assert guarded.ask(path, method="HEAD", **headers) == (401, b"")


def test_with_the_token_the_client_reads(there: Lake, guarded: ServedCatalog) -> None:
    table = client(guarded, token=TOKEN).load_table(("lake", "logs")).scan().to_arrow()
    assert values(table.to_pylist()) == shown(there.pool("logs").at())


def test_the_word_before_the_token_may_be_in_any_case(guarded: ServedCatalog) -> None:
    for word in ("bearer", "BEARER"):
        assert guarded.ask("/v1/config", Authorization=f"{word} {TOKEN}")[0] == 200
    assert guarded.ask("/v1/config", Authorization=f"Basic {TOKEN}")[0] == 401


def test_at_port_80_a_client_may_leave_the_port_out() -> None:
    from log_lake.iceberg_catalog.refusals import Refusal
    from log_lake.iceberg_catalog.serving import Admitting

    for host in (b"127.0.0.1", b"localhost", b"localhost:80"):
        Admitting(host="127.0.0.1", port=80, callers=())({b"host": host})
    for host, port in ((b"evil.example", 80), (b"localhost", 8181)):
        with pytest.raises(Refusal, match="another host"):
            Admitting(host="127.0.0.1", port=port, callers=())({b"host": host})


def test_connections_have_a_bound(there: Lake) -> None:
    from log_lake.iceberg_catalog.serving import MAX_CONNECTIONS

    with serving_catalog(there.store.uri, "--read-only") as served, contextlib.ExitStack() as idle:
        place = urlsplit(served.address)
        for _ in range(MAX_CONNECTIONS):
            idle.enter_context(socket.create_connection((place.hostname, place.port), timeout=60))
        assert served.ask("/v1/config")[0] == 503


def _raw(served: ServedCatalog, request: str) -> bytes:
    """What the server sends back until it ends the connection."""
    place = urlsplit(served.address)
    told = b""
    with (
        socket.create_connection((place.hostname, place.port), timeout=60) as client,
        contextlib.suppress(ConnectionError),  # it ends without reading the rest
    ):
        client.sendall(request.replace("HERE", place.netloc).encode())
        while part := client.recv(1 << 16):
            told += part
    return told


@pytest.mark.parametrize(
    "headers",
    ["Host: HERE\r\nX: " + "x" * 2_000_000, "Host: evil.example\r\nHost: HERE\r\n\r\n", "\r\n"],
    ids=["a header without an end", "two hosts", "no host"],
)
def test_a_request_that_is_none_ends_its_connection(served: ServedCatalog, headers: str) -> None:
    told = _raw(served, f"GET /v1/config HTTP/1.1\r\n{headers}")
    assert told[:12] in (b"", b"HTTP/1.1 400")


def test_a_slash_that_is_encoded_or_dots_lead_nowhere_else(served: ServedCatalog) -> None:
    for path in ("..%2F..%2Flogs", "%2e%2e/lake/tables/logs", "..", "logs%00", "%2A", "l*s"):
        assert served.ask(f"/v1/namespaces/lake/tables/{path}")[0] == 404
    assert served.ask("/v1/namespaces/lake/tables/%ZZ")[0] == 400
    status, _ = served.ask("/v1/namespaces/lake/tables/a%2A..%252F%C3%BC.%3Cb%3E", method="HEAD")
    assert status == 204


def test_the_server_ends_at_a_signal(there: Lake) -> None:
    with serving_catalog(there.store.uri, "--read-only") as served:
        assert served.ask("/v1/config")[0] == 200
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(600) == 0


def test_what_the_command_refuses(lake: Command, tmp_path: Path) -> None:
    short = tmp_path / "short"
    short.write_text("abc")
    uri = lake.uri
    for words, says in (
        (["--host", "0.0.0.0"], "--token-file"),
        (["--host", "example.org"], "an address of this machine"),
        (["--token-file", str(short)], "16 to 4,096 characters"),
        (["--token-file", str(tmp_path / "none")], "No such file"),
        (["--token-file", ""], "--token-file is empty"),
        (["--also", "x"], "NAME=URI"),
        (["--also", f"lake={uri}"], "given once"),
        (["--also", f"a/b={uri}"], "NAME=URI"),
    ):
        assert says in lake.fails(INVALID_INPUT, "serve", *words)
    nowhere = str(tmp_path / "nowhere")
    assert "there is no lake" in lake.fails(NOT_FOUND, "serve", "--port", "0", "--also", f"x={nowhere}")
