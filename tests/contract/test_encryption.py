"""What docs/trust.md says of encryption on the way: own certificates of a server, and of a lock's database."""

from __future__ import annotations

import contextlib
import json
import os
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psycopg
import pytest

from lake_core.errors import Unavailable
from log_lake.stores.locks import open_lock
from tests.support.repository import ROOT

pytestmark = pytest.mark.slow

READS = "from log_lake.stores import open_store; print(open_store('s3://lakes/x').get('a'))"
WRITES_EACH_WAY = """
import json, os
from log_lake.stores import open_store
store = open_store("s3://lakes/x", json.loads(os.environ["OPTIONS"]))
store.put("a", b"1")
store.create("b", b"2")
with store.open_output("c") as file:
    file.write(b"3")
print(store.get("a"))
"""
WRITES = "from log_lake.stores import open_store; open_store('s3://lakes/x').put('a', b'1')"


class Server(ThreadingHTTPServer):
    """Answers every request, and keeps what was asked."""

    asked: list[tuple[str, dict[str, str]]]


class Handler(BaseHTTPRequestHandler):
    """S3 as far as one object goes."""

    server: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer(b"hello")

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self._answer(b"")

    def _answer(self, body: bytes) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.asked.append((self.command, headers))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", '"1"')
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of 127.0.0.1 that nobody knows, with its key, in one file."""
    folder = tmp_path_factory.mktemp("tls")
    file, key = folder / "own.pem", folder / "own.key"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=own"),
            *("-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(file)),
        ],
        check=True,
        capture_output=True,
    )
    with file.open("a") as both:
        both.write(key.read_text())
    return file


@contextlib.contextmanager
def serving(certificate: Path | None = None) -> Iterator[Server]:
    """A server, with TLS if there is a certificate."""
    running = Server(("127.0.0.1", 0), Handler)
    running.asked = []
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        running.socket = context.wrap_socket(running.socket, server_side=True)
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    try:
        yield running
    finally:
        running.shutdown()
        running.server_close()
        thread.join()


def run(program: str, server: Server, **more: str) -> subprocess.CompletedProcess[str]:
    scheme = "https" if isinstance(server.socket, ssl.SSLSocket) else "http"
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "FSSPEC_"))},
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_ENDPOINT_URL": f"{scheme}://127.0.0.1:{server.server_address[1]}",
        "LAKE_STORE_TIMEOUT": "20s",
        **more,
    }
    return subprocess.run(
        [sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=False, timeout=600
    )


def test_a_certificate_of_your_own_is_known_by_its_file_and_refused_without(certificate: Path) -> None:
    with serving(certificate) as server:
        done = run(READS, server, AWS_CA_BUNDLE=str(certificate))
        assert (done.returncode, done.stdout.strip()) == (0, "b'hello'"), done.stderr
        server.asked.clear()
        refused = run(READS, server)
        assert refused.returncode
        assert "certificate" in refused.stderr.lower()
        assert server.asked == []


@pytest.mark.parametrize("asks", [False, True], ids=["by default", "if the options ask for it"])
def test_requests_ask_for_encryption_only_if_the_options_do(*, asks: bool) -> None:
    """Otherwise the bucket's default decides.  What the store sends back is read as it is: it decrypts."""
    (example,) = (
        line
        for line in (ROOT / "docs/trust.md").read_text().splitlines()
        if line.startswith("| S3, asked for")
    )
    options = json.loads(example.partition("`")[2].partition("`")[0].replace("KEY", "a-key")) if asks else {}
    with serving() as server:
        done = run(WRITES_EACH_WAY, server, OPTIONS=json.dumps(options))
        assert (done.returncode, done.stdout.strip()) == (0, "b'hello'"), done.stderr
        asked = {
            command: {
                tuple(sorted((name, text) for name, text in headers.items() if "-encryption" in name))
                for at, headers in server.asked
                if at == command
            }
            for command in ("GET", "PUT")
        }
    name = "x-amz-server-side-encryption"
    expected = (
        (name, "aws:kms"),
        (f"{name}-aws-kms-key-id", "a-key"),
        (f"{name}-bucket-key-enabled", "true"),
    )
    assert asked == {"GET": {()}, "PUT": {expected if asks else ()}}
    assert sum(command == "PUT" for command, _ in server.asked) == 3


def test_fsspecs_own_configuration_asks_for_encryption_too() -> None:
    asks = {"s3_additional_kwargs": {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "a-key"}}
    with serving() as server:
        done = run(WRITES, server, FSSPEC_S3=json.dumps(asks))
        assert done.returncode == 0, done.stderr
        ((command, headers),) = server.asked
    assert command == "PUT"
    assert headers["x-amz-server-side-encryption"] == "aws:kms"
    assert headers["x-amz-server-side-encryption-aws-kms-key-id"] == "a-key"


def test_a_lock_whose_server_has_no_certificate_is_refused_if_its_address_asks_for_one(
    postgresql_address: str,
) -> None:
    with psycopg.connect(postgresql_address):
        pass
    asked = f"{postgresql_address}{'&' if '?' in postgresql_address else '?'}sslmode=verify-full"
    with pytest.raises(Unavailable, match=r"SSL|root certificate"), open_lock(asked).hold("a"):
        pass
