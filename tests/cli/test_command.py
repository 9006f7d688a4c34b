"""The command itself: how it reads its words, how fast it answers, what it prints on a terminal and for a shell."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from log_lake.cli.commands import COMMANDS
from log_lake.cli.main import build_parser, main
from log_lake.lake import Lake
from tests.support.command import DONE, INVALID_INPUT, NOT_FOUND, USAGE, Command
from tests.support.terminal import on_terminal

SLOW = (
    "numpy",
    "pyarrow",
    "duckdb",
    "datafusion",
    "fsspec",
    "s3fs",
    "gcsfs",
    "rich",
    "rpds",
    "msgspec",
)
"""Modules that a command needs to work, not to say what it does."""


def modules_after(code: str) -> set[str]:
    """The modules that a new Python has imported after the code."""
    tell = "sys.stderr.write('MODULES ' + json.dumps(list(sys.modules)))"
    script = f"import contextlib, io, json, sys\n{code}\n{tell}"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=600
    )
    return set(json.loads(done.stderr.rpartition("MODULES ")[2]))


def helping(*words: str) -> str:
    return (
        "from log_lake.cli.main import main\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n"
        f"    main({[*words, '--help']!r})"
    )


@pytest.mark.parametrize(
    "code",
    [
        "import lake_core.errors",
        "import lake_core.naming, lake_core.phrases",
        helping(),
        helping("load"),
        helping("compact"),
    ],
)
def test_errors_and_help_load_no_engine(code: str) -> None:
    assert not modules_after(code) & set(SLOW)


@pytest.mark.parametrize(
    "words",
    [["show", "p"], ["scan", "p"], ["get", "p", "1"], ["load", "p", "FILE"], ["query", "select * from p"]],
    ids=lambda words: words[0],
)
def test_the_command_loads_no_pandas(tmp_path: Path, words: list[str]) -> None:
    pytest.importorskip("pandas")
    lake, file = Lake.create(str(tmp_path / "lake")), tmp_path / "new.json"
    lake.create_pool("p", key="k").branch().append(pa.table({"k": [1], "s": ["a"]}))
    file.write_text('{"k": 2, "s": "b"}')
    words = [str(file) if word == "FILE" else word for word in words]
    modules = modules_after(
        "from log_lake.cli.main import main\n"
        f"sys.argv[1:] = {['--lake', lake.store.uri, *words]!r}\n"
        "with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())):\n"
        "    assert main() == 0"
    )
    assert "pyarrow" in modules  # it did work
    assert "pandas" not in modules


def test_a_process_that_is_not_the_commands_own_keeps_pandas(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    Lake.create(str(tmp_path))
    assert "pandas" in modules_after(
        "from log_lake.cli.main import main\n"
        "with contextlib.redirect_stdout(io.StringIO()):\n"
        f"    main(['--lake', {str(tmp_path)!r}, 'ls'])\n"
        "import pandas"
    )


def test_a_package_with_a_lazy_face_still_gives_its_names() -> None:
    import log_lake
    from lake_core import catalog
    from log_lake.agents import compact as compaction

    for package in (log_lake, catalog, compaction):
        assert all(getattr(package, name) is not None for name in package.__all__)
        with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
            package.nothing  # type: ignore[attr-defined]


def test_every_command_has_a_function_that_carries_it_out() -> None:
    for name in commands():
        assert callable(COMMANDS[build_parser().parse_args(words_of(name)).command].function())


def commands() -> list[str]:
    listed = build_parser().format_help().partition("the lake and its pools:\n")[2]
    return [line.split()[0] for line in listed.splitlines() if line.startswith("  ") and line[2] != " "]


def words_of(command: str) -> list[str]:
    """A command with as many words as it wants."""
    more = {
        "create": ["p", "--key", "k"], "set": ["p", "a=b"], "rename": ["p", "q"], "load": ["p", "f"],
        "replace": ["p", "f"], "get": ["p", "1"], "explain": ["p", "1"], "query": ["q"], "inspect": ["n"],
        "completion": ["bash"], "init": [], "ls": [], "upgrade": [], "merge": ["p", "b"],
        "revert": ["p", "1"], "undo": ["p", "1"], "shell": [], "du": [], "ui": [],
        "serve": [], "rekey": ["p", "q", "--key", "k"], "verify": ["p", "q"], "begin": [], "transactions": [],
        "clone": ["p", "q"], "derive": [], "index": ["ls"],
    }  # fmt: skip
    return [command, *more.get(command, ["p"])]


# ---------------------------------------------------------------- words


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["lod", "p"], "unknown command 'lod': did you mean 'load'?"),
        (["delte", "p", "--key", "1"], "did you mean 'delete'?"),
        (["index", "lst"], "unknown action 'lst': did you mean 'ls'?"),
        (["load", "p", "f", "--tokn", "x"], "unknown option --tokn; did you mean --token?"),
        (["create", "p", "--kye", "k"], "unknown option --kye; did you mean --key?"),
        (["scan", "p", "--format=tabel"], "unknown --format 'tabel': did you mean 'table'?"),
        (["compact", "p", "--strategy", "size-ratio"], "did you mean 'size_ratio'?"),
        (["ls", "--nothing-like-it"], "unknown option --nothing-like-it (see: lake ls --help)"),
        (["ls", "p"], "unknown argument 'p'"),
        (["scan"], "required: POOL"),
    ],
)
def test_a_mistyped_word_is_answered_with_the_one_that_is_near(
    lake: Command, words: list[str], says: str
) -> None:
    assert says in lake.fails(USAGE, *words)


@pytest.mark.parametrize("words", [["scan", "p", "--lim", "1"], ["load", "p", "f", "--tok", "t"]])
def test_an_option_that_is_cut_short_is_unknown(lake: Command, words: list[str]) -> None:
    lake.pool("p")
    assert "unknown option" in lake.fails(USAGE, *words)


def test_a_mistyped_pool_or_setting_is_answered_with_the_one_that_is_near(lake: Command) -> None:
    lake.pool("flights")
    lake.pool("weather")
    assert lake.fails(NOT_FOUND, "scan", "flihgts").endswith("did you mean 'flights'?")
    assert lake.fails(NOT_FOUND, "scan", "Flights").endswith("did you mean 'flights'?")
    assert lake.fails(NOT_FOUND, "scan", "q").endswith("there are: flights, weather")
    assert "did you mean 'compact.ratio'?" in lake.fails(INVALID_INPUT, "set", "flights", "compact.ration=3")


def test_version_names_the_command_and_exits_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out.split()[0].rstrip(",") == "lake"


# ---------------------------------------------------------------- what it logs


def test_verbose_prints_what_the_library_decides_and_leaves_results_alone(lake: Command) -> None:
    lake.pool("p")
    path = lake.file("a.ndjson", [{"k": 1}])
    loaded = lake("load", "p", path, "--json", "-v")
    assert len(loaded.records) == 1
    assert (
        "log_lake.lake.line: p: version 1 adds 1 object; others wrote 0 entries since it began" in loaded.err
    )
    assert lake("load", "p", path, "--json").err == ""
    lake.load_records("p", [{"k": 5}])
    assert "log_lake.lake.view: p at version 3: reads 1 of 3 objects" in lake("get", "p", "5", "-v").err
    lake("checkpoint", "p")
    assert "starts from the checkpoint of version 3" in lake("get", "p", "5", "--verbose").err
    assert logging.getLogger("log_lake").handlers == []


# ---------------------------------------------------------------- on a terminal


WIDE = {"k": 1, "name": "a" * 60, "note": "b" * 60, "more": "c" * 30, "last": "d" * 30}


def test_tables_fit_the_terminal_and_say_what_they_leave_out(lake: Command) -> None:
    lake.pool("p")
    lake.load_records("p", [WIDE])
    shown = on_terminal("scan", "p", "--lake", lake.uri, columns=60)
    assert shown.status == DONE
    assert all(len(line) <= 60 for line in shown.lines[:2])
    assert shown.lines[0].split()[:2] == ["k", "name"]
    assert "…" in shown.lines[1]
    narrow = on_terminal("scan", "p", "--lake", lake.uri, columns=30)
    assert all(len(line) <= 30 for line in narrow.lines[:2])
    assert "too narrow for 2 more columns: more, last" in narrow.text
    wide = on_terminal("scan", "p", "--lake", lake.uri, columns=200)
    assert wide.lines[0].split() == ["k", "name", "note", "more", "last"]
    listed = on_terminal("ls", "--lake", lake.uri, columns=40)
    assert all(len(line) <= 40 for line in listed.lines[:2])
    settings = on_terminal("show", "p", "--lake", lake.uri, columns=90)
    assert all(len(line) <= 90 for line in settings.lines)


def test_a_pipe_gets_every_column_whole(lake: Command) -> None:
    lake.pool("p")
    lake.load_records("p", [WIDE])
    names = lake("scan", "p", "--format", "table").out.splitlines()[0].split()
    assert names == list(WIDE)


@pytest.mark.parametrize(("typed", "gone"), [("y\n", True), ("yes\n", True), ("n\n", False), ("\n", False)])
def test_drop_asks_whoever_sits_at_the_terminal(lake: Command, typed: str, gone: bool) -> None:
    lake.pool("p")
    lake.load_records("p", [{"k": 1}, {"k": 2}])
    shown = on_terminal("drop", "p", "--lake", lake.uri, typed=typed)
    assert "Remove the pool p (2 records)? [y/N]" in shown.text
    assert (shown.status == DONE) == gone
    assert (lake("ls", "--json").records == []) == gone
    if not gone:
        assert "not confirmed; nothing was changed" in shown.text


def test_drop_without_a_terminal_wants_yes(lake: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", open(os.devnull))  # noqa: SIM115 - pytest's own has no isatty
    lake.pool("p")
    lake.load_records("p", [{"k": 1}])
    assert lake.fails(INVALID_INPUT, "drop", "p") == "lake: drop: to remove the pool p (1 record), add --yes"
    assert "add --yes" in lake.fails(INVALID_INPUT, "drop", "p", "--from", "1")
    assert lake.scan("p") == [{"k": 1}]


# ---------------------------------------------------------------- in a shell


def offered(line: str, folder: Path, **environ: str) -> list[str]:
    """What a shell is told to offer behind the line."""
    told = folder / "told"
    subprocess.run(
        [sys.executable, "-m", "log_lake.cli.main"],
        env=os.environ
        | {
            "_ARGCOMPLETE": "1",
            "_ARGCOMPLETE_SHELL": "bash",
            "_ARGCOMPLETE_STDOUT_FILENAME": str(told),
            "_ARGCOMPLETE_IFS": "\n",
            "COMP_LINE": line,
            "COMP_POINT": str(len(line)),
        }
        | environ,
        check=False,
        timeout=600,
    )
    return [word.strip() for word in told.read_text().split("\n")]


def test_a_shell_is_offered_commands_options_choices_and_pools(lake: Command, tmp_path: Path) -> None:
    lake.pool("flights")
    lake.pool("weather")
    assert offered("lake ex", tmp_path) == ["export", "explain", "expire"]
    assert "--token" in offered("lake load logs x --t", tmp_path)
    assert offered("lake compact p --strategy d", tmp_path) == ["depth"]
    assert offered("lake scan fl", tmp_path, LAKE=lake.uri) == ["flights"]
    assert "compact.ratio=" in offered("lake set flights compact.r", tmp_path, LAKE=lake.uri)
    assert offered("lake scan fl", tmp_path, LAKE=str(tmp_path / "nowhere")) == [""]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_lines_for_a_shell_are_printed(lake: Command, shell: str) -> None:
    printed = lake("completion", shell).out
    assert "lake" in printed
    assert ("complete" if shell != "zsh" else "compdef") in printed
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=printed, text=True, check=True, timeout=600)
