"""Runs moto's S3 server on loopback, and has the options by which clients reach an S3 server, and the bucket of
the tests."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

from moto.s3.responses import S3Response
from moto.server import ThreadedMotoServer

BUCKET = "lakes"
REGION = "us-east-1"


@contextlib.contextmanager
def moto() -> Iterator[str]:
    """Runs moto's S3 server with one bucket while the block runs. Yields its address."""
    put = S3Response.put_object
    S3Response.put_object = _one_at_a_time(put)  # type: ignore[method-assign]
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        address = f"http://{host}:{port}"
        make_bucket(s3_client(address))
        yield address
    finally:
        server.stop()
        S3Response.put_object = put  # type: ignore[method-assign]


def _one_at_a_time(put: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Returns `put` under a lock. moto first checks whether an object exists and then puts it, so of two threads
    both could win."""
    lock = threading.Lock()

    def locked(response: Any) -> Any:
        with lock:
            return put(response)

    return locked


def s3_client(url: str, key: str = "test", secret: str = "test") -> dict[str, Any]:
    """The options with which fsspec reaches an S3 server on loopback."""
    return {
        "key": key,
        "secret": secret,
        "client_kwargs": {"endpoint_url": url, "region_name": REGION},
        "config_kwargs": {"retries": {"max_attempts": 1}, "connect_timeout": 5, "read_timeout": 30},
    }


def make_bucket(options: dict[str, Any]) -> None:
    """Makes the bucket of the tests."""
    from s3fs import S3FileSystem

    S3FileSystem(**options).call_s3("create_bucket", Bucket=BUCKET)


def options_of_environment() -> dict[str, Any]:
    """The options of LAKE_S3 (JSON), with which a program that a test starts reaches the store; nothing if it is
    not set."""
    return dict(json.loads(os.environ.get("LAKE_S3", "{}")))
