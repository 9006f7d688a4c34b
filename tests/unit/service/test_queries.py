"""Queries by HTTP: records in each format, limits, early ends; and who is refused what."""

from __future__ import annotations

import asyncio
import io
import logging
import threading

import duckdb
import polars as pl
import pyarrow as pa
import pytest

from lake_core import naming
from lake_core.errors import Unavailable
from log_lake.iceberg_catalog.callers import CallerRole
from log_lake.lake import Lake
from log_lake.service import conversation
from log_lake.service.limits import HELD, MAX_OPEN, MAX_SQL, ServiceLimits
from log_lake.service.spool import AnswerSpool, SpoolDisk
from log_lake.stores.memory import MemoryStore
from log_lake.system_tables import query
from tests.support.service import TOKENS, Served

QUERY = "/lakes/lake/query"
ARROW = "application/vnd.apache.arrow.stream"
ENDLESS = "SELECT sum(a.k * b.k) FROM logs a, logs b, logs c"


def a_lake() -> Lake:
    lake = Lake.create_on(MemoryStore("memory://service"))
    logs = lake.create_pool("logs", key="k")
    table = pa.table({"k": range(30_000), "s": [f"text, {k}" if k % 3 else None for k in range(30_000)]})
    logs.branch().append(table)
    lake.create_pool("ill", key="k").branch().append(pa.table({"k": [1]}))
    return lake


@pytest.fixture(scope="module")
def there() -> Lake:
    return a_lake()


@pytest.fixture(scope="module")
def served(there: Lake) -> Served:
    return Served(there)


def test_http_1_0_gets_only_whole_answers_with_their_length(served: Served) -> None:
    """There the end of a connection is the end of an answer, also of one that breaks off."""
    rows = "SELECT a.k, a.s FROM logs a, logs b WHERE b.k < 40 LIMIT {}"
    whole = served.ask("POST", QUERY, rows.format(200_000), accept="text/csv", version="1.0")
    assert int(whole.headers["content-length"]) == len(whole.body) > HELD
    late = rows.format(1_000_000).replace(
        "a.k", "CASE WHEN row_number() OVER () = 900000 THEN error('late') ELSE a.k END"
    )
    assert served.ask("POST", QUERY, late, accept="text/csv", version="1.0").status == 400


def test_duckdb_and_polars_read_the_answers(served: Served, there: Lake) -> None:
    sql = "SELECT k, s FROM logs WHERE k >= 20000 ORDER BY k"
    want = query(there, sql).read_all()
    arrow = served.ask("POST", QUERY, sql, accept=ARROW).body
    csv = served.ask("POST", QUERY, sql, accept="text/csv").body
    lines = served.ask("POST", QUERY, sql)
    assert pa.ipc.open_stream(arrow).read_all() == want
    with duckdb.connect() as connection:
        stream = pa.ipc.open_stream(arrow)  # noqa: F841 - DuckDB reads it by its name
        assert connection.sql("SELECT k, s FROM stream").to_arrow_table().to_pylist() == want.to_pylist()
    assert pl.read_ipc_stream(io.BytesIO(arrow)).to_dicts() == want.to_pylist()
    assert pl.read_csv(io.BytesIO(csv)).to_dicts() == want.to_pylist()
    assert [{"s": None, **line} for line in lines.lines] == want.to_pylist()
    assert lines.headers["content-type"] == "application/x-ndjson"


def test_a_small_answer_has_a_length_and_a_large_one_has_none(served: Served) -> None:
    small = served.ask("POST", QUERY, "SELECT 1 AS a")
    assert small.headers["content-length"] == str(len(small.body))
    large = served.ask("POST", QUERY, "SELECT *, repeat('x', 40) AS x FROM logs")
    assert "content-length" not in large.headers
    assert large.is_whole
    assert len(large.lines) == 30_000


def test_an_answer_without_records_has_its_columns(served: Served) -> None:
    assert served.ask("POST", QUERY, "SELECT k, s FROM logs LIMIT 0").body == b""
    assert served.ask("POST", QUERY, "SELECT k, s FROM logs LIMIT 0", accept="text/csv").body == b'"k","s"\n'
    arrow = served.ask("POST", QUERY, "SELECT k, s FROM logs LIMIT 0", accept=ARROW).body
    assert pa.ipc.open_stream(arrow).read_all().schema.names == ["k", "s"]


@pytest.mark.parametrize(
    ("sql", "status", "says"),
    [
        ("SELECT nope FROM logs", 400, "nope"),
        ("SELECT * FROM nope", 404, "nope"),
        ("SELECT * FROM 'logs@99'", 404, "99"),
        ("", 400, "write one SELECT"),
        ("SELECT 1; SELECT 2", 400, "write one SELECT"),
        ("COPY logs TO '/tmp/x.csv'", 400, "write one SELECT"),
        ("SELECT * FROM '/etc/passwd'", 404, "passwd"),
        ("SELECT * FROM read_csv('/etc/passwd')", 400, "reads pools"),
        ("SELECT * FROM read_csv('http://169.254.169.254/')", 400, "query:"),
        ("ATTACH '/tmp/x.db'", 400, "write one SELECT"),
        ("SET memory_limit = '1TB'", 400, "write one SELECT"),
        ("SELECT getenv('HOME')", 400, "query:"),
    ],
)
def test_sql_that_cannot_be_run_gets_one_line(served: Served, sql: str, status: int, says: str) -> None:
    told = served.ask("POST", QUERY, sql)
    assert (told.status, told.json["status"]) == (status, status)
    assert says in told.json["detail"]
    assert "\n" not in told.json["detail"]
    assert told.headers["content-type"] == "application/problem+json"


def test_a_body_that_is_no_sql(served: Served) -> None:
    assert served.ask("POST", QUERY, b"\xff").json["detail"] == "the body is not UTF-8: SQL is text in UTF-8"
    assert served.ask("POST", QUERY, b" " * (MAX_SQL + 1)).status == 413
    assert served.ask("POST", QUERY, b"", content_length=str(MAX_SQL + 1)).status == 413
    assert served.ask("POST", QUERY, "SELECT 1", is_cut=True).status == 0, "nobody is there to be answered"


def test_readers_change_nothing(served: Served, there: Lake) -> None:
    before = there.pool("logs").at().version
    for sql in (
        "DELETE FROM logs",
        "  -- x\nINSERT INTO logs (k) VALUES (1)",
        "TRUNCATE logs",
        "DROP TABLE logs",
    ):
        told = served.ask("POST", QUERY, sql, query="token=t")
        assert (told.status, told.json["detail"][:27]) == (403, "this needs the role writer,")
    for sql in ("WITH x AS (DELETE FROM logs RETURNING k) SELECT * FROM x", "CALL pragma_version()"):
        assert served.ask("POST", QUERY, sql, role=CallerRole.WRITER).status == 400
    assert there.pool("logs").at().version == before


def test_who_may_ask_what(served: Served) -> None:
    load, pool = "/lakes/lake/pools/logs/load", "/lakes/lake/pools/new"
    for method, path, query_, least in (
        ("POST", QUERY, "", CallerRole.READER),
        ("GET", "/queries/x", "", CallerRole.READER),
        ("POST", load, "token=t", CallerRole.WRITER),
        ("PUT", pool, "key=k", CallerRole.KEEPER),
        ("DELETE", pool, "", CallerRole.KEEPER),
    ):
        assert served.ask(method, path, query=query_, role=None).status == 401
        for role in (role for role in CallerRole if role < least):
            told = served.ask(method, path, query=query_, role=role)
            assert told.status == 403
            assert told.json["detail"].startswith(f"this needs the role {least.name.lower()}, and yours is")
    assert (
        served.ask("POST", QUERY, role=None, authorization="Bearer nope").headers["www-authenticate"]
        == "Bearer"
    )
    for headers in ({"origin": "https://evil.example"}, {"sec_fetch_site": "cross-site"}):
        assert served.ask("POST", QUERY, "SELECT 1", **headers).status == 403
        assert served.ask("GET", "/docs", **headers).status == 403


def test_a_server_without_tokens_answers_no_query(there: Lake) -> None:
    served = Served(there, callers=())
    told = served.ask("POST", QUERY, "SELECT * FROM logs", role=None, host="127.0.0.1")
    assert (told.status, "--token-file FILE" in told.json["detail"]) == (403, True)
    assert served.ask("POST", QUERY, "SELECT 1", role=None, host="evil.example").status == 403
    assert served.ask("GET", "/docs", role=None, host="evil.example").status == 403


def test_other_paths_are_the_catalogs_and_the_page_is_everybodys(served: Served) -> None:
    assert served.ask("GET", "/v1/config", role=None).status == 299
    for path in ("/docs", "/openapi.json"):
        assert served.ask("GET", path, role=None).status == 200
    assert served.ask("POST", "/lakes/nope/query", "SELECT 1").json["detail"].endswith("the lakes are lake")


def test_a_damaged_pool_is_an_error_of_itself_alone(there: Lake) -> None:
    lake = a_lake()
    id = lake.pool("ill").config.id
    for info in list(lake.store.list(f"{id}/")):
        if naming.entry_version(info.name):
            lake.store.put(info.name, b"x")
    served = Served(Lake.open_on(lake.store), there)
    told = served.ask("POST", QUERY, "SELECT * FROM ill")
    assert told.status == 500
    assert "ill" in told.json["detail"] or id in told.json["detail"]
    assert served.ask("POST", QUERY, "SELECT count(*) AS n FROM logs").lines == [{"n": 30_000}]


def test_a_lake_that_cannot_be_opened_hides_no_other(there: Lake) -> None:
    def opened(uri: str) -> Lake:
        if uri == "memory://other":
            raise Unavailable(f"{uri}: https://user:hush@store/x?sig=hush does not answer")
        return there

    served = Served(there, there, opener=opened)
    told = served.ask("POST", "/lakes/other/query", "SELECT 1 FROM logs")
    assert (told.status, told.headers["retry-after"]) == (503, "5")
    assert b"hush" not in told.body
    assert served.ask("POST", QUERY, "SELECT 1 AS a").lines == [{"a": 1}]


def test_limits_of_time_records_and_bytes(there: Lake) -> None:
    slow = Served(there, bounds=ServiceLimits(seconds=0.05)).ask("POST", QUERY, ENDLESS)
    assert (slow.status, slow.json["detail"][:30]) == (400, "query: took longer than the 0.")
    few = Served(there, bounds=ServiceLimits(rows=9)).ask("POST", QUERY, "SELECT k FROM logs")
    assert (few.status, "more than the 9 records" in few.json["detail"]) == (400, True)
    small = Served(there, bounds=ServiceLimits(answer=1_000)).ask("POST", QUERY, "SELECT k FROM logs")
    assert (small.status, "the answer has more than" in small.json["detail"]) == (400, True)
    little = Served(there, bounds=ServiceLimits(memory=64 << 20))
    told = little.ask("POST", QUERY, "SELECT list(s) AS l, list(repeat(s, 400)) AS m FROM logs, range(20)")
    assert (told.status, "Out of Memory" in told.json["detail"]) == (400, True)
    assert little.ask("POST", QUERY, "SELECT count(*) AS n FROM logs").lines == [{"n": 30_000}]


def test_an_answer_that_breaks_off_is_not_ended_and_says_why_when_asked(there: Lake) -> None:
    served = Served(there, bounds=ServiceLimits(rows=29_999))
    told = served.ask("POST", QUERY, "SELECT *, repeat('x', 60) AS x FROM logs")
    assert (told.status, told.is_whole) == (200, False)
    id = told.headers["lake-query"]
    ending = served.ask("GET", f"/queries/{id}").json
    assert (ending["id"], ending["state"]) == (id, "failed")
    assert "more than the 29,999 records" in ending["detail"]
    assert served.ask("GET", f"/queries/{id}", role=CallerRole.KEEPER).status == 404, "it is another caller's"
    whole = served.ask("POST", QUERY, "SELECT 1")
    assert served.ask("GET", f"/queries/{whole.headers['lake-query']}").json["state"] == "done"


def test_a_client_that_goes_ends_its_query_and_frees_its_place(served: Served) -> None:
    before = {thread for thread in threading.enumerate() if thread.name == "lake-view"}

    async def work() -> None:
        gone = asyncio.Event()
        asked = asyncio.ensure_future(
            served.exchange("POST", QUERY, [ENDLESS.encode()], headers={}, gone=gone)
        )
        while not {one for one in threading.enumerate() if one.name == "lake-view"} - before:
            await asyncio.sleep(0.01)
        gone.set()
        assert (await asked).status == 0
        while {one for one in threading.enumerate() if one.name == "lake-view"} - before:
            await asyncio.sleep(0.01)  # a query that went on would never end

    asyncio.run(work())


def test_an_answer_that_was_not_taken_in_time_is_no_done_one(there: Lake) -> None:
    served = Served(there, bounds=ServiceLimits(memory=2 << 30, transfer=0.0))
    sql = "SELECT *, repeat('x', 60) AS x FROM logs"
    told = asyncio.run(served.exchange("POST", QUERY, [sql.encode()], headers={}))
    assert told.status == 408, "its statement came too late"

    async def work() -> None:
        spool = AnswerSpool(SpoolDisk(1 << 20), most=1 << 20)
        spool.write(b"x" * 10)
        spool.end()

        async def at_once(message: object) -> None:
            """A client that is there, and comes too late."""

        assert not await conversation.stream(at_once, spool, most=0.0)
        assert await conversation.stream(at_once, spool, most=60.0)

    asyncio.run(work())


def test_a_client_that_takes_its_time_holds_no_thread(there: Lake) -> None:
    """More slow clients than threads, and each reads on only when a last one has its whole answer."""
    served = Served(there)
    sql = b"SELECT *, repeat('x', 60) AS x FROM logs"

    async def work() -> None:
        others = asyncio.Event()
        slow = [
            asyncio.ensure_future(served.exchange("POST", QUERY, [sql], headers={}, sent=others.wait))
            for _ in range(9)
        ]
        told = await served.exchange("POST", QUERY, [b"SELECT count(*) AS n FROM logs"], headers={})
        assert told.lines == [{"n": 30_000}]
        others.set()
        answers = await asyncio.gather(*slow)
        assert {(one.is_whole, len(one.body)) for one in answers} == {(True, len(answers[0].body))}

    asyncio.run(work())


def test_more_requests_than_the_server_takes_are_told_when_to_ask_again(there: Lake) -> None:
    served = Served(there)

    async def work() -> None:
        gone = asyncio.Event()
        waiting = [
            asyncio.ensure_future(served.exchange("POST", QUERY, [], headers={}, gone=gone))
            for _ in range(MAX_OPEN)
        ]
        await asyncio.sleep(0)
        told = await served.exchange("POST", QUERY, [b"SELECT 1 AS a"], headers={})
        assert (told.status, told.headers["retry-after"]) == (503, "5")
        gone.set()
        await asyncio.gather(*waiting)
        assert (await served.exchange("POST", QUERY, [b"SELECT 1 AS a"], headers={})).lines == [{"a": 1}]

    asyncio.run(work())


def test_logs_have_no_token_and_no_statement(there: Lake, caplog: pytest.LogCaptureFixture) -> None:
    def broken(uri: str) -> Lake:
        raise RuntimeError("a fault")

    served = Served(there, opener=broken)
    with caplog.at_level(logging.DEBUG, "log_lake"):
        told = served.ask("POST", QUERY, "SELECT 'hush' FROM logs")
    assert (told.status, told.json["detail"]) == (500, "the server has a fault; its log says more")
    assert "a fault" in caplog.text
    assert "hush" not in caplog.text
    assert not any(token in caplog.text for token in TOKENS.values())
