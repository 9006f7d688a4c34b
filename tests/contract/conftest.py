"""The stores that the contract is held against.

Always: memory, a folder, S3 (moto, on loopback), Google (fake-gcs-server), and an S3 that ignores the condition of
a create-only put, with a lock on files in front of it.  With LAKE_TEST_CEPH=1 also a real S3, Ceph's gateway; with
LAKE_TEST_POSTGRES=1 also the lock on PostgreSQL.  What is asked for and missing is installed
(`tests.support.servers.daemons`).
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lake_core.store import Store
from log_lake.stores import open_store
from tests.support.servers.ceph import radosgw
from tests.support.servers.gcs import fake_gcs_server
from tests.support.servers.postgres import postgresql
from tests.support.servers.proxy import ALWAYS, Proxy, Request, without
from tests.support.servers.s3 import BUCKET, make_bucket, moto, s3_client

_NUMBERS = itertools.count()
_CEPH = ["ceph"] if os.environ.get("LAKE_TEST_CEPH") == "1" else []
_POSTGRES = ["postgresql-lock"] if os.environ.get("LAKE_TEST_POSTGRES") == "1" else []
CLOUDS = ["s3", "gcs", *_CEPH]
LOCKED = ["file-lock", *_POSTGRES]
PLACES = ["memory", "local", *CLOUDS, *LOCKED]


@dataclass(frozen=True)
class Place:
    """Where a store is; `open` gives another client of the same objects."""

    kind: str
    uri: str
    options: dict[str, Any] = field(default_factory=dict)

    def open(self) -> Store:
        return open_store(self.uri, self.options)

    @property
    def server(self) -> str:
        """The address of the server behind a cloud."""
        return str(self.options.get("endpoint_url") or self.options["client_kwargs"]["endpoint_url"])

    def at(self, url: str) -> Place:
        """The same place by another address: that of a proxy."""
        if self.kind == "gcs":
            return Place(self.kind, self.uri, {**self.options, "endpoint_url": url})
        client = {**self.options["client_kwargs"], "endpoint_url": url}
        return Place(self.kind, self.uri, {**self.options, "client_kwargs": client})


@pytest.fixture(scope="session")
def s3_options() -> Iterator[dict[str, Any]]:
    """moto's S3 server with one bucket."""
    with moto() as address:
        yield s3_client(address)


@pytest.fixture(scope="session")
def ceph_options() -> Iterator[dict[str, Any]]:
    """Ceph's gateway with one bucket."""
    with radosgw() as gateway:
        options = s3_client(gateway["endpoint_url"], gateway["key"], gateway["secret"])
        make_bucket(options)
        yield options


@pytest.fixture(scope="session")
def gcs_options() -> Iterator[dict[str, Any]]:
    """The emulator of Google's storage with one bucket."""
    from gcsfs import GCSFileSystem

    with fake_gcs_server() as address:
        options = {"endpoint_url": address, "token": "anon", "project": "lakes"}
        GCSFileSystem(**options).mkdir(BUCKET)
        yield options


@pytest.fixture(scope="session")
def overwriting_options(s3_options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """An S3 server that ignores `If-None-Match`: a proxy forgets it on the way to moto."""

    def is_conditional(request: Request) -> bool:
        return request.is_create

    with Proxy(s3_options["client_kwargs"]["endpoint_url"]) as proxy:
        proxy.on(is_conditional, without("If-None-Match"), times=ALWAYS)
        yield s3_client(proxy.url)


@pytest.fixture(scope="session")
def postgresql_address() -> Iterator[str]:
    """A PostgreSQL server."""
    with postgresql() as address:
        yield address


def empty_place(kind: str, request: pytest.FixtureRequest, folder: Path) -> Place:
    """An empty store of a kind."""
    number = next(_NUMBERS)
    if kind == "memory":
        return Place(kind, f"memory://contract-{number}")
    if kind == "local":
        return Place(kind, str(folder / "lake"))
    uri = f"{'gs' if kind == 'gcs' else 's3'}://{BUCKET}/lake-{number}"
    if kind in CLOUDS:
        return Place(kind, uri, request.getfixturevalue(f"{kind}_options"))
    lock = f"file://{folder}/locks" if kind == "file-lock" else request.getfixturevalue("postgresql_address")
    return Place(kind, uri, {**request.getfixturevalue("overwriting_options"), "lock": lock})


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """An empty store of each kind."""
    return empty_place(request.param, request, tmp_path)


@pytest.fixture(params=CLOUDS)
def cloud(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """An empty store of each kind that is reached by HTTP."""
    return empty_place(request.param, request, tmp_path)


@pytest.fixture
def store(place: Place) -> Store:
    return place.open()


@pytest.fixture
def proxy(cloud: Place) -> Iterator[Proxy]:
    """A proxy in front of the cloud's server."""
    with Proxy(cloud.server) as proxy:
        yield proxy
