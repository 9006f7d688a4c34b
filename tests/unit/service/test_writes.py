"""Loads, statements and pools by HTTP: each one transaction, once, or nothing."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import io
import os
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lake_core.errors import InvalidInput
from log_lake.agents import driver
from log_lake.iceberg_catalog.callers import CallerRole
from log_lake.lake import Lake
from log_lake.loading.places import FILES
from log_lake.service.handing_over import hand_over
from log_lake.service.limits import BODIES, ServiceLimits
from log_lake.service.routes import Load
from log_lake.stores.memory import MemoryStore
from log_lake.stores.read_only import ReadOnlyStore
from tests.support.service import Served, Told

LOAD = "/lakes/lake/pools/logs/load"


@pytest.fixture
def there() -> Lake:
    lake = Lake.create_on(MemoryStore("memory://service"))
    lake.create_pool("logs", key="k").branch().append(pa.table({"k": [1], "s": ["a"]}))
    return lake


@pytest.fixture
def served(there: Lake) -> Served:
    return Served(there)


def load(served: Served, body: bytes | str, query: str = "token=t", **more: Any) -> Told:
    return served.ask("POST", LOAD, body, query=query, role=CallerRole.WRITER, **more)


def keys(lake: Lake) -> list[int]:
    return sorted(lake.pool("logs").at().to_table()["k"].to_pylist())


def test_a_body_of_each_format_is_one_transaction(served: Served, there: Lake) -> None:
    parquet = io.BytesIO()
    pq.write_table(pa.table({"k": [4], "s": ["p"]}), parquet)
    for number, (body, type) in enumerate(
        (
            (b'{"k": 2, "s": "x"}\n{"k": 2, "s": "y"}\n', "application/x-ndjson"),
            (b"k,s\n3,c\n", "text/csv"),
            (gzip.compress(b"k,s\n3,c\n"), "text/csv"),
            (parquet.getvalue(), "application/octet-stream"),
            (b'[{"k": 5}]', "application/x-www-form-urlencoded"),
        )
    ):
        told = load(served, body, f"token=t{number}&message=m{number}", content_type=type)
        assert told.status == 200, told.body
        assert (told.json["version"], told.json["repeated"]) == (number + 2, False)
    assert keys(there) == [1, 2, 2, 3, 3, 4, 5]
    _, newest = next(iter(there.pool("logs").log()))
    assert (newest.author, newest.message) == ("writer", "m4")


def test_a_body_in_parts_is_whole_and_one_that_is_cut_off_loads_nothing(served: Served, there: Lake) -> None:
    assert load(served, b"", parts=[b'{"k": ', b"7}\n", b""]).json["records"] == 1
    before = there.pool("logs").at().version
    told = load(served, b"", "token=u", parts=[b'{"k": 8}\n', b'{"k": 9}\n'], is_cut=True)
    assert told.status == 0
    assert there.pool("logs").at().version == before
    assert load(served, '{"k": 8}\n{"k": 9}\n', "token=u").json["repeated"] is False
    assert keys(there) == [1, 7, 8, 9]


def test_a_token_that_is_sent_again_loads_once(served: Served, there: Lake) -> None:
    first, second = (load(served, '{"k": 7}\n').json for _ in range(2))
    assert (first["repeated"], second["repeated"]) == (False, True)
    assert first["version"] == second["version"]

    async def at_once() -> list[Told]:
        asked = [
            served.exchange(
                "POST", LOAD, [b'{"k": 8}\n'], role=CallerRole.WRITER, query="token=same", headers={}
            )
            for _ in range(BODIES + 8)
        ]
        return await asyncio.gather(*asked)

    told = asyncio.run(at_once())
    assert {one.status for one in told} == {200}
    assert len({one.json["version"] for one in told}) == 1
    assert keys(there) == [1, 7, 8]


@pytest.mark.parametrize(
    ("path", "body", "query", "status", "says"),
    [
        (LOAD, '{"k": 2}\nx\n', "token=t", 400, "the body, line 2"),
        (LOAD, "", "token=t&type.k=nope", 400, "type 'nope' of field 'k'"),
        (LOAD, '{"k": 2}', "token=t&branch=nope", 404, "nope"),
        (LOAD, "PK\x03\x04", "token=t", 400, "ZIP"),
        ("/lakes/lake/pools/nope/load", '{"k": 2}', "token=t", 404, "nope"),
        ("/lakes/lake/pools/$jobs/load", '{"k": 2}', "token=t", 400, "the lake's own"),
        ("/lakes/nope/pools/logs/load", '{"k": 2}', "token=t", 404, "the lakes are lake"),
    ],
)
def test_what_cannot_be_loaded_gets_one_line_and_changes_nothing(
    served: Served, there: Lake, path: str, body: str, query: str, status: int, says: str
) -> None:
    told = served.ask("POST", path, body, query=query, role=CallerRole.WRITER)
    assert told.status == status, told.body
    assert says in told.json["detail"]
    assert "/tmp" not in told.json["detail"]
    assert keys(there) == [1]


def test_bad_records_are_kept_under_the_name_of_the_body(served: Served, there: Lake) -> None:
    told = load(served, '{"k": 2}\nx\n', "token=t&bad_records=quarantine")
    assert (told.json["records"], told.json["rejected"]) == (1, 1)
    assert there.pool("logs.$rejected").at().to_table()["file"].to_pylist() == ["the body"]


def test_a_body_has_a_limit(there: Lake) -> None:
    served = Served(there, bounds=ServiceLimits(body=100))
    for told in (
        load(served, "x" * 101),
        load(served, b"", parts=[b"x" * 60, b"x" * 60]),
        load(served, b"", content_length="101"),
    ):
        assert (told.status, "more than the 100 B" in told.json["detail"]) == (413, True)
    assert keys(there) == [1]


def test_a_body_has_a_time_and_all_bodies_and_answers_one_disk(there: Lake) -> None:
    told = load(Served(there, bounds=ServiceLimits(transfer=0.0)), '{"k": 2}')
    assert (told.status, "took more than 0 s" in told.json["detail"]) == (408, True)
    served = Served(there)
    disk = served.app._writes._disk
    disk.take(disk._most - 10)
    told = load(served, '{"k": 22222222}')
    assert (told.status, "other answers and bodies take" in told.json["detail"]) == (503, True)
    assert load(served, '{"k": 2}').json["records"] == 1
    assert disk.used == disk._most - 10, "what was loaded takes none"
    assert keys(there) == [1, 2]


def test_a_token_of_another_caller_or_of_no_load_is_refused(served: Served, there: Lake) -> None:
    """Otherwise these records are nowhere, and their sender hears that they are there."""
    assert load(served, '{"k": 2}', "token=mine").status == 200
    other = served.ask("POST", LOAD, '{"k": 9}', query="token=mine", role=CallerRole.KEEPER)
    assert (other.status, "another caller" in other.json["detail"]) == (409, True)
    sql = "/lakes/lake/query"
    deleted = served.ask("POST", sql, "DELETE FROM logs WHERE k = 2", query="token=d", role=CallerRole.WRITER)
    assert deleted.status == 200
    told = load(served, '{"k": 9}', "token=d")
    assert (told.status, "was a delete and not a load" in told.json["detail"]) == (400, True)
    again = served.ask("POST", sql, "DELETE FROM logs WHERE k = 2", query="token=d", role=CallerRole.WRITER)
    assert again.json["repeated"] is True
    foreign = served.ask("POST", sql, "DELETE FROM logs WHERE k = 2", query="token=d", role=CallerRole.KEEPER)
    assert foreign.status == 409
    assert keys(there) == [1]


def test_listed_files_are_loaded_if_the_server_may_name_them(there: Lake, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.ndjson").write_text('{"k": 2}\n')
    (tmp_path / "in/b.csv").write_text("k\n3\n")
    (tmp_path / "in/link.csv").symlink_to("/etc/passwd")
    (tmp_path / "out.csv").write_text("k\n4\n")
    there.configure_pool("logs", {"ingest.source": f"{tmp_path}/in/*.csv"})
    uris = {"content_type": "text/uri-list"}
    served = Served(there, environ={FILES: "https://fair.example/"})
    told = load(served, f"# mine\n{tmp_path}/in/a.ndjson\r\nfile://{tmp_path}/in/b.csv\n", **uris)
    assert told.json["records"] == 2
    for uri, says in (
        (f"{tmp_path}/out.csv", "not below ingest.source"),
        (f"{tmp_path}/in/link.csv", "a link leads"),
        (f"{tmp_path}/in/../out.csv", "'..'"),
        ("/etc/passwd", "LAKE_ALLOWED_FILES"),
        ("-", "no absolute path"),
        ("in/a.ndjson", "no absolute path"),
        ("http://127.0.0.1:8181/x", "own machine"),
        ("http://169.254.169.254/latest", "own machine"),
        ("http://[::1]/x", "own machine"),
        ("simplecache::https://fair.example/x", "chains"),
        ("https://user:hush@other.example/x?token=hush", "not below"),
    ):
        told = load(served, uri, "token=u", **uris)
        assert (told.status, says in told.json["detail"]) == (403, True), told.body
        assert b"hush" not in told.body
    assert load(served, "# none\n", "token=u", **uris).status == 400
    assert load(served, f"{tmp_path}/in/a.ndjson", "token=u", prefer="respond-async", **uris).status == 400
    assert keys(there) == [1, 2, 3]


def test_a_body_is_left_to_the_ingest_agent_once(tmp_path: Path) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    lake.create_pool("logs", key="k", settings={"ingest.source": f"{tmp_path}/in/*.csv"})
    (tmp_path / "in").mkdir()
    served, later = Served(lake), {"prefer": "respond-async", "content_type": "text/csv"}
    for repeated in (False, True):
        told = load(served, "k\n5\n", **later)
        assert (told.status, told.json["repeated"]) == (202, repeated)
    assert Path(told.json["file"]).read_text() == "k\n5\n"
    assert len(list((tmp_path / "in").iterdir())) == 1
    found = driver.find("ingest", {"lake": lake.store.uri}, open_lake=lambda _: lake).work
    assert [one.pool for one in found] == ["logs"]
    told = load(served, '{"k": 5}', "token=u", prefer="respond-async", content_type="application/json")
    assert (told.status, "does not match a file" in told.json["detail"]) == (400, True)
    assert load(served, "k\n5\n", "token=u&csv.null=x", **later).status == 400
    told = served.ask(
        "POST", "/lakes/lake/pools/logs.$rejected/load", query="token=v", role=CallerRole.WRITER, **later
    )
    assert (told.status, "read-only" in told.json["detail"]) == (400, True)
    lake.configure_pool("logs", {"ingest.source": ""})
    assert "no ingest.source" in load(served, "k\n5\n", "token=u", **later).json["detail"]


def test_a_body_that_is_left_is_named_by_what_it_is_and_by_who_sent_it(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    lake = Lake.create(str(tmp_path / "lake"))
    pool = lake.create_pool("logs", key="k", settings={"ingest.source": f"{tmp_path}/in"})
    parquet = io.BytesIO()
    pq.write_table(pa.table({"k": [4]}), parquet)
    (tmp_path / "body").write_bytes(parquet.getvalue())
    asked = Load("lake", "logs", "t", "", "main", "auto", {})
    told = hand_over(pool, asked, path=f"{tmp_path}/body", format="auto")
    assert told.file.endswith(".parquet")
    other = hand_over(
        Lake.open_on(lake.store, author="another").pool("logs"), asked, path=f"{tmp_path}/body", format="auto"
    )
    assert (other.repeated, other.file != told.file) == (False, True)
    (tmp_path / "body").write_bytes(b"\x00\x01\x02")
    with pytest.raises(InvalidInput, match="the body: neither the name nor"):
        hand_over(pool, asked, path=f"{tmp_path}/body", format="auto")


def test_a_link_in_the_folder_leads_no_body_to_another_file(tmp_path: Path) -> None:
    """Who may write to the folder of an ingest.source puts links under all names that can be foreseen."""
    (tmp_path / "in").mkdir()
    (tmp_path / "lake-body-seen").mkdir()
    (tmp_path / "of-the-server").write_text("kept")
    (tmp_path / "lake-body-seen/body").write_text("k\n5\n")
    lake = Lake.create(str(tmp_path / "lake"))
    pool = lake.create_pool("logs", key="k", settings={"ingest.source": f"{tmp_path}/in/*.csv"})
    asked = Load("lake", "logs", "t", "", "main", "csv", {})
    digest = hashlib.sha256(msgspec.msgpack.encode((pool.context.author, "t"))).hexdigest()
    name = f"{tmp_path}/in/sent-{digest[:32]}.csv"
    for foreseen in (".tmp", f".{os.getpid()}.tmp", f".{os.getpid()}-lake-body-seen.tmp"):
        os.symlink(tmp_path / "of-the-server", f"{name}{foreseen}")
    told = hand_over(pool, asked, path=f"{tmp_path}/lake-body-seen/body", format="csv")
    assert (told.file, told.repeated) == (name, False)
    assert (tmp_path / "of-the-server").read_text() == "kept"
    assert not os.path.islink(name)
    assert Path(name).read_text() == "k\n5\n"


def test_statements_of_writers_are_transactions_with_a_token(served: Served, there: Lake) -> None:
    def run(sql: str, query: str) -> Told:
        return served.ask("POST", "/lakes/lake/query", sql, query=query, role=CallerRole.WRITER)

    assert "token: a statement" in run("DELETE FROM logs", "").json["detail"]
    assert run("DELETE FROM logs", "dry_run=true").json["records"] == 1
    assert run("INSERT INTO logs (k) SELECT k + 1 FROM logs", "token=a").json["records"] == 1
    for repeated in (False, True):
        assert run("DELETE FROM logs WHERE k = 1", "token=b&message=m").json["repeated"] is repeated
    assert keys(there) == [2]
    assert run("SELECT 1", "token=c").status == 400
    assert run("DROP TABLE logs", "token=d").status == 400
    assert run("DELETE FROM nope", "token=e").status == 404


def test_a_merge_is_a_writers_and_create_a_keepers(served: Served, there: Lake) -> None:
    def run(role: CallerRole, sql: str, query: str = "token=t") -> Told:
        return served.ask("POST", "/lakes/lake/query", sql, query=query, role=role)

    create = "CREATE TABLE made AS SELECT k, s FROM logs ORDER BY k"
    for role in (CallerRole.READER, CallerRole.WRITER):
        for query in ("token=t", "dry_run=true"):
            told = run(role, create, query)
            assert (told.status, "keeper" in told.json["detail"]) == (403, True), told.body
    assert [pool.name for pool in there.pools()] == ["logs"]
    assert run(CallerRole.KEEPER, create, "dry_run=true").json["records"] == 1
    made = [run(CallerRole.KEEPER, create) for _ in range(2)]
    assert [(one.status, one.json["verb"], one.json["repeated"]) for one in made] == [
        (200, "created", False),
        (200, "created", True),
    ]
    assert there.pool("made").at().to_table().to_pylist() == [{"k": 1, "s": "a"}]
    assert run(CallerRole.KEEPER, create, "token=other").status == 409

    merge = (
        "MERGE INTO made t USING (VALUES (1, 'b'), (2, 'c')) s (k, s) USING (k) "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    assert run(CallerRole.READER, merge).status == 403
    counts = {"inserted": 1, "updated": 1, "deleted": 0}
    assert run(CallerRole.WRITER, merge, "dry_run=true").json["merged"] == counts
    told = run(CallerRole.WRITER, merge, "token=m")
    assert (told.json["version"], told.json["merged"]) == (2, counts)
    assert run(CallerRole.WRITER, merge, "token=m").json["repeated"] is True
    assert there.pool("made").at().to_table()["s"].to_pylist() == ["b", "c"]


def test_a_statement_that_changes_a_pool_ends_in_time_and_has_changed_nothing(there: Lake) -> None:
    served = Served(there, bounds=ServiceLimits(seconds=0.05, write_seconds=0.05))
    endless = "INSERT INTO logs (k) SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b"
    for query in ("token=t", "dry_run=true"):
        told = served.ask("POST", "/lakes/lake/query", endless, query=query, role=CallerRole.WRITER)
        assert (told.status, told.json["detail"][:30]) == (400, "query: took longer than the 0.")
    assert keys(there) == [1]


def test_keepers_create_and_drop_pools(served: Served, there: Lake) -> None:
    def keep(method: str, name: str, query: str = "") -> Told:
        return served.ask(method, f"/lakes/lake/pools/{name}", query=query, role=CallerRole.KEEPER)

    assert keep("PUT", "new", "key=ts:desc&kind=upsert").status == 201
    assert there.pool("new").config.kind == "upsert"
    assert keep("PUT", "new", "key=ts").status == 409
    assert keep("PUT", "x%2Fy", "key=ts").status == 400
    assert keep("PUT", "y", "key=a b,").status == 400
    assert keep("DELETE", "new").json["dropped"] == "new"
    assert keep("DELETE", "new").status == 404
    assert [one.pool.name for one in there.dropped_pools()] == ["new"]


def test_a_server_that_may_only_read_says_so(there: Lake) -> None:
    reading = Lake.open_on(ReadOnlyStore(there.store.behind))
    for served in (Served(there, may_write=False), Served(reading, may_write=False)):
        told = load(served, '{"k": 2}')
        assert (told.status, told.json["detail"]) == (403, "this server may only read (--read-only)")
        assert served.ask("POST", "/lakes/lake/query", "SELECT 1 AS a").lines == [{"a": 1}]
    assert keys(there) == [1]


def test_a_pool_that_takes_messages_is_left_no_body() -> None:
    lake = Lake.create_on(MemoryStore("memory://messages"))
    lake.create_pool("logs", key="k", settings={"ingest.source": "kafka://broker:9092/logs"})
    told = load(Served(lake), "k\n5\n", prefer="respond-async", content_type="text/csv")
    assert (told.status, "takes messages of Kafka" in told.json["detail"]) == (400, True)
