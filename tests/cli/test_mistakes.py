"""Forty mistakes that people make (command, SQL, Python, PySpark): one sentence each, which says what to do.

Operators raise the same errors: they call the same functions.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lake_core.errors import AlreadyExists, InvalidInput, LakeError, NotFound
from log_lake.lake import Lake
from log_lake.system_tables import query
from tests.support.command import ALREADY_EXISTS, INVALID_INPUT, NOT_FOUND, USAGE, Command

DENIED = 13


@pytest.fixture
def flights(lake: Command) -> Command:
    """A pool of two records with a branch `exp`, and files that cannot be loaded."""
    lake.pool("flights", key="ts")
    lake.load_records("flights", [{"ts": 1, "carrier": "UA", "delay": 5}, {"ts": 2, "delay": 6}])
    lake("branch", "flights", "exp")
    lake.file("bad.ndjson", '{"ts":3,"delay":1\n')
    lake.file("nokey.ndjson", [{"time": 3}])
    lake.file("book.xlsx", b"PK\x03\x04" + b"a" * 40 + b"xl/workbook.xml")
    lake.file("text.ndjson", [{"ts": "noon"}])
    lake.file("other.ndjson", [{"ts": 3, "colour": "red"}])
    return lake


COMMANDS: list[tuple[list[str], int, str]] = [
    # pools and lakes
    (["show", "flight"], NOT_FOUND, "did you mean 'flights'?"),
    (["show", "Flights"], NOT_FOUND, "did you mean 'flights'?"),
    (["show", "trains"], NOT_FOUND, "there are: flights"),
    (["ls", "--lake", "/nowhere/lake"], NOT_FOUND, "make one with: lake init"),
    (["ls", "--lake", "s4://bucket/lake"], INVALID_INPUT, "use a path, s3://, gs:// or memory://"),
    (["ls", "--lake", ""], INVALID_INPUT, "or set LAKE"),
    (["create", "flights", "--key", "ts"], ALREADY_EXISTS, "use another name"),
    (["create", "a/b", "--key", "ts"], INVALID_INPUT, "leave them out"),
    (["create", "p"], USAGE, "--key (see: lake create --help)"),
    (["rename", "flights", "flights"], ALREADY_EXISTS, "use another name"),
    (["drop", "flights"], INVALID_INPUT, "add --yes"),
    # words of the command
    (["shwo", "flights"], USAGE, "did you mean 'show'?"),
    (["load", "flights", "FOLDER/bad.ndjson", "--tokn", "x"], USAGE, "did you mean --token?"),
    (
        ["load", "flights", "FOLDER/bad.ndjson", "--at", "1"],
        USAGE,
        "unknown option --at (see: lake load --help)",
    ),
    (["scan", "flights", "--limit", "-1"], USAGE, "not a whole number"),
    (["scan", "flights", "--format", "xml"], USAGE, "there are: arrow, csv, json"),
    (["delete", "flights"], INVALID_INPUT, "or --all and none of them"),
    (["erase", "flights"], INVALID_INPUT, "lake: erase: say which records"),
    (["erase", "flights", "--where", "carier = 'UA'"], INVALID_INPUT, "perhaps carrier"),  # before --yes
    (["du", "nope"], NOT_FOUND, "lake: pool 'nope' does not exist"),
    (["shell", "--files", "none.csv"], NOT_FOUND, "there is no file 'none.csv' on this machine"),
    (["scan", "flights", "-o", "FOLDER/a.txt"], INVALID_INPUT, "the ending .txt names no format; end it in"),
    (["verify-erasure", "nope.json"], INVALID_INPUT, "name the file that lake erase -o wrote"),
    # what belongs into an option, or into a query
    (["scan", "flights@1"], NOT_FOUND, "did you mean 'flights' with --at 1, or to write with --branch 1?"),
    (["scan", "flights:ranges"], NOT_FOUND, "read by: lake query 'SELECT * FROM \"flights:ranges\"'"),
    (["load", "flights", "FOLDER/bad.ndjson", "--token", ""], INVALID_INPUT, "--token '': it is empty"),
    # ranges, loads into the journal, bulk loads
    (["split", "flights"], INVALID_INPUT, "and not both: --at KEY or --into N"),
    (["split", "flights", "--at", ""], INVALID_INPUT, "lake: --at '': it is empty; name a key"),
    (["split", "flights", "--at", "noon"], INVALID_INPUT, "the field is a number"),
    (["split", "flight", "--into", "2"], NOT_FOUND, "did you mean 'flights'?"),
    (["split", "flights", "--sample", "FOLDER/bad.ndjson"], INVALID_INPUT, "how many ranges with --into N"),
    (["query", 'SELECT * FROM "flights:range"'], NOT_FOUND, "objects, ranges, references"),
    (["set", "flights", "load.inline=1MB"], INVALID_INPUT, "use at most 262,144 bytes"),
    (["set", "flights", "range.bytes=1PB"], INVALID_INPUT, "use a size such as 500MB or 1GiB"),
    (["set", "flights", "load.sort=part"], INVALID_INPUT, "use run or parts"),
    (
        ["load", "flights", "FOLDER/other.ndjson", "--bulk", "--schema", "frozen"],
        INVALID_INPUT,
        "use evolve, ",
    ),
    (
        ["load", "flights", "FOLDER/other.ndjson", "--bulk", "--schema", "freeze"],
        INVALID_INPUT,
        "is not among the fields of the pool (schema=freeze; schema=evolve accepts it)",
    ),
    # columns, types, quotes
    (["scan", "flights", "--columns", "dealy"], INVALID_INPUT, "there are: ts, "),
    (["scan", "flights", "--where", "carier = 'UA'"], INVALID_INPUT, "perhaps carrier"),
    (["scan", "flights", "--where", "carrier = UA"], INVALID_INPUT, "a text stands in single quotes"),
    (["scan", "flights", "--where", "carrier = 'UA"], INVALID_INPUT, "the closing ' is missing"),
    (["scan", "flights", "--where", "delay = 'late'"], INVALID_INPUT, "delay is of type bigint"),
    (["create", "p", "--key", "k", "--type", "k=integer"], INVALID_INPUT, "use decimal(P,S), json, bigint"),
    (["create", "p", "--key", "k", "--kind", "upset"], INVALID_INPUT, "use append, upsert or aggregate"),
    (["set", "flights", "compakt.depth=3"], INVALID_INPUT, "did you mean 'compact.depth'?"),
    (["set", "flights", "compact.depth=many"], INVALID_INPUT, "use a whole number of at least 1"),
    (["set", "flights", "schema"], INVALID_INPUT, "write NAME=VALUE"),
    # keys, branches, revisions, times
    (["get", "flights", "noon"], INVALID_INPUT, "the field is a number"),
    (["get", "flights", "7"], NOT_FOUND, "lake head flights shows the first ones"),
    (["explain", "flights", "7"], NOT_FOUND, "lake head flights shows the first ones"),
    (["jobs", "flight"], NOT_FOUND, "did you mean 'flights'?"),
    (["scan", "flights", "--from", "9", "--to", "1"], INVALID_INPUT, "must come after its beginning"),
    (
        ["scan", "flights", "--at", "exq"],
        NOT_FOUND,
        "name a version, a transaction id, a tag, a branch (exp, main)",
    ),
    (["scan", "flights", "--at", "99"], NOT_FOUND, "the newest is 2"),
    (["scan", "flights", "--at", "main@2026-13-45"], INVALID_INPUT, "write it as in 2026-11-20T12:00:00Z"),
    (["delete", "flights", "--all", "--branch", "mian"], NOT_FOUND, "did you mean 'main'?"),
    (["merge", "flights", "nope"], NOT_FOUND, "there are: exp, main"),
    (["vacuum", "flights", "--grace", "1 week"], USAGE, "use a duration such as 30s, 10m, 6h, 7d"),
    (["undo", "flights", "1"], INVALID_INPUT, "take it back with lake revert"),
    # files
    (["load", "flights", "FOLDER/none.ndjson"], NOT_FOUND, "name another"),
    (["load", "flights", "FOLDER/bad.ndjson"], INVALID_INPUT, "line 1: malformed JSON in field 'delay'"),
    (
        ["load", "flights", "FOLDER/nokey.ndjson"],
        INVALID_INPUT,
        "nokey=accept (--nokey accept) sends them",
    ),
    (["load", "flights", "FOLDER/book.xlsx"], INVALID_INPUT, "save the sheet as CSV"),
    # SQL
    (["query", "SELECT * FROM flight"], NOT_FOUND, "did you mean 'flights'?"),
    (["query", "SELECT * FROM flights@exp"], INVALID_INPUT, 'in double quotes: "POOL@REVISION"'),
    (["query", "SELECT * FROM flights:objects"], NOT_FOUND, 'stands in double quotes: "flights:objects"'),
    (["query", "SELECT * FROM flights.$rejected"], INVALID_INPUT, '"POOL.$rejected"'),
    (["query", 'SELECT * FROM flights."$rejected"'], INVALID_INPUT, 'quotes: "flights.$rejected"'),
    (["query", "SELECT * FROM main.flights"], INVALID_INPUT, 'in double quotes: "flights"'),
    (["query", "SHOW TABLES"], INVALID_INPUT, 'SELECT name FROM "lake:pools"'),
    (["query", "SELECT dealy FROM flights"], INVALID_INPUT, 'Candidate bindings: "delay"'),
    (
        ["query", 'SELECT * FROM flights WHERE carrier = "UA"'],
        INVALID_INPUT,
        "a text stands in single quotes",
    ),
    (["query", "DELETE flights WHERE ts = 1"], INVALID_INPUT, "write DELETE FROM POOL WHERE ..."),
    (
        ["query", "DELETE FROM flights WHERE carrier = 'UA"],
        INVALID_INPUT,
        "a ' is not closed; add another one where",
    ),
    (["query", "UPDATE flights SET carrier = UA"], INVALID_INPUT, "(a text stands in single quotes)"),
    (["rekey", "flights", "new", "--key", "carier"], INVALID_INPUT, "there are: carrier, delay, ts"),
    (
        ["rekey", "flights", "new", "--key", "delay", "--kind", "aggregate"],
        INVALID_INPUT,
        "use append or upsert",
    ),
    (
        ["query", "MERGE INTO flights USING late ON a = b WHEN MATCHED THEN DELETE RETURNING ts"],
        INVALID_INPUT,
        "MERGE: the clause RETURNING is not done; leave it out",
    ),
    (
        ["query", "MERGE INTO flights USING late ON a = b WHEN MATCHED THEN DELETE"],
        NOT_FOUND,
        "'late' does not",
    ),
    (["query", "SELECT * FROM '/etc/passwd'"], NOT_FOUND, "let the SQL read it: --files"),
    (["query", 'SELECT * FROM "flights@77"'], NOT_FOUND, "the newest is 2"),
]


@pytest.mark.parametrize(
    ("words", "status", "says"), COMMANDS, ids=lambda one: "_".join(one)[:60] if isinstance(one, list) else ""
)
def test_a_mistake_at_the_command_line(flights: Command, words: list[str], status: int, says: str) -> None:
    words = [word.replace("FOLDER", str(flights.folder)) for word in words]
    assert says in flights.fails(status, *words)  # which holds that it is one line, and the first


def test_a_command_that_may_not_write(flights: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE_READ_ONLY", "1")
    assert "unset it to change the lake" in flights.fails(DENIED, "delete", "flights", "--all")


def test_a_token_of_other_work(flights: Command) -> None:
    flights("load", "flights", flights.file("a.ndjson", [{"ts": 3}]), "--token", "t")
    said = flights.fails(INVALID_INPUT, "delete", "flights", "--all", "--token", "t")
    assert "which brought 1 record, so nothing was deleted; use another token for a delete" in said
    flights("delete", "flights", "--all", "--token", "d")
    late = flights.file("b.ndjson", [{"ts": 4}])
    said = flights.fails(INVALID_INPUT, "load", "flights", late, "--token", "d")
    assert "which was a delete and not a load, so nothing was written; use another token" in said
    said = flights.fails(INVALID_INPUT, "query", "INSERT INTO flights (ts) VALUES (5)", "--token", "d")
    assert "which was a delete and not a load" in said


PYTHON: list[tuple[Callable[[Lake], Any], type[LakeError], str]] = [
    (lambda lake: lake.pool("flighs"), NotFound, "did you mean 'flights'?"),
    (lambda _: Lake.open("/nowhere"), NotFound, "make one with: lake init"),
    (lambda lake: Lake.create(lake.store.uri), AlreadyExists, "there is a lake already"),
    (lambda lake: list(lake.pool("flights").at().scan(columns=["dely"])), InvalidInput, "there are: ts, "),
    (lambda lake: list(lake.pool("flights").at().scan(where="dely = 1")), InvalidInput, "perhaps delay"),
    (lambda lake: lake.pool("flights").branch("exq").append(pa.table({"ts": [1]})), NotFound, "mean 'exp'?"),
    (lambda lake: lake.pool("flights").at().get("noon"), InvalidInput, "the field is a number"),
    (lambda lake: lake.pool("flights").branch().append({"ts": [1]}), InvalidInput, "pa.Table.from_pylist"),
    (lambda lake: lake.pool("flights").branch().load("a.ndjson"), InvalidInput, "give a list of names"),
    (lambda lake: lake.pool("flights").branch().delete(key_range="1-5"), InvalidInput, "key_range(low="),
    (lambda lake: lake.create_pool("n", key=["k"]), InvalidInput, "as one text"),
    (lambda lake: lake.create_pool("n", key="k", settings={"compact.depth": 3}), InvalidInput, "as text, as '3'"),
    (
        lambda lake: lake.pool("flights").branch().replace_with(
            pa.table({"ts": [50]}), key_range=lake.pool("flights").at().key_range(low=1, high=5)
        ),
        InvalidInput,
        "Leave them out, or replace a wider range",
    ),
    (lambda lake: query(lake, "SELECT nope FROM flights").read_all(), InvalidInput, "Candidate bindings"),
    (lambda lake: query(lake, ["SELECT 1"]), InvalidInput, "give a text, as 'SELECT * FROM logs'"),
    (lambda lake: lake.pool(None), InvalidInput, "pool None: give a text, as 'logs'"),
    (lambda lake: lake.pool("flights").branch(2), InvalidInput, "branch 2: give a text, as 'main'"),
    (lambda lake: lake.pool("flights").at(1), InvalidInput, "revision 1: give a text, as '12', 'main'"),
    (lambda lake: lake.pool("flights").at(dt.datetime(2026, 1, 1)), InvalidInput, "main@2026-11-20T12:00:00Z"),
    (lambda lake: lake.pool("flights").at().to_table(columns="ts"), InvalidInput, "a list of names, as ['ts']"),
    (lambda lake: lake.pool("flights").at().to_table(where=5), InvalidInput, "condition 5: give a text"),
    (lambda lake: list(lake.pool("flights").at().scan(limit=-1)), InvalidInput, "a number of records from 0 on"),
    (
        lambda lake: lake.pool("flights").branch().load(["a.csv"], options={"csv.header": True}),
        InvalidInput,
        "setting csv.header=True: give its value as text, as 'True'",
    ),
    (lambda lake: lake.pool("flights").branch().delete_keys([1]), InvalidInput, "the keys are a list: give"),
    (lambda lake: lake.pool("flights").branch().revert(1), InvalidInput, "revision 1: give a text, as '12'"),
    (lambda lake: lake.pool("flights").split(into="4"), InvalidInput, "into='4': a pool is split into 2 to"),
    (lambda lake: lake.pool("flights").split(at=[None]), InvalidInput, "none may be an empty text or None"),
    (lambda lake: lake.pool("flights").branch().load(["a.csv"], bulk="no"), InvalidInput, "bulk='no': give True"),
    (lambda lake: lake.pool("flights").split(), InvalidInput, "split: name the keys to split at, or into how"),
    (lambda lake: lake.configure_pool("flights", {"compact.depth": 3}), InvalidInput, "as text, as '3'"),
]  # fmt: skip


@pytest.mark.parametrize(("mistake", "kind", "says"), PYTHON, ids=range(len(PYTHON)))
def test_a_mistake_in_a_program(
    flights: Command, mistake: Callable[[Lake], Any], kind: type[LakeError], says: str
) -> None:
    lake = Lake.open(flights.uri)
    with pytest.raises(kind) as caught:
        mistake(lake)
    assert says in str(caught.value)
    assert str(caught.value).count("\n") == 0 or "LINE" in str(caught.value)


SPARK: list[tuple[dict[str, str], type[LakeError], str]] = [
    ({"path": "flight"}, NotFound, "did you mean 'flights'?"),
    ({"path": "flights", "at": "exq"}, NotFound, "name a version, a transaction id, a tag, a branch"),
    ({"path": "flights", "columns": "dealy"}, InvalidInput, "there are: ts, "),
    ({"path": "flights", "colums": "ts"}, InvalidInput, "colums"),
    ({"path": "flights", "where": "dely = 1"}, InvalidInput, "perhaps delay"),
    ({"path": "flights", "where": "carrier = UA"}, InvalidInput, "a text stands in single quotes"),
]


@pytest.mark.parametrize(("options", "kind", "says"), SPARK, ids=range(len(SPARK)))
def test_a_mistake_in_pyspark(
    flights: Command, options: dict[str, str], kind: type[LakeError], says: str
) -> None:
    source = pytest.importorskip("spark_apps.datasource.source")
    read = source.LakeDataSource({"lake": flights.uri, **options})

    def planned() -> None:
        read.reader(read.schema()).partitions()

    with pytest.raises(kind) as caught:
        planned()
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_lake_is_opened_by_a_path_too(flights: Command) -> None:
    assert Lake.open(Path(flights.uri)).pool("flights").name == "flights"


def test_at_least_forty_mistakes_are_tried() -> None:
    assert len(COMMANDS) + len(PYTHON) + len(SPARK) >= 40
