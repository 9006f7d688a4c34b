"""What the catalog answers over real lakes in folders, by pyiceberg's models; sound lakes beside broken ones."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import shutil
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest

pytest.importorskip("pyiceberg")

from lake_core.errors import Unavailable
from lake_core.ids import IdSource
from log_lake.iceberg_catalog.ages import SECONDS
from log_lake.iceberg_catalog.app import THREADS, Answering
from log_lake.iceberg_catalog.catalog import IcebergCatalog
from log_lake.iceberg_catalog.request import CatalogRequest, CatalogResponse
from log_lake.iceberg_catalog.routes import OneTable
from log_lake.iceberg_catalog.tables import Loaded
from log_lake.iceberg_catalog.turns import Turns
from log_lake.lake import Lake
from log_lake.view.lakes import Lakes
from log_lake.view.listening import open_to_read
from tests.support.iceberg import read_table, shown, values

ODD = "a*..%2Fü.<b>+;&?#"


def append(lake: Lake, name: str, *loads: dict[str, Any], **options: Any) -> None:
    pool = lake.create_pool(name, key="k", **options)
    for load in loads:
        pool.branch().append(pa.table(load))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake.create(str(tmp_path / "lake"))
    append(lake, "logs", {"k": [1, 2], "s": ["a", "b"]}, {"k": [2, 3], "s": ["c", "d"]})
    return lake


def served(**lakes: str) -> Answering:
    return Answering(IcebergCatalog(Lakes(lakes)))


def ask(answering: Answering, path: str, *, method: str = "GET", etag: str = "") -> CatalogResponse:
    return asyncio.run(answering.answer(CatalogRequest(method, path, "", etag)))


def table_path(name: str, namespace: str = "lake") -> str:
    return f"/v1/namespaces/{namespace}/tables/{quote(name, safe='')}"


def location(response: CatalogResponse) -> str:
    assert response.status == 200, response.body
    return str(json.loads(response.body)["metadata-location"])


def error(response: CatalogResponse) -> tuple[int, str]:
    """The status and the message, which is one line."""
    body = json.loads(response.body)["error"]
    assert body["code"] == response.status
    assert "\n" not in body["message"]
    return response.status, body["message"]


def test_a_table_is_published_when_it_is_first_asked_for_and_never_lags_behind(lake: Lake) -> None:
    answering, pool = served(lake=lake.store.uri), lake.pool("logs")
    for _ in range(3):
        table = read_table(location(ask(answering, table_path("logs"))))
        assert values(table.to_pylist()) == shown(pool.at())
        pool.branch().append(pa.table({"k": [9], "s": ["new"]}))
        pool.branch().delete(where="k = 2")


def test_the_answer_is_what_pyiceberg_expects(lake: Lake) -> None:
    from pyiceberg.catalog import rest

    answering = served(lake=lake.store.uri)
    config = rest.ConfigResponse.model_validate_json(ask(answering, "/v1/config").body)
    assert len(config.endpoints or ()) == 6
    tables = rest.ListTablesResponse.model_validate_json(ask(answering, "/v1/namespaces/lake/tables").body)
    assert [one.name for one in tables.identifiers] == ["logs"]
    table = rest.TableResponse.model_validate_json(ask(answering, table_path("logs")).body)
    assert (table.config, table.storage_credentials) == ({}, [])
    assert table.metadata.location in (table.metadata_location or "")
    assert ask(answering, "/v1/namespaces/lake").status == 200
    listed = rest.ListNamespaceResponse.model_validate_json(ask(answering, "/v1/namespaces").body)
    assert listed.namespaces == [("lake",)]


def test_a_branch_and_a_tag_are_tables_of_their_own(lake: Lake) -> None:
    answering, pool = served(lake=lake.store.uri), lake.pool("logs")
    pool.tag("v1", at="1")
    pool.create_branch("dév")
    pool.branch("dév").append(pa.table({"k": [9], "s": ["dev"]}))
    for ref in ("main", "v1", "dév"):
        for _ in range(2):  # published, and then unchanged
            table = read_table(location(ask(answering, table_path(f"logs@{ref}"))))
            assert values(table.to_pylist()) == shown(pool.at(ref))
    pool.branch().append(pa.table({"k": [5], "s": ["later"]}))
    again = location(ask(answering, table_path("logs@v1")))
    assert again.endswith("/v1/metadata/v1.metadata.json"), "what does not change is published once"
    assert values(read_table(again).to_pylist()) == shown(pool.at("v1"))
    assert ask(answering, table_path("logs@v1"), method="HEAD").status == 204
    published = next(name for name in pool.tags if name.startswith("published-"))
    for ref in ("v2", "", "1", published):
        status, message = error(ask(answering, table_path(f"logs@{ref}")))
        assert (status, "has no branch or tag" in message) == (404, True)


def test_names_are_only_compared_with_those_of_pools(lake: Lake) -> None:
    append(lake, ODD, {"k": [7]})
    answering = served(lake=lake.store.uri)
    assert read_table(location(ask(answering, table_path(ODD)))).to_pylist() == [{"k": 7}]
    for name in (
        "*",
        "..",
        "../logs",
        "logs/",
        "lo%67s",
        ".",
        "",
        "logs.$nokey",
        "$jobs",
        "LOGS",
        lake.id,
        "a@b@c",
    ):
        for method in ("GET", "HEAD"):
            assert ask(answering, table_path(name), method=method).status == 404, name


def test_pools_that_cannot_be_tables_say_why_and_hide_no_others(lake: Lake, tmp_path: Path) -> None:
    append(lake, "overlap", {"k": [1]}, {"k": [1]}, kind="upsert")
    append(lake, "unsigned", {"k": [1], "u": pa.array([1], pa.uint8())})
    append(lake, "empty")
    append(lake, "dropped", {"k": [1]})
    lake.drop_pool("dropped")
    append(lake, "damaged", {"k": [1]}, {"k": [2]})
    entry = tmp_path / "lake" / lake.pool("damaged").config.id / "journal" / f"{2:020d}.txn"
    entry.chmod(0o644)
    entry.write_bytes(b"")
    append(lake, "lost", {"k": [1]})
    shutil.rmtree(tmp_path / "lake" / lake.pool("lost").config.id / "data")
    answering = served(lake=lake.store.uri)
    says = {
        "overlap": (400, "lake compact overlap --strategy full"),
        "unsigned": (400, "leave it out (--without u)"),
        "empty": (400, "load records first"),
        "dropped": (404, "does not exist"),
        "damaged": (500, "not a journal entry"),
        "lost": (500, "missing"),
        "logs.$nokey": (404, "no table"),
    }
    assert ask(answering, table_path("empty"), method="HEAD").status == 204, "the name is there"
    for name, (status, part) in says.items():
        answered, message = error(ask(answering, table_path(name)))
        assert (answered, part in message) == (status, True), message
    assert ask(answering, table_path("logs")).status == 200
    assert ask(answering, "/v1/namespaces/lake/tables").status == 200


def test_a_lake_that_is_not_there_hides_no_other(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "lake.json").write_text("{}")
    answering = served(lake=lake.store.uri, gone=str(tmp_path / "gone"), bad=str(tmp_path / "bad"))
    listed = json.loads(ask(answering, "/v1/namespaces").body)["namespaces"]
    assert listed == [["lake"], ["gone"], ["bad"]]
    assert error(ask(answering, "/v1/namespaces/gone/tables"))[0] == 503
    assert error(ask(answering, "/v1/namespaces/bad/tables"))[0] == 500
    assert ask(answering, table_path("logs")).status == 200
    assert ask(answering, "/v1/namespaces/gone", method="HEAD").status == 204


def test_a_server_that_may_only_read_serves_the_newest_published_and_says_how_old_it_is(lake: Lake) -> None:
    answering = Answering(IcebergCatalog(Lakes({"lake": lake.store.uri}, opener=open_to_read)))
    status, message = error(ask(answering, table_path("logs")))
    assert (status, "lake publish logs" in message) == (404, True)
    location(ask(served(lake=lake.store.uri), table_path("logs")))
    fresh = json.loads(ask(answering, table_path("logs")).body)
    assert fresh["config"] == {}
    lake.pool("logs").branch().append(pa.table({"k": [9], "s": ["new"]}))
    response = ask(answering, table_path("logs"))
    assert json.loads(response.body)["config"]["lake.behind-transactions"] == "1"
    assert read_table(location(response)).num_rows == 4


def test_a_server_that_may_only_read_writes_nothing_at_the_place_of_the_setting(
    lake: Lake, tmp_path: Path
) -> None:
    lake.configure_pool("logs", {"publish.iceberg": str(tmp_path / "elsewhere")})
    location(ask(served(lake=lake.store.uri), table_path("logs")))
    hint = tmp_path / "elsewhere" / "metadata" / "version-hint.text"
    hint.unlink()  # as a publisher leaves it that is killed before it writes the hint
    answering = Answering(IcebergCatalog(Lakes({"lake": lake.store.uri}, opener=open_to_read)))
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert location(ask(answering, table_path("logs"))).endswith("/elsewhere/metadata/v1.metadata.json")
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_an_answer_that_the_client_has_is_not_sent_again(lake: Lake) -> None:
    answering = served(lake=lake.store.uri)
    etag = ask(answering, table_path("logs")).headers["ETag"]
    again = ask(answering, table_path("logs"), etag=etag)
    assert (again.status, again.body) == (304, b"")
    lake.pool("logs").branch().append(pa.table({"k": [9], "s": ["new"]}))
    assert ask(answering, table_path("logs"), etag=etag).status == 200


def test_for_its_age_alone_a_table_is_published_once_in_some_minutes(lake: Lake) -> None:
    start = dt.datetime.now(dt.UTC)
    seconds = [-7_200, -3_590, 0]  # hidden; hidden ten seconds later; shown
    times = pa.array([start + dt.timedelta(seconds=one) for one in seconds], pa.timestamp("us", "UTC"))
    lake.create_pool("aged", key="k", settings={"age_off": "t:1h"})
    lake.pool("aged").branch().append(pa.table({"k": [0, 1, 2], "t": times}))
    now = start.timestamp()

    def opened(uri: str) -> Lake:
        return Lake.open(uri, ids=IdSource(clock=lambda: now))

    answering = Answering(IcebergCatalog(Lakes({"lake": lake.store.uri}, opener=opened)))

    def numbers() -> list[int]:
        return sorted(read_table(location(ask(answering, table_path("aged")))).column("k").to_pylist())

    def written() -> int:
        return lake.pool("aged").at().version

    assert numbers() == [1, 2]
    before, tags = written(), set(lake.pool("aged").tags)
    for later in (20, SECONDS - 1):
        now = start.timestamp() + later
        assert numbers() == [1, 2]
        assert (written(), set(lake.pool("aged").tags)) == (before, tags)
    now = start.timestamp() + SECONDS
    assert numbers() == [2]
    tags = set(lake.pool("aged").tags)
    lake.pool("aged").branch().append(pa.table({"k": [3], "t": times[2:]}))
    assert numbers() == [2, 3], "a new version is published at once"
    assert set(lake.pool("aged").tags) != tags


def test_inlined_objects_are_written_out_first(lake: Lake) -> None:
    append(lake, "small", {"k": [1]}, {"k": [2]}, settings={"load.inline": "64KiB"})
    answering = served(lake=lake.store.uri)
    assert read_table(location(ask(answering, table_path("small")))).num_rows == 2


def test_the_warehouse_is_the_only_lake_that_a_client_then_sees(lake: Lake, tmp_path: Path) -> None:
    answering = served(lake=lake.store.uri, other=str(tmp_path / "other"))
    config = asyncio.run(answering.answer(CatalogRequest("GET", "/v1/config", "warehouse=lake")))
    assert json.loads(config.body)["overrides"] == {"prefix": "lake"}
    assert json.loads(ask(answering, "/v1/lake/namespaces").body)["namespaces"] == [["lake"]]
    assert ask(answering, "/v1/lake/namespaces/lake/tables/logs").status == 200
    assert error(ask(answering, "/v1/lake/namespaces/other"))[0] == 404
    assert asyncio.run(answering.answer(CatalogRequest("GET", "/v1/config", "warehouse=x"))).status == 404


def test_many_clients_at_once_get_the_same_table_and_it_is_published_once(lake: Lake) -> None:
    answering = served(lake=lake.store.uri)

    async def all_of_them() -> list[CatalogResponse]:
        request = CatalogRequest("GET", table_path("logs"))
        return await asyncio.gather(*(answering.answer(request) for _ in range(200)))

    locations = {location(response) for response in asyncio.run(all_of_them())}
    assert [one.rpartition("/")[2] for one in locations] == ["v1.metadata.json"]


def test_tables_that_take_long_delay_no_other_answer_and_each_is_loaded_once_for_all_that_wait(
    lake: Lake,
) -> None:
    pools, published = [f"slow{number}" for number in range(THREADS)], threading.Event()
    begun: list[str] = []

    class Slow(IcebergCatalog):
        def loaded(self, question: OneTable) -> Loaded:
            begun.append(question.table)
            if question.table.startswith("slow"):
                published.wait()
            return super().loaded(OneTable(question.namespace, "logs", exists=False))

    answering = Answering(Slow(Lakes({"lake": lake.store.uri})))

    async def asked(name: str, method: str = "GET") -> CatalogResponse:
        return await answering.answer(CatalogRequest(method, name))

    async def ask_all() -> None:
        slow = [asyncio.create_task(asked(table_path(name))) for name in pools[1:] * 10]
        await asyncio.sleep(0)
        assert (await asked(table_path("logs"))).status == 200  # one thread is free
        slow += [asyncio.create_task(asked(table_path(pools[0]))) for _ in range(10)]
        await asyncio.sleep(0)
        for path in ("/v1/config", "/v1/namespaces", "/v1/namespaces/lake", "/v1/namespaces/lake/tables"):
            assert (await asked(path)).status == 200
        assert (await asked(table_path("logs"), "HEAD")).status == 204
        published.set()
        assert {answer.status for answer in await asyncio.gather(*slow)} == {200}

    asyncio.run(ask_all())
    assert sorted(begun) == sorted(["logs", *pools, *pools])


def test_a_request_that_came_while_a_table_was_published_gets_the_next_publication() -> None:
    turns: Turns[str] = Turns()
    calls: list[Future[str]] = []

    def start() -> Future[str]:
        calls.append(Future())
        return calls[-1]

    first, second, third = (turns.join("logs", start) for _ in range(3))
    other = turns.join("users", start)
    assert len(calls) == 2
    calls[0].set_exception(Unavailable("the store"))
    assert not second.done()
    calls[2].set_result("new")
    assert [isinstance(first.exception(), Unavailable), second.result(), third.result()] == [
        True,
        "new",
        "new",
    ]
    assert not other.done()
    again = turns.join("logs", start)
    assert again is calls[3], "no turn is left over"
    refused = turns.join("logs", busy)
    calls[3].set_result("newer")
    assert isinstance(refused.exception(), Unavailable)
    assert turns.join("logs", start) is calls[4]


def busy() -> Future[str]:
    raise Unavailable("busy")


def test_passwords_in_the_address_of_a_lake_are_not_shown(tmp_path: Path) -> None:
    answering = served(bad="s3://user:secret@bucket/lake?key=secret")
    for path in ("/v1/namespaces/bad", "/v1/namespaces/bad/tables"):
        assert b"secret" not in ask(answering, path).body
