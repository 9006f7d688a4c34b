"""A look around: head, describe, du, shell, files beside pools; the help by groups, and errors as JSON."""

from __future__ import annotations

import io
import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from log_lake.cli.commands import COMMANDS, GROUPS
from log_lake.cli.looking import bars
from log_lake.cli.main import build_parser
from tests.support.command import INVALID_INPUT, NOT_FOUND, USAGE, Command

RECORDS = [
    {"k": 1, "s": "a", "x": 0.5, "m": 1, "b": True, "r": {"i": 1}, "t": "2026-01-01T00:00:00Z"},
    {"k": 2, "s": "b", "x": 10.5, "m": "z", "t": "2026-01-02T00:00:00Z"},
    {"k": 30, "s": "b", "=": 1, "S": 2},
]


@pytest.fixture
def pool(lake: Command) -> str:
    lake.pool("p", types={"t": "timestamp"})
    lake.load_records("p", RECORDS)
    return "p"


def test_head_prints_the_first_records_as_a_table_or_as_asked(lake: Command, pool: str) -> None:
    assert lake("head", pool, "2").out.splitlines()[0].split()[:2] == ["k", "s"]
    assert len(lake("head", pool, "2").out.splitlines()) == 3
    assert [one["k"] for one in lake("head", pool, "--json").records] == [1, 2, 30]
    lake("delete", pool, "--all")
    assert lake("head", pool).err == "no records\n"
    for words in (["head", pool, "0"], ["describe", pool, "--limit", "00"]):
        assert "use 1 or more" in lake.fails(USAGE, *words)
    assert len(lake("head", pool, "--at", "1", "--json").records) == 3


def test_describe_summarizes_each_field(lake: Command, pool: str) -> None:
    found = {one["field"]: one for one in lake("describe", pool, "--json").records}
    assert found["k"] == {
        "field": "k", "type": "bigint", "nulls": 0, "least": "1", "greatest": "30", "distinct": 3,
        "histogram": [2, 0, 0, 0, 0, 0, 0, 0, 0, 1], "frequent": [], "records": 3, "is_all": True,
    }  # fmt: skip
    assert (found["s"]["nulls"], found["s"]["least"], found["s"]["frequent"][0]) == (0, "a", "b")
    assert found["x"]["histogram"] == [1, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    assert (found["m"]["type"], found["m"]["least"], found["m"]["nulls"]) == ("json", None, 1)
    assert (found["r"]["nulls"], found["r"]["distinct"]) == (2, None)
    assert (found["t"]["least"][:10], sum(found["t"]["histogram"])) == ("2026-01-01", 2)
    assert (found["="]["greatest"], found["S"]["greatest"], found["b"]["frequent"]) == ("1", "2", ["true"])
    shown = lake("describe", pool, "--limit", "2")
    assert "the first 2 records" in shown.err
    assert f"{pool}: the first record; " in lake("describe", pool, "--limit", "1").err
    assert f"{pool}: 3 records; " in lake("describe", pool).err
    assert [line.split()[0] for line in shown.out.splitlines()[1:]] == list(found)


@pytest.mark.parametrize("kind", ["double", "float"])
def test_describe_counts_what_is_no_finite_number_as_a_value_without_a_bar(
    lake: Command, kind: str, tmp_path: Path
) -> None:
    values = [float("nan"), float("inf"), -float("inf"), 0.0, 10.0, None]
    columns = {
        "k": pa.array(range(6)),
        "x": pa.array(values, pa.type_for_alias(kind)),
        "n": pa.array([float("nan")] * 6, pa.type_for_alias(kind)),
    }
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    lake.pool("q")
    lake("load", "q", str(tmp_path / "x.parquet"))
    found = {one["field"]: one for one in lake("describe", "q", "--json").records}
    assert (found["x"]["nulls"], found["x"]["histogram"]) == (1, [1, 0, 0, 0, 0, 0, 0, 0, 0, 1])
    assert (found["n"]["nulls"], found["n"]["greatest"], found["n"]["histogram"]) == (0, "nan", [])


@pytest.mark.parametrize(
    ("values", "bars"),
    [
        (pa.array([1.7e308, 0.0, -1.7e308]), [1, 0, 0, 0, 0, 1, 0, 0, 0, 1]),
        (pa.array([5e-324, 0.0, 5e-324]), [3, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        (pa.array([1e15, 1e15 + 1, 1e15 + 10]), [1, 1, 0, 0, 0, 0, 0, 0, 0, 1]),
        (pa.array([123456789.12345679, 123456789.12345678, 123456790.0]), [2, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
        (pa.array([-2.5, -2.5, None]), [2, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        (pa.array([Decimal("-9e37"), 0, Decimal("9e37")], pa.decimal128(38, 0)), [1, 0, 0, 0, 0, 1, 0, 0, 0, 1]),
        (pa.array([0, 1 << 63, (1 << 64) - 1], pa.uint64()), [1, 0, 0, 0, 0, 1, 0, 0, 0, 1]),
        (pa.array([-62_135_596_800, 0, 253_402_300_799], pa.timestamp("s")), [1, 1, 0, 0, 0, 0, 0, 0, 0, 1]),
        (pa.array([-(1 << 62), 0, 1 << 62], pa.timestamp("ns")), [1, 0, 0, 0, 0, 1, 0, 0, 0, 1]),
    ],
    ids=["wide", "least of all", "large", "near", "one value", "decimal", "uint64", "s", "ns"],
)  # fmt: skip
def test_a_histogram_of_any_range(lake: Command, values: pa.Array, bars: list[int], tmp_path: Path) -> None:
    pq.write_table(pa.table({"k": pa.array(range(3)), "x": values}), tmp_path / "x.parquet")
    lake.pool("q")
    lake("load", "q", str(tmp_path / "x.parquet"))
    assert lake("describe", "q", "--json").records[1]["histogram"] == bars


def test_describe_of_an_empty_pool_has_its_key(lake: Command) -> None:
    lake.pool("p")
    assert "0 records" in lake("describe", "p").err


def test_a_histogram_draws_few_values_too() -> None:
    assert bars((0, 1, 1000)) == " ▁█"
    assert bars(()) == bars((0, 0)).strip() == ""


def test_du_says_what_the_bytes_are_for(lake: Command, pool: str) -> None:
    (before,) = lake("du", "--json").records
    folder = next(one for one in Path(lake.uri).iterdir() if (one / "data").is_dir())
    assert before["total"] == sum(one.stat().st_size for one in folder.rglob("*") if one.is_file())
    assert (before["current"] > 0, before["removed"]) == (True, 0)
    lake("delete", pool, "--all")
    lake("tombstones", pool, "--at-once")
    (after,) = lake("du", pool, "--json").records
    assert (after["current"], after["removed"]) == (0, before["current"])
    assert lake("du").out.split()[:2] == ["pool", "current"]
    assert "nope" in lake.fails(NOT_FOUND, "du", "nope")


def test_sql_reads_the_files_that_the_person_names_and_no_others(
    lake: Command, pool: str, tmp_path: Path
) -> None:
    codes, other = tmp_path / "codes.csv", tmp_path / "other.csv"
    codes.write_text("s,name\na,first\n")
    other.write_text("x\n1\n")
    sql = f"SELECT c.name FROM p JOIN '{codes}' c ON p.\"=s\" = c.s"
    assert lake("query", "--files", str(codes), sql, "--json").records == [{"name": "first"}]
    assert f"--files {codes}" in lake.fails(NOT_FOUND, "query", sql)
    for text in (f"SELECT * FROM '{other}'", f"SELECT * FROM '{tmp_path}/../x.csv'"):
        assert "--files" in lake.fails(NOT_FOUND, "query", "--files", str(codes), text)
    for text in (f"FROM read_csv('{other}')", f"FROM read_text('{tmp_path}/*')", "FROM glob('/*')"):
        assert "--files" in lake.fails(INVALID_INPUT, "query", "--files", str(codes), text)
    assert (
        len(lake("query", "--files", str(tmp_path), f"FROM '{tmp_path}/codes*.csv'", "--json").records) == 1
    )
    assert "no file" in lake.fails(NOT_FOUND, "query", "--files", str(tmp_path / "no"), "SELECT 1")


def test_a_pool_comes_before_a_folder_and_a_file_of_its_name(
    lake: Command, pool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "codes.csv").write_text("s\na\n")
    sql = "SELECT count(*) AS n FROM p, 'p/codes.csv'"
    assert lake("query", "--files", "p", sql, "--json").records == [{"n": 3}]
    (tmp_path / "q").write_text("s\na\n")
    lake.pool("q")
    assert lake("query", "--files", "q", "SELECT count(*) AS n FROM q", "--json").records == [{"n": 0}]


@pytest.mark.parametrize(
    "given", ["d/codes.csv", "./d/codes.csv", "{here}/d/codes.csv", "d", "d/", ".", "{here}"]
)
def test_a_file_may_be_spelled_in_another_way_than_the_option(
    lake: Command, given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    (here / "d").mkdir(parents=True)
    (here / "d" / "codes.csv").write_text("s\na\n")
    for outside in (here / "dd.csv", tmp_path / "other.csv"):
        outside.write_text("s\nb\n")
    (here / "d" / "link.csv").symlink_to(tmp_path / "other.csv")
    monkeypatch.chdir(here)
    files = ["--files", given.format(here=here)]
    for name in ("d/codes.csv", "./d/codes.csv", "d//codes.csv", "d/../d/codes.csv", f"{here}/d/codes.csv"):
        assert lake("query", *files, f"FROM '{name}'", "--json").records == [{"s": "a"}]
    for name in ("d/../../other.csv", f"{tmp_path}/other.csv", "../other.csv"):
        assert "--files" in lake.fails(NOT_FOUND, "query", *files, f"FROM '{name}'")


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ("SELECT 'a;\nb' AS s;\n", [{"s": "a;\nb"}]),
        ("SELECT 1 AS n -- one;\n, 2 AS m;\n", [{"n": 1, "m": 2}]),
        ("/* ;\n*/ SELECT 1 AS n; -- the end;\n", [{"n": 1}]),
        ("SELECT $$;\n$$ AS s; ;\n", [{"s": ";\n"}]),
        ("SELECT 'é' AS s; SELECT 2\nAS n; .pools\n;", [{"s": "é"}, {"n": 2}]),
        ("SELECT 1 AS n; SELECT 2 AS n", [{"n": 1}, {"n": 2}]),
    ],
)
def test_the_shell_ends_a_statement_where_sql_does(
    lake: Command, pool: str, text: str, answers: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    outcome = lake.run("shell", "--json")
    assert [json.loads(line) for line in outcome.out.splitlines()] == answers
    assert (outcome.status == 0) == (".pools" not in text)


def test_the_shell_answers_statements_of_several_lines(
    lake: Command, pool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "SELECT k\nFROM p\nWHERE k < 2;\n.pools\n.fields p\nSELECT count(*) AS n FROM p"
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    lines = lake("shell").out.splitlines()
    assert lines[:4] == ["k", "1", "pool  key", "p     k"]
    assert lines[-2:] == ["n", "3"]


@pytest.mark.parametrize("text", ["SELECT nope FROM p;\nSELECT 1;", ".pool\nSELECT 1;", "DROP TABLE p;"])
def test_the_first_error_of_a_script_ends_the_shell(
    lake: Command, pool: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    outcome = lake.run("shell")
    assert (outcome.status, outcome.out) == (INVALID_INPUT, "")


def test_the_help_lists_every_command_in_its_group() -> None:
    shown = build_parser().format_help()
    for heading, commands in GROUPS.items():
        part = shown.partition(f"\n{heading}:\n")[2].partition("\n\n")[0]
        assert [line.split()[0] for line in part.splitlines() if line[2] != " "] == [
            one.name for one in commands
        ]
    assert sum(map(len, GROUPS.values())) == len(COMMANDS)


@pytest.mark.parametrize(
    ("words", "status", "kind"),
    [
        (["show", "nope"], NOT_FOUND, "NotFound"),
        (["delete", "p"], INVALID_INPUT, "InvalidInput"),
        (["ls", "--nothing"], USAGE, "Usage"),
        (["query", "SELECT * FROM p WHERE"], INVALID_INPUT, "InvalidInput"),
    ],
)
def test_with_json_an_error_is_a_line_of_json(
    lake: Command, pool: str, words: list[str], status: int, kind: str
) -> None:
    outcome = lake.run(*words, "--json")
    error = json.loads(outcome.err)
    assert (outcome.out, error["status"], error["kind"]) == ("", status, kind)
    assert " ".join(error["error"].split()) in " ".join(lake.run(*words).err.split())


EMPTY = [
    ["ls", "--dropped"], ["log", "p"], ["tags"], ["branch", "p"], ["leases"], ["jobs"], ["erasures"],
    ["parked", "p"], ["offsets", "p"],
    ["scan", "p"], ["head", "p"], ["describe", "p"], ["du"], ["query", "SELECT * FROM p"], ["fsck"], ["show", "p"],
    ["delete", "p", "--all"], ["compact", "p"], ["compact", "p", "--dry-run"], ["tombstones", "p"],
    ["tombstones", "p", "--dry-run"], ["expire", "p"], ["expire", "p", "--dry-run"], ["vacuum", "p"],
    ["vacuum", "p", "--dry-run"], ["vacuum", "--dropped"], ["checkpoint", "p", "--dry-run"], ["checkpoint", "p"],
    ["purge", "p"], ["purge", "p", "--dry-run"], ["publish", "p", "--status"],
    ["erase", "p", "--key", "1", "--dry-run"], ["parked", "p", "--release-all"],
]  # fmt: skip


@pytest.mark.parametrize("words", EMPTY, ids=" ".join)
def test_an_empty_answer_in_json_is_lines_of_json_and_nothing_else(lake: Command, words: list[str]) -> None:
    lake.pool("p")
    outcome = lake.run(*words, "--json")
    assert all(isinstance(one, dict) for one in outcome.records)
    if outcome.status:
        assert json.loads(outcome.err)["status"] == outcome.status
    else:
        assert not outcome.err or outcome.records == [] or words[0] == "describe", outcome.err
