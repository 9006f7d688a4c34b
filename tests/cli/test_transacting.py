"""lake begin, commit, abort, transactions, and `--in`."""

from __future__ import annotations

import pytest

from tests.support.command import CONFLICT, INVALID_INPUT, NOT_FOUND, USAGE, Command

UNKNOWN = "0" * 32


@pytest.fixture
def pools(lake: Command) -> None:
    """Two pools, `a` and `b`, with the keys 1 and 2."""
    for name in ("a", "b"):
        lake.pool(name)
        lake.load_records(name, [{"k": 1}, {"k": 2}])


def begun(lake: Command, *words: str) -> str:
    return lake("begin", *words).out.strip()


def keys(lake: Command, pool: str, *words: str) -> list[int]:
    return [record["k"] for record in lake.scan(pool, *words)]


@pytest.mark.usefixtures("pools")
def test_writes_of_several_commands_become_visible_at_the_commit(lake: Command) -> None:
    tx = begun(lake, "--message", "nightly", "--open-for", "2h")
    lake("load", "a", lake.file("3.json", [{"k": 3}]), "--in", tx)
    lake("delete", "b", "--key", "1", "--in", tx)
    lake("replace", "b", lake.file("4.json", [{"k": 4}]), "--from", "2", "--in", tx)
    assert (keys(lake, "a"), keys(lake, "b")) == ([1, 2], [1, 2])
    assert (keys(lake, "a", "--in", tx), keys(lake, "b", "--in", tx)) == ([1, 2, 3], [4])
    assert lake("get", "a", "3", "--in", tx, "--format", "json").records == [{"k": 3}]
    (row,) = lake("transactions", "--json").records
    assert (row["id"], row["state"], row["pools"], row["message"]) == (tx, "open", ["a", "b"], "nightly")
    assert tx in lake("transactions").out
    assert "committed; a version " in lake("commit", tx).err
    assert (keys(lake, "a"), keys(lake, "b")) == ([1, 2, 3], [4])
    first, again = (lake("commit", tx, "--json").records[0]["versions"] for _ in range(2))
    assert first == again
    assert lake("transactions", "--json").records[0]["state"] == "committed"
    assert f"transaction {tx} is committed" in lake.fails(CONFLICT, "abort", tx)
    assert f"transaction {tx} is being committed" in lake.fails(CONFLICT, "scan", "a", "--in", tx)


@pytest.mark.usefixtures("pools")
def test_an_aborted_transaction_leaves_nothing_and_is_gone(lake: Command) -> None:
    tx = begun(lake)
    lake("load", "a", lake.file("3.json", [{"k": 3}]), "--in", tx)
    assert lake("abort", tx, "--json").records == [{"id": tx}]
    assert keys(lake, "a") == [1, 2]
    lake("abort", tx)
    for words in (["commit", tx], ["scan", "a", "--in", tx], ["delete", "a", "--key", "1", "--in", tx]):
        assert f"transaction {tx} does not exist, or was ended; begin another one" in lake.fails(
            NOT_FOUND, *words
        )
    assert lake("transactions").err == "no transactions over several pools\n"


@pytest.mark.usefixtures("pools")
def test_a_refused_commit_says_which_pool_and_why(lake: Command) -> None:
    tx = begun(lake)
    lake("load", "a", lake.file("3.json", [{"k": 3}]), "--in", tx)
    lake("replace", "b", lake.file("4.json", [{"k": 4}]), "--all", "--in", tx)
    lake("replace", "b", lake.file("5.json", [{"k": 5}]), "--all")
    assert "pool 'b': version " in lake.fails(CONFLICT, "commit", tx)
    assert (keys(lake, "a"), keys(lake, "b")) == ([1, 2], [5])


@pytest.mark.usefixtures("pools")
def test_a_token_commits_once(lake: Command) -> None:
    for _ in range(2):
        tx = begun(lake, "--token", "run 7")
        lake("load", "a", lake.file("3.json", [{"k": 3}]), "--in", tx)
        said = lake("commit", tx).err
    assert "nothing was written: its token was used in a version " in said
    assert keys(lake, "a") == [1, 2, 3]


@pytest.mark.usefixtures("pools")
def test_a_dry_run_joins_no_pool(lake: Command) -> None:
    tx = begun(lake)
    lake("load", "a", lake.file("3.json", [{"k": 3}]), "--in", tx, "--dry-run")
    assert lake("transactions", "--json").records[0]["pools"] == []
    assert lake("commit", tx).err == f"transaction {tx}: committed; nothing was written in it\n"


@pytest.mark.usefixtures("pools")
def test_what_makes_no_sense_is_refused_in_one_line(lake: Command) -> None:
    tx = begun(lake)
    said = lake.fails(USAGE, "load", "a", "x.json", "--in", tx, "--branch", "dev")
    assert "--branch: not allowed with argument --in" in said
    assert "not allowed with" in lake.fails(USAGE, "scan", "a", "--at", "1", "--in", tx)
    for id in (UNKNOWN, "x"):
        lake.fails(INVALID_INPUT, "commit", id)
        lake.fails(INVALID_INPUT, "abort", id)
    assert "a transaction may be open for up to a year" in lake.fails(
        INVALID_INPUT, "begin", "--open-for", "400d"
    )
    lake.fails(NOT_FOUND, "load", "nosuch", lake.file("3.json", [{"k": 3}]), "--in", tx)
