"""The count of an erasure: what names its records is in the body of a request, which no server logs."""

from __future__ import annotations

import asyncio

import httpx
import pyarrow as pa
import pytest

from log_lake.lake import Lake
from log_lake.stores.memory import MemoryStore

pytestmark = pytest.mark.airflow


def count_of(body: bytes, *, method: str = "POST", **headers: str) -> httpx.Response:
    """The answer of the app to a count, as a user who may start an erasure."""
    from airflow_lake.view.app import app_of, may_erase, may_read
    from log_lake.view.lakes import Lakes

    lake = Lake.create_on(MemoryStore())
    lake.create_pool("p", key="k").branch().append(pa.table({"k": [1, 2], "mail": ["ada@a", "bob@b"]}))
    app = app_of(Lakes(["it"], opener=lambda name: lake))
    for right in (may_read, may_erase):
        app.dependency_overrides[right.dependency] = lambda: None

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://view") as client:
            return await client.request(method, "/data/matching", content=body, headers=headers)

    return asyncio.run(ask())


def test_a_count_takes_its_records_from_the_body() -> None:
    named = b'{"lake": "it", "pool": "p", "where": "mail = \'ada@a\'", "key": null}'
    answer = count_of(named, **{"Content-Type": "application/json; charset=utf-8"})
    assert (answer.status_code, answer.json()["records"]) == (200, 1)
    assert count_of(b"", method="GET").status_code == 405, "an address would be logged"


@pytest.mark.parametrize(
    ("body", "content", "says"),
    [
        (b"", "application/json", "not as expected"),
        (b"[]", "application/json", "Expected `object`, got `array`"),
        (b"{}", "application/json", "missing required field `lake`"),
        (b'{"lake": "it", "pool": "p", "where": 4711}', "application/json", "got `int` - at `$.where`"),
        (b'{"lake": "it", "pool": "p", "low": ["1"]}', "application/json", "got `array` - at `$.low`"),
        (b'{"lake": "it", "pool": "p", "form": "1"}', "application/json", "unknown field `form`"),
        (b'{"lake": "it", "pool": "p", "key": "\xff"}', "application/json", "not as expected"),
        (b"[" * 60_000, "application/json", "not as expected"),
        (b" " * 70_000, "application/json", "more than 65,536 bytes"),
        (b"{}", "text/plain", "send it as application/json"),
        (b"{}", "application/x-www-form-urlencoded", "send it as application/json"),
    ],
)
def test_a_count_with_another_body_is_one_line(body: bytes, content: str, says: str) -> None:
    answer = count_of(body, **{"Content-Type": content})
    assert answer.status_code == 400
    assert says in answer.json()["detail"]
    assert "\n" not in answer.json()["detail"]
