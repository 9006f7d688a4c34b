"""`lake apply` and `lake export`: pools as a file, as a user types it."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
import yaml

from log_lake.lake import Lake
from tests.support.command import DONE, INVALID_INPUT, NOT_FOUND, Command
from tests.support.terminal import on_terminal

FILE = """\
defaults:
  settings:
    history.keep: 90d
pools:
  flights:
    key: time_hour,carrier
    kind: upsert
    settings:
      compact.depth: 4
      upkeep.window: 22:00-06:00
  logs:
    key: ts:desc
"""


def pools(lake: Command) -> dict[str, tuple[str, str, dict[str, str]]]:
    """Key, kind and the settings that were set, by name."""
    listed = Lake.open(lake.uri).pools()
    return {one.name: (str(one.key), one.kind, one.settings) for one in listed}


def test_a_file_makes_the_pools_that_it_names_and_again_there_is_nothing_to_do(lake: Command) -> None:
    file = lake.file("pools.yaml", FILE)
    applied = lake("apply", file)
    assert applied.out == (
        "+ pool flights: key time_hour,carrier, kind upsert\n"
        "    compact.depth = 4\n"
        "    history.keep = 90d\n"
        "    upkeep.window = 22:00-06:00\n"
        "+ pool logs: key ts:desc, kind append\n"
        "    history.keep = 90d\n"
        "2 pools to create\n"
    )
    assert applied.err == f"applied {file}; the list of pools has version 1\n"
    assert pools(lake) == {
        "flights": (
            "time_hour,carrier",
            "upsert",
            {"history.keep": "90d", "compact.depth": "4", "upkeep.window": "22:00-06:00"},
        ),
        "logs": ("ts:desc", "append", {"history.keep": "90d"}),
    }
    again = lake("apply", file)
    assert (again.out, again.err) == ("nothing to do: the lake is as the file says\n", "")
    lake.load_records("logs", [{"ts": 1}])
    assert lake.scan("logs") == [{"ts": 1}]


def test_a_dry_run_shows_the_difference_and_changes_nothing(lake: Command) -> None:
    file = lake.file("pools.yaml", FILE)
    shown = lake("apply", file, "--dry-run").out
    assert pools(lake) == {}
    assert lake("apply", file).out == shown


def test_what_the_file_does_not_set_goes_back_to_its_default(lake: Command) -> None:
    file = lake.file("pools.yaml", FILE)
    lake("apply", file)
    lake("set", "logs", "description=by hand", "compact.depth=3")
    assert lake("apply", file).out == (
        "~ pool logs\n    compact.depth: 3 -> default (8)\n    description: by hand -> default\n1 pool to change\n"
    )
    assert pools(lake)["logs"][2] == {"history.keep": "90d"}


def test_pools_that_the_file_does_not_name_are_dropped_only_if_asked_and_confirmed(lake: Command) -> None:
    file = lake.file("pools.yaml", "pools: {logs: {key: ts}}\n")
    lake("create", "old", "--key", "k")
    lake.load_records("old", [{"k": 1}])
    assert "not in the file, left as they are (--prune drops them): old" in lake("apply", file).out
    assert (
        lake.fails(INVALID_INPUT, "apply", file, "--prune")
        == "lake: apply: to remove 1 pool (old), add --yes"
    )
    assert list(pools(lake)) == ["logs", "old"]
    assert lake("apply", file, "--prune", "--yes").out == "- pool old: key k, kind append\n1 pool to drop\n"
    assert list(pools(lake)) == ["logs"]
    lake("restore", "old")
    assert lake.scan("old") == [{"k": 1}], "a pruned pool is dropped as lake drop does: it can be restored"


def test_a_change_by_which_agents_remove_more_is_confirmed(lake: Command) -> None:
    lake("apply", lake.file("pools.yaml", FILE))
    file = lake.file("less.yaml", FILE.replace("90d", "5d"))
    assert lake.fails(INVALID_INPUT, "apply", file) == (
        "lake: apply: to let agents remove more from 2 pools (flights, logs), add --yes"
    )
    assert pools(lake)["logs"][2] == {"history.keep": "90d"}
    assert "    history.keep: 90d -> 5d  (agents will remove more)\n" in lake("apply", file, "--yes").out
    assert pools(lake)["logs"][2] == {"history.keep": "5d"}


def test_a_key_that_changes_is_refused_and_nothing_else_is_done(lake: Command) -> None:
    lake("apply", lake.file("pools.yaml", FILE))
    file = lake.file("other.yaml", FILE.replace("ts:desc", "ts") + "  new:\n    key: k\n")
    assert lake.fails(INVALID_INPUT, "apply", file) == (
        f"lake: {file}:12:10: pool 'logs' has the key ts:desc (the file: ts); a pool keeps it: write what it has, "
        "or make a pool of another name; nothing was changed"
    )
    assert "new" not in pools(lake)


def test_all_faults_are_printed_and_the_error_has_the_first(lake: Command) -> None:
    file = lake.file(
        "bad.yaml", "pools:\n  a: {key: k, kind: x}\n  b: {key: k, settings: {compact.depth: 0}}\n"
    )
    outcome = lake.run("apply", file)
    assert outcome.status == INVALID_INPUT
    kind = f"{file}:2:21: pool 'a': kind must be append, upsert or aggregate (got 'x')"
    depth = f"{file}:3:41: setting compact.depth=0: use a whole number of at least 1"
    assert outcome.out == f"{kind}\n{depth}\n"
    assert outcome.err == f"lake: {kind} (and 1 more fault); nothing was changed\n"
    assert [(one["line"], one["column"]) for one in lake.run("apply", file, "--json").records] == [
        (2, 21),
        (3, 41),
    ]
    assert pools(lake) == {}


def test_a_thousand_faults_are_fifty_lines(lake: Command) -> None:
    text = "pools:\n" + "".join(f"  p{i}: {{key: k, kind: x}}\n" for i in range(1000))
    outcome = lake.run("apply", lake.file("bad.yaml", text))
    assert len(outcome.out.splitlines()) == 51
    assert outcome.out.endswith("bad.yaml: 950 more faults\n")


@pytest.mark.parametrize(
    ("content", "status", "message"),
    [
        (b"pools: {\xff}\n", INVALID_INPUT, "bad.yaml:1:9: byte 0xff is not UTF-8; save the file as UTF-8"),
        ("pools: {}\n".encode("utf-16"), INVALID_INPUT, "bad.yaml:1:1: byte 0xff is not UTF-8"),
        (
            b"#" * (4 << 20) + b"\npools: {}\n",
            INVALID_INPUT,
            "is larger than 4.2 MB, the most that a policy file",
        ),
        (b"", INVALID_INPUT, "bad.yaml:1:1: the file is empty"),
        (b"pools: {p: {key: k\n", INVALID_INPUT, "bad.yaml:2:1: this is not YAML: "),
        (b"\x00\x01\x02", INVALID_INPUT, "this is not YAML: "),
    ],
)
def test_a_file_that_is_no_policy_file_is_one_line(
    lake: Command, content: bytes, status: int, message: str
) -> None:
    assert message in lake.fails(status, "apply", lake.file("bad.yaml", content))


def test_a_byte_order_mark_and_lines_of_windows_are_no_fault(lake: Command) -> None:
    lake("apply", lake.file("pools.yaml", b"\xef\xbb\xbf" + FILE.replace("\n", "\r\n").encode()))
    assert list(pools(lake)) == ["flights", "logs"]


def test_a_file_that_is_not_there_or_is_a_folder_is_named(lake: Command) -> None:
    assert "the policy file 'nothere.yaml' does not exist" in lake.fails(NOT_FOUND, "apply", "nothere.yaml")
    assert "Is a directory; name another" in lake.fails(INVALID_INPUT, "apply", str(lake.folder))
    assert "the policy file 'foo://x': Protocol not known: foo" in lake.fails(
        INVALID_INPUT, "apply", "foo://x"
    )
    assert "name a policy file, - for standard input, or --schema" in lake.fails(INVALID_INPUT, "apply")


def test_a_file_on_another_store_is_read_there(lake: Command) -> None:
    file = Path(lake.file("pools.yaml", FILE)).as_uri()
    lake("apply", file)
    assert list(pools(lake)) == ["flights", "logs"]


def test_standard_input_is_a_file_too(lake: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(FILE.encode())))
    lake("apply", "-")
    assert list(pools(lake)) == ["flights", "logs"]


def test_json_says_what_was_done(lake: Command) -> None:
    file = lake.file("pools.yaml", FILE)
    lake("create", "logs", "--key", "ts:desc", "--set", "history.keep=100d")
    lake("create", "old", "--key", "k")
    (said,) = lake("apply", file, "--prune", "--yes", "--json").records
    assert said == {
        "created": ["flights"],
        "changed": {"logs": {"history.keep": {"before": "100d", "after": "90d"}}},
        "dropped": ["old"],
        "unnamed": [],
        "removing": {"logs": ["history.keep"]},
        "applied": True,
        "version": 4,
    }
    (again,) = lake("apply", file, "--json").records
    assert (again["applied"], again["version"], again["created"]) == (False, None, [])


def test_the_schema_is_printed_without_a_lake(tmp_path: Path) -> None:
    schema = json.loads(Command(str(tmp_path / "no lake"), tmp_path)("apply", "--schema").out)
    assert "history.keep" in schema["$defs"]["settings"]["properties"]


# ---------------------------------------------------------------- export


def test_an_export_is_the_file_again(lake: Command) -> None:
    lake("apply", lake.file("pools.yaml", FILE))
    text = lake("export").out
    assert text == (
        "pools:\n"
        "  flights:\n"
        "    key: time_hour,carrier\n"
        "    kind: upsert\n"
        "    settings:\n"
        "      compact.depth: 4\n"
        "      history.keep: 90d\n"
        "      upkeep.window: 22:00-06:00\n"
        "  logs:\n"
        "    key: ts:desc\n"
        "    kind: append\n"
        "    settings:\n"
        "      history.keep: 90d\n"
    )
    assert lake("apply", lake.file("again.yaml", text)).out == "nothing to do: the lake is as the file says\n"


def test_an_export_of_some_pools_names_them_and_an_unknown_one_is_an_error(lake: Command) -> None:
    lake("apply", lake.file("pools.yaml", FILE))
    assert list(yaml.safe_load(lake("export", "logs", "logs").out)["pools"]) == ["logs"]
    assert "pool 'lgos' does not exist; did you mean 'logs'?" in lake.fails(NOT_FOUND, "export", "lgos")


def test_the_lakes_own_pools_are_not_exported_and_not_pruned(lake: Command) -> None:
    settings = {"expire.by": "began"}
    Lake.open(lake.uri).own_pool("$jobs", key="began", kind="upsert", settings=settings)
    assert lake("export").out == "pools: {}\n"
    assert "the lake makes this pool itself" in lake.fails(INVALID_INPUT, "export", "$jobs")
    lake("apply", lake.file("none.yaml", "pools: {}"), "--prune")
    assert list(pools(lake)) == ["$jobs"]


def test_an_export_of_no_pools_applies_too(lake: Command) -> None:
    assert lake("export").out == "pools: {}\n"
    target = str(lake.folder / "out.yaml")
    lake("export", "-o", target)
    assert lake("apply", target).status == DONE


# ---------------------------------------------------------------- others at work, and interrupted drops


def test_a_pool_whose_drop_was_interrupted_is_not_configured(lake: Command) -> None:
    lake("apply", lake.file("pools.yaml", FILE))
    Lake.open(lake.uri).pool("logs").close()
    file = lake.file("more.yaml", FILE.replace("ts:desc\n", "ts:desc\n    settings: {compact.depth: 2}\n"))
    assert "logs" in lake.fails(NOT_FOUND, "apply", file)
    assert "compact.depth" not in pools(lake)["logs"][2]


@pytest.mark.parametrize(("typed", "days"), [("n\n", "90d"), ("\n", "90d"), ("y\n", "5d")])
def test_a_person_at_a_terminal_is_asked_once_they_saw_the_difference(
    lake: Command, typed: str, days: str
) -> None:
    lake("apply", lake.file("pools.yaml", FILE))
    less = lake.file("less.yaml", FILE.replace("90d", "5d"))
    shown = on_terminal("apply", "--lake", lake.uri, less, typed=typed)
    difference = shown.text.index("history.keep: 90d -> 5d")
    assert difference < shown.text.index("Let agents remove more from 2 pools (flights, logs)? [y/N]")
    assert shown.status == (DONE if days == "5d" else INVALID_INPUT)
    assert pools(lake)["logs"][2] == {"history.keep": days}
