"""The stores that the contract is held against: memory, a folder, and S3 (moto, on loopback)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from moto.server import ThreadedMotoServer

from lake_core.store import Store, open_store

BUCKET = "lakes"
_NUMBERS = itertools.count()


@dataclass(frozen=True)
class Place:
    """Where a store is; `open` gives another client of the same objects."""

    uri: str
    options: dict[str, Any] = field(default_factory=dict)

    def open(self) -> Store:
        return open_store(self.uri, self.options)


@pytest.fixture(scope="session")
def s3_options() -> Iterator[dict[str, Any]]:
    """An S3 server of this test run with one bucket, as fsspec is told of it."""
    from s3fs import S3FileSystem

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        options: dict[str, Any] = {
            "key": "test",
            "secret": "test",
            "client_kwargs": {"endpoint_url": f"http://{host}:{port}", "region_name": "us-east-1"},
            "config_kwargs": {"retries": {"max_attempts": 1}, "connect_timeout": 5, "read_timeout": 30},
        }
        S3FileSystem(**options).call_s3("create_bucket", Bucket=BUCKET)
        yield options
    finally:
        server.stop()


@pytest.fixture(params=["memory", "local", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """An empty store of each kind."""
    number = next(_NUMBERS)
    if request.param == "s3":
        return Place(f"s3://{BUCKET}/lake-{number}", request.getfixturevalue("s3_options"))
    return Place(f"memory://contract-{number}" if request.param == "memory" else str(tmp_path / "lake"))


@pytest.fixture
def store(place: Place) -> Store:
    return place.open()
