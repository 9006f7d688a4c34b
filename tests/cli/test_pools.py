"""Commands about the lake and its pools: init, create, ls, show, set, drop, rename."""

from __future__ import annotations

from pathlib import Path

import pytest

from log_lake.cli.main import main
from tests.support.command import (
    ALREADY_EXISTS,
    DONE,
    INVALID_INPUT,
    NOT_FOUND,
    USAGE,
    Command,
)

COMMANDS = (
    "init",
    "create",
    "ls",
    "show",
    "set",
    "drop",
    "rename",
    "load",
    "scan",
    "get",
    "query",
    "log",
    "inspect",
)


def test_a_lake_is_made_once(tmp_path: Path) -> None:
    lake = Command(str(tmp_path / "lake"), tmp_path)
    made = lake("init", "--json").records[0]
    assert made["lake"] == lake.uri
    assert len(made["id"]) == 27
    assert "there is a lake already" in lake.fails(ALREADY_EXISTS, "init")
    assert lake("inspect", "lake.json", "--json").records == [
        {"magic": "lake", "version": 3, "id": made["id"]}
    ]


def test_making_a_lake_says_where(tmp_path: Path) -> None:
    lake = Command(str(tmp_path / "lake"), tmp_path)
    said = lake("init")
    assert said.out == ""
    assert said.err.startswith(f"made the lake {lake.uri} (")


def test_where_there_is_no_lake_the_way_out_is_named(tmp_path: Path) -> None:
    nowhere = Command(str(tmp_path / "nowhere"), tmp_path)
    assert nowhere.fails(NOT_FOUND, "ls").endswith("there is no lake; make one with: lake init")


def test_the_lake_may_be_named_before_the_command_or_by_the_environment(
    lake: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lake.pool("p")
    monkeypatch.delenv("LAKE", raising=False)
    assert main(["--lake", lake.uri, "--json", "ls"]) == DONE
    before = capsys.readouterr().out
    monkeypatch.setenv("LAKE", lake.uri)
    assert main(["ls", "--json"]) == DONE
    assert capsys.readouterr().out == before == lake("ls", "--json").out


def test_a_command_without_a_lake_says_how_to_name_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("LAKE", raising=False)
    assert main(["ls"]) == INVALID_INPUT
    assert (
        capsys.readouterr().err
        == "lake: no lake named: give its URI (lake, in the command --lake), or set LAKE\n"
    )


def test_create_tells_what_was_made(lake: Command) -> None:
    said = lake("create", "logs", "--key", "ts:desc,id.orig_h")
    assert (said.out, said.err) == ("", "made the pool logs, sorted by ts:desc,id.orig_h\n")
    (made,) = lake("create", "more", "--key", "k", "--json").records
    assert (made["pool"], made["key"], len(made["id"])) == ("more", "k", 27)


def test_create_takes_the_format_of_the_objects(lake: Command) -> None:
    lake("create", "p", "--key", "k", "--format", "zst")
    assert lake("show", "p", "--json").records[0]["settings"]["format"] == "zst"
    said = lake.fails(INVALID_INPUT, "create", "q", "--key", "k", "--format", "avro")
    assert "format=avro: use parquet, zng or zst" in said
    said = lake.fails(INVALID_INPUT, "create", "q", "--key", "k", "--format", "zng", "--set", "format=zst")
    assert "--format zng and --set format=zst: name one format, once" in said


def test_create_takes_types_and_settings(lake: Command) -> None:
    lake(
        "create",
        "p",
        "--key",
        "k",
        "--type",
        "a.b=date",
        "--type",
        "n=int",
        "--set",
        "csv.null=NA",
        "load.memory=1MB",
    )
    settings = lake("show", "p", "--json").records[0]["settings"]
    assert settings["type.a.b"] == "date"
    assert (settings["csv.null"], settings["load.memory"], settings["bad_records"]) == ("NA", "1MB", "fail")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["p/q", "--key", "k"], "'p/q'"),
        (["", "--key", "k"], "pool name"),
        (["p", "--key", ""], "key"),
        (["p", "--key", "k,k"], "k"),
        (["p", "--key", "k", "--kind", "heap"], "unknown kind 'heap': use append, upsert or aggregate"),
        (["p", "--key", "k", "--aggregate", "v=sum"], "aggregates are for pools of kind aggregate"),
        (
            ["p", "--key", "k", "--kind", "aggregate", "--aggregate", "v=avg"],
            "aggregate v=avg: use sum, min, max, count, first, last or any_value",
        ),
        (["p", "--key", "k", "--kind", "aggregate", "--aggregate", "k=sum"], "'k' is a field of the key"),
        (["p", "--key", "k", "--kind", "aggregate", "--aggregate", "v"], "aggregate 'v': write FIELD=FN"),
        (["p", "--key", "k", "--type", "a"], "'a': write NAME=VALUE"),
        (
            ["p", "--key", "k", "--type", "a=text"],
            "type 'text' of field 'a' is unknown; use decimal(P,S), json",
        ),
        (
            ["p", "--key", "k", "--set", "colour=red"],
            "setting 'colour' is unknown; there are: age_off, agents, ",
        ),
        (["p", "--key", "k", "--set", "bad_records=keep"], "bad_records=keep: use fail or quarantine"),
        (["p", "--key", "k", "--set", "load.memory=much"], "use a size such as 500MB or 1GiB"),
    ],
)
def test_a_pool_that_cannot_be_is_refused(lake: Command, words: list[str], says: str) -> None:
    assert says in lake.fails(INVALID_INPUT, "create", *words)
    assert lake("ls", "--json").out == ""


def test_a_name_is_taken_once(lake: Command) -> None:
    lake.pool("p")
    lake.pool("q")
    assert "'p' exists already" in lake.fails(ALREADY_EXISTS, "create", "p", "--key", "k")
    assert "'q' exists already" in lake.fails(ALREADY_EXISTS, "rename", "p", "q")


def test_ls_of_nothing_says_what_to_do_next(lake: Command) -> None:
    said = lake("ls")
    assert (said.out, said.err) == ("", "no pools yet; make one with: lake create POOL --key FIELD\n")
    assert lake("ls", "--json").out == ""


def test_ls_lists_pools_and_what_lies_beside_them(lake: Command) -> None:
    lake.pool("b", key="k:desc")
    lake.pool("a")
    lake.load_records("b", [{"k": i} for i in range(1200)] + [{"x": 1}])
    rows = lake("ls", "--json").records
    assert [(r["pool"], r["key"], r["records"], r["objects"], r["version"]) for r in rows] == [
        ("a", "k", 0, 0, 0),
        ("b", "k:desc", 1200, 1, 1),
        ("b.$nokey", "(arrival)", 1, 1, 1),
    ]
    assert all(isinstance(r["size"], int) for r in rows)
    lines = lake("ls").out.splitlines()
    assert lines[0].split() == ["pool", "key", "kind", "records", "objects", "size", "version"]
    assert lines[1].split() == ["a", "k", "append", "0", "0", "0", "B", "0"]
    assert lines[2].split()[:5] == ["b", "k:desc", "append", "1,200", "1"]
    assert lines[2].index("1,200") + len("1,200") == lines[0].index("records") + len("records")


def test_show_tells_layout_fields_and_settings(lake: Command) -> None:
    lake.pool("p", key="k,m:desc", types={"t": "date"}, bad_records="quarantine")
    lake.load_records("p", [{"k": 2, "m": "x", "r": {"a": [1.5]}}, {"k": 1, "m": "z"}], "a.ndjson")
    lake.load_records("p", '{"k":1,"m":"y"}\nbad\n', "b.ndjson")
    (shown,) = lake("show", "p", "--json").records
    assert {
        n: shown[n] for n in ("pool", "key", "kind", "branch", "version", "records", "objects", "depth")
    } == {
        "pool": "p",
        "key": "k,m:desc",
        "kind": "append",
        "branch": "main",
        "version": 2,
        "records": 3,
        "objects": 2,
        "depth": 2,
    }
    assert (shown["low"], shown["high"]) == ([1, "z"], [2, "x"])
    assert shown["fields"] == {"k": "bigint", "m": "string", "r": "struct<a: list<double>>"}
    assert (shown["settings"]["bad_records"], shown["settings"]["type.t"]) == ("quarantine", "date")
    text = lake("show", "p").out
    for line in (
        "key          k,m:desc",
        "records      3",
        'range        [1,"z"] to [2,"x"]',
        "beside it    1 record in p.$rejected",
        "  r  struct<a: list<double>>",
        "  t  date",
    ):
        assert line in text.splitlines()
    assert (
        "fail: a record that cannot be read fails the load; quarantine: it goes to the sub-pool $rejected"
        in text
    )


def test_show_of_a_pool_without_records_shows_no_range(lake: Command) -> None:
    lake.pool("p")
    text = lake("show", "p").out
    assert "records      0" in text
    assert "\nrange" not in text
    assert "\nfields" not in text


def test_show_sees_the_past_and_sub_pools(lake: Command) -> None:
    lake.pool("p")
    lake.load_records("p", [{"k": 1}])
    lake.load_records("p", [{"k": 2}, {"x": 1}])
    assert lake("show", "p", "--at", "1", "--json").records[0]["records"] == 1
    (shown,) = lake("show", "p.$nokey", "--json").records
    assert (shown["pool"], shown["key"], shown["records"]) == ("p.$nokey", "(arrival)", 1)


def test_settings_change_and_go_back_to_their_defaults(lake: Command) -> None:
    lake.pool("p", bad_records="quarantine")
    said = lake("set", "p", "bad_records=", "description=what came in")
    assert (said.out, said.err) == ("", "changed the settings of p\n")
    settings = lake("show", "p", "--json").records[0]["settings"]
    assert (settings["bad_records"], settings["description"]) == ("fail", "what came in")
    assert lake("set", "p", "type.n=int", "--json").records == [{"version": 3}]
    assert "'n'" in lake.refuses_records("p", [{"k": 1, "n": "x"}])


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (["set", "nope", "description=x"], NOT_FOUND, "pool 'nope' does not exist; there are: p"),
        (["set", "p", "nope=x"], INVALID_INPUT, "setting 'nope' is unknown"),
        (["set", "p", "description"], INVALID_INPUT, "'description': write NAME=VALUE"),
        (["set", "p", "type.k=nope"], INVALID_INPUT, "type 'nope' of field 'k' is unknown"),
        (["show", "nope"], NOT_FOUND, "pool 'nope' does not exist"),
        (["drop", "nope", "--yes"], NOT_FOUND, "pool 'nope' does not exist"),
        (["rename", "nope", "q"], NOT_FOUND, "pool 'nope' does not exist"),
        (["rename", "p", "a b"], INVALID_INPUT, "'a b'"),
        (["log", "nope"], NOT_FOUND, "pool 'nope' does not exist"),
        (["scan", "nope"], NOT_FOUND, "pool 'nope' does not exist"),
        (["get", "nope", "1"], NOT_FOUND, "pool 'nope' does not exist"),
        (["load", "nope", "x.csv"], NOT_FOUND, "pool 'nope' does not exist"),
    ],
)
def test_what_does_not_exist_is_named(lake: Command, words: list[str], status: int, says: str) -> None:
    lake.pool("p")
    assert says in lake.fails(status, *words)


def test_a_dropped_pool_is_gone_and_its_name_free(lake: Command) -> None:
    lake.pool("p")
    lake.load_records("p", [{"k": 1}])
    said = lake("drop", "p", "--yes")
    assert (said.out, said.err) == ("", "removed the pool p; lake restore p takes it back\n")
    assert "'p' does not exist" in lake.fails(NOT_FOUND, "scan", "p")
    lake.pool("p")
    assert lake.scan("p") == []
    assert lake("drop", "p", "--yes", "--json").records == [{"version": 4}]


def test_a_renamed_pool_keeps_everything(lake: Command) -> None:
    lake.pool("p")
    lake.load_records("p", [{"k": 1}, {"x": 2}])
    said = lake("rename", "p", "q")
    assert (said.out, said.err) == ("", "renamed the pool p to q\n")
    assert (lake.scan("q"), lake.scan("q.$nokey")) == ([{"k": 1}], [{"x": 2}])
    assert lake("rename", "q", "r", "--json").records == [{"version": 3}]


@pytest.mark.parametrize(
    "words",
    [
        ["nope"],
        ["create", "p"],
        ["load", "p"],
        ["scan"],
        ["get", "p"],
        ["scan", "p", "--limit", "-1"],
        ["scan", "p", "--limit", "few"],
        ["scan", "p", "--format", "xml"],
        ["load", "p", "a.csv", "--format", "xlsx"],
        ["set", "p"],
    ],
)
def test_wrong_words_are_a_matter_of_usage(lake: Command, words: list[str]) -> None:
    outcome = lake.run(*words)
    assert (outcome.status, outcome.out) == (USAGE, "")
    assert outcome.err.endswith("--help)\n")


def test_every_command_is_listed_and_has_a_help_page(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    listed = capsys.readouterr().out
    for name in COMMANDS:
        assert f"\n  {name} " in listed
        with pytest.raises(SystemExit, match="0"):
            main([name, "--help"])
        assert f"usage: lake {name}" in capsys.readouterr().out


BAD = "a\udcffb"


@pytest.mark.parametrize(
    "words",
    [
        ("load", "p", "FILE", "--token", BAD),
        ("load", "p", "FILE", "--message", BAD),
        ("load", "p", "FILE", "--branch", BAD),
        ("load", "p", "FILE", "--csv-null", BAD),
        ("load", BAD, "FILE"),
        ("create", BAD, "--key", "k"),
        ("create", "q", "--key", BAD),
        ("create", "q", "--key", "k", "--type", f"{BAD}=int"),
        ("create", "q", "--key", "k", "--kind", "aggregate", "--aggregate", f"{BAD}=sum"),
        ("set", "p", f"description={BAD}"),
        ("set", "p", f"type.{BAD}=int"),
        ("get", "p", BAD),
        ("explain", "p", BAD),
        ("scan", "p", "--from", BAD),
        ("scan", "p", "--where", f"a = '{BAD}'"),
        ("scan", "p", "--columns", f"k,{BAD}"),
        ("scan", "p", "--at", BAD),
        ("delete", "p", "--key", BAD),
        ("delete", "p", "--key", "k", "--token", BAD),
        ("replace", "p", "FILE", "--all", "--token", BAD),
        ("query", f"select '{BAD}'"),
        ("rename", "p", BAD),
        ("log", "p", "--branch", BAD),
        ("inspect", BAD),
        ("repair", "p", "--transaction", BAD, "--yes"),
        ("parked", "p", "--release", BAD),
        ("show", BAD),
        ("drop", BAD, "--yes"),
    ],
)
def test_an_argument_that_is_not_utf_8_is_one_line(lake: Command, words: tuple[str, ...]) -> None:
    lake.pool("p")
    file = lake.file("a.ndjson", [{"k": "x"}])
    lake("load", "p", file, "--token", "t")
    before = lake.history("p"), lake("ls").out
    message = lake.fails(INVALID_INPUT, *(file if word == "FILE" else word for word in words))
    assert "\\xff" in message
    assert "is not UTF-8" in message
    assert (lake.history("p"), lake("ls").out) == before


def test_a_dropped_pool_is_listed_and_taken_back(lake: Command) -> None:
    lake.pool("p")
    lake.load_records("p", [{"k": 1}])
    assert lake("ls", "--dropped").err == "no dropped pools\n"
    lake("drop", "p", "--yes")
    (dropped,) = lake("ls", "--dropped", "--json").records
    assert (dropped["pool"], dropped["until"] > dropped["dropped"]) == ("p", True)
    assert dropped["id"] in lake("ls", "--dropped").out
    lake.pool("p")
    assert "--as NAME" in lake.fails(ALREADY_EXISTS, "restore", "p")
    said = lake("restore", f"p#{dropped['id']}", "--as", "q", "--meta", "ticket=7")
    assert said.err == f"restored the pool q ({dropped['id']})\n"
    assert lake.scan("q") == [{"k": 1}]
    assert lake("ls", "--dropped", "--json").records == []
    lake.fails(INVALID_INPUT, "restore", "q")
    lake.fails(NOT_FOUND, "restore", "nobody")


def test_dropped_pools_are_vacuumed(lake: Command) -> None:
    lake.pool("p")
    lake("drop", "p", "--yes")
    (planned,) = lake("vacuum", "--dropped", "--dry-run", "--json").records
    assert planned["kept_by"] == "grace"
    assert lake("vacuum", "--dropped").err == "deleted 0 dropped pools; 1 left (lake ls --dropped)\n"
    (done,) = lake("vacuum", "--dropped", "--grace", "0s", "--json").records
    assert (done["pool"], done["id"], done["objects"] > 0) == ("p", planned["id"], True)
    assert lake("ls", "--dropped", "--json").records == []
    for words in ((), ("p", "--dropped"), ("--dropped", "--plan", "x")):
        assert "name a pool, or say --dropped" in lake.fails(INVALID_INPUT, "vacuum", *words)
