"""What only a server can answer: refusals, and a server that is not there."""

from __future__ import annotations

from typing import Any

import pytest

from lake_core.errors import Unavailable
from lake_core.store import Store
from log_lake.lake import Lake
from log_lake.stores import open_store
from tests.contract.conftest import Place
from tests.support.servers.s3 import BUCKET


def test_a_bucket_that_does_not_exist_refuses_and_nothing_is_unknown(cloud: Place) -> None:
    store = open_store(cloud.uri.replace(BUCKET, "no-such-bucket"), cloud.options)
    with pytest.raises(Unavailable, match=r"://no-such-bucket/lake-\d+/a: "):
        store.create("a", b"x")
    with pytest.raises(Unavailable):
        store.put("a", b"x")
    with pytest.raises(Unavailable):
        Lake.create_on(store)


@pytest.fixture
def absent(s3_options: dict[str, Any]) -> Store:
    """A store whose server does not answer: nothing listens on the discard port of loopback."""
    client = {**s3_options["client_kwargs"], "endpoint_url": "http://127.0.0.1:9"}
    config = {"retries": {"max_attempts": 0}, "connect_timeout": 2}
    store = open_store(
        f"s3://{BUCKET}/lake", {**s3_options, "client_kwargs": client, "config_kwargs": config}
    )
    store._fs.retries = 1  # type: ignore[attr-defined]  # s3fs repeats on top of the client
    return store


def test_a_create_that_no_server_takes_is_unavailable_since_it_was_never_sent(absent: Store) -> None:
    with pytest.raises(Unavailable):
        absent.create("a", b"x")


def test_every_other_request_that_nobody_answers_is_unavailable(absent: Store) -> None:
    for ask in (
        lambda: absent.get("a"),
        lambda: absent.put("a", b"x"),
        lambda: list(absent.list("a")),
        lambda: absent.delete("a"),
        lambda: absent.open_input("a"),
    ):
        with pytest.raises(Unavailable):
            ask()
