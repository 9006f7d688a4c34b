"""lake delete, replace, drop of a range, tombstones, explain; conditions on the command line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from log_lake.lake import Lake
from log_lake.lake.loads import load_blocks
from log_lake.lake.write import WriteArguments
from log_lake.loading.block import Block
from tests.support.command import INVALID_INPUT, NOT_FOUND, USAGE, Command


@pytest.fixture
def pool(lake: Command) -> str:
    """Ten records, k from 0 to 9, in two loads."""
    name = lake.pool("p", tombstones_apply="0s")
    lake.load_records(name, [{"k": k, "v": f"v{k % 3}", "n": k * 10} for k in range(0, 10, 2)])
    lake.load_records(name, [{"k": k, "v": f"v{k % 3}", "n": k * 10} for k in range(1, 10, 2)])
    return name


def keys(lake: Command, pool: str, *words: str) -> list[int]:
    return [r["k"] for r in lake.scan(pool, *words)]


# ---------------------------------------------------------------- delete


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (["--from", "3", "--to", "6"], [0, 1, 2, 6, 7, 8, 9]),
        (["--from", "7"], [0, 1, 2, 3, 4, 5, 6]),
        (["--key", "4"], [0, 1, 2, 3, 5, 6, 7, 8, 9]),
        (["--where", "v = 'v0'"], [1, 2, 4, 5, 7, 8]),
        (["--from", "2", "--where", "v = 'v0' and n < 90"], [0, 1, 2, 4, 5, 7, 8, 9]),
        (["--where", "k in (0, 9)"], [1, 2, 3, 4, 5, 6, 7, 8]),
        (["--all"], []),
    ],
    ids=["range", "open range", "key", "condition", "both", "condition on the key", "all"],
)
def test_what_is_deleted_is_gone_and_was_there_before(
    lake: Command, pool: str, words: list[str], left: list[int]
) -> None:
    done = lake("delete", pool, *words, "--json").records[0]
    assert done["version"] == 3
    assert keys(lake, pool) == left
    assert keys(lake, pool, "--at", "2") == list(range(10))
    assert lake.query(f'select count(*) as n from "{pool}"') == [{"n": len(left)}]
    lake.load_records(pool, [{"k": 3, "v": "v0", "n": 1}])
    assert keys(lake, pool) == sorted([*left, 3])


@pytest.mark.parametrize(
    "words",
    [["--from", "10"], ["--where", "v = 'zzz'"], ["--where", "n = 15"], ["--where", "k = 3 and k = 4"]],
    ids=["beyond the keys", "beyond the statistics", "between the values", "no key can"],
)
def test_deleting_what_is_not_there_commits_nothing_and_says_so(
    lake: Command, pool: str, words: list[str]
) -> None:
    outcome = lake("delete", pool, *words)
    assert outcome.err == "p: nothing to delete; nothing was committed\n"
    assert len(lake.history(pool)) == 2


def test_in_a_pool_that_never_held_anything_there_is_nothing_to_delete(lake: Command) -> None:
    lake.pool("p")
    assert "nothing to delete" in lake("delete", "p", "--where", "v = 1").err
    assert "nothing to delete" in lake("delete", "p", "--all").err
    assert "column 3" in lake.fails(INVALID_INPUT, "delete", "p", "--where", "v ! 1")


def test_what_is_deleted_already_is_not_there(lake: Command, pool: str) -> None:
    lake("delete", pool, "--where", "v = 'v0'")
    assert "nothing to delete" in lake("delete", pool, "--where", "v = 'v0'").err


def test_the_same_token_deletes_once(lake: Command, pool: str) -> None:
    lake("delete", pool, "--key", "1", "--token", "t")
    lake.load_records(pool, [{"k": 1}])
    assert (
        "nothing was written: the token was used in version 3"
        in lake("delete", pool, "--key", "1", "--token", "t").err
    )
    assert keys(lake, pool) == list(range(10))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--where", "dep_dely > 15"], "at `dep_dely`: no such field"),
        (["--where", "n = 'x'"], "column 5, at `'x'`"),
        (["--from", "5", "--to", "5"], "(exclusive) is empty"),
        (["--from", "6", "--to", "5"], "(exclusive) is empty"),
        ([], "say which records"),
        (["--all", "--key", "1"], "say which records"),
        (["--key", "1", "--from", "1"], "either --key"),
        (["--from", "x"], "the field is a number"),
    ],
    ids=[
        "unknown field",
        "text and number",
        "empty",
        "inverted",
        "nothing",
        "all and a key",
        "both",
        "text key",
    ],
)
def test_what_cannot_be_deleted_is_said(lake: Command, pool: str, words: list[str], said: str) -> None:
    assert said in lake.fails(INVALID_INPUT, "delete", pool, *words)
    assert len(lake.history(pool)) == 2


def test_in_an_aggregate_pool_a_condition_names_the_key_only(lake: Command) -> None:
    lake("create", "a", "--key", "k", "--kind", "aggregate", "--aggregate", "n=sum")
    lake.load_records("a", [{"k": 1, "n": 1}, {"k": 2, "n": 5}])
    lake.load_records("a", [{"k": 1, "n": 2}])
    message = lake.fails(INVALID_INPUT, "delete", "a", "--where", "k = 1 and n > 1")
    assert "at `n`" in message
    assert "aggregate pool" in message
    lake("delete", "a", "--where", "k = 1")
    lake.load_records("a", [{"k": 1, "n": 7}])
    assert lake.scan("a") == [{"k": 1, "n": 7}, {"k": 2, "n": 5}]


def test_in_an_upsert_pool_what_was_below_does_not_come_back(lake: Command) -> None:
    lake("create", "u", "--key", "k", "--kind", "upsert")
    lake.load_records("u", [{"k": 1, "v": "old"}, {"k": 2, "v": "old"}])
    lake.load_records("u", [{"k": 1, "v": "new"}])
    lake("delete", "u", "--where", "v = 'new'")
    assert lake.scan("u") == [{"k": 2, "v": "old"}]
    lake("delete", "u", "--where", "v = 'old'")
    assert lake.scan("u") == []
    lake("tombstones", "u", "--at-once")
    assert lake.scan("u") == []
    lake.load_records("u", [{"k": 1, "v": "again"}, {"k": 2, "_deleted": True}])
    assert lake.scan("u") == [{"k": 1, "v": "again"}]


# ---------------------------------------------------------------- replace and drop


def test_a_replace_puts_the_new_in_the_place_of_the_old_in_one_transaction(lake: Command, pool: str) -> None:
    file = lake.file("new.ndjson", [{"k": 4, "v": "new"}, {"k": 5, "v": "new"}])
    done = lake("replace", pool, file, "--from", "3", "--to", "8", "--json").records[0]
    assert (done["version"], done["records"]) == (3, 2)
    assert [(r["k"], r["v"]) for r in lake.scan(pool, "--from", "2", "--to", "9")] == [
        (2, "v2"), (4, "new"), (5, "new"), (8, "v2"),
    ]  # fmt: skip
    again = lake("replace", pool, file, "--from", "3", "--to", "8", "--json").records[0]
    assert again["version"] == 4
    assert len(lake.scan(pool)) == 7


@pytest.mark.parametrize(
    ("records", "words", "said"),
    [
        ([{"k": 8}], ["--from", "3", "--to", "8"], "lie outside the range"),
        ([{"k": 2}, {"k": 4}], ["--from", "3", "--to", "8"], "lie outside the range"),
        ([{"k": None}, {"k": 4}], ["--from", "3"], "without the key"),
        ([{"k": 4, "v": "x"}], ["--where", "v = 'v0'"], "1 of 1 new records do not fulfil the condition"),
        ([{"k": 4}], [], "say which records"),
        ([{"k": 4}], ["--from", "9", "--to", "1"], "(exclusive) is empty"),
    ],
    ids=["above", "below", "no key", "condition", "no range", "inverted"],
)
def test_a_replace_with_records_from_elsewhere_commits_nothing(
    lake: Command, pool: str, records: list[Any], words: list[str], said: str
) -> None:
    file = lake.file("new.ndjson", records)
    assert said in lake.fails(INVALID_INPUT, "replace", pool, file, *words)
    assert len(lake.history(pool)) == 2
    assert keys(lake, pool) == list(range(10))


def test_in_an_empty_pool_the_new_records_tell_the_type_of_the_range(lake: Command) -> None:
    lake.pool("p")
    file = lake.file("new.ndjson", [{"k": 2}, {"k": 10}])
    for _ in range(2):
        lake("replace", "p", file, "--from", "1", "--to", "11")
        assert keys(lake, "p") == [2, 10]
    lake.pool("q")
    lake("branch", "q", "d")
    lake("replace", "q", lake.file("one.ndjson", [{"k": 1}]), "--to", "7", "--branch", "d")
    lake.load_records("q", [{"k": k} for k in (5, 8, 100)])
    lake("merge", "q", "d")
    assert keys(lake, "q") == [1, 8, 100]


def test_a_range_whose_type_nothing_tells_is_refused_or_deletes_nothing(lake: Command) -> None:
    lake.pool("p")
    reason = "declare it (lake set POOL type.k=TYPE)"
    assert reason in lake.fails(INVALID_INPUT, "replace", "p", lake.file("no.ndjson", []), "--to", "7")
    assert reason in lake.fails(INVALID_INPUT, "drop", "p", "--to", "7", "--yes")
    assert "nothing to delete" in lake("delete", "p", "--to", "7").err
    assert not lake.history("p")


def test_an_upsert_pool_has_no_conditional_replace(lake: Command) -> None:
    lake("create", "u", "--key", "k", "--kind", "upsert")
    file = lake.file("new.ndjson", [{"k": 1, "v": 1}])
    lake.load("u", file)
    assert "delete by the condition, then load" in lake.fails(
        INVALID_INPUT, "replace", "u", file, "--where", "v = 1"
    )


def test_a_replace_says_that_it_replaced(lake: Command, pool: str) -> None:
    file = lake.file("new.ndjson", [{"k": 3, "v": "new", "n": 1}])
    words = ["replace", pool, file, "--from", "3", "--to", "4", "--token", "once"]
    assert lake(*words).err.startswith("p: replaced 1 record by 1 record in 1 object (")
    assert "which replaced the old records by 1 record" in lake(*words).err


def test_a_range_is_dropped_and_the_pool_stays(lake: Command, pool: str) -> None:
    assert "removed 8 records of the range; version 3" in lake("drop", pool, "--from", "2", "--yes").err
    assert keys(lake, pool) == [0, 1]
    assert lake.history(pool)[0]["actions"] == {"add_tombstone": 1}


# ---------------------------------------------------------------- applying


def test_applied_deletes_are_gone_from_the_objects_and_forgotten(lake: Command, pool: str) -> None:
    lake("delete", pool, "--where", "v = 'v0'", "--reason", "asked for")
    planned = lake("tombstones", pool, "--dry-run", "--json").records[0]
    assert (planned["due"], len(planned["suspects"]), planned["covered"]) == (1, 2, [])
    did = lake("tombstones", pool, "--json").records[0]
    assert (did["searched"], did["rewritten"], did["retired"], did["left"]) == (2, 2, 1, 0)
    assert keys(lake, pool) == [1, 2, 4, 5, 7, 8]
    assert lake.query(f'select sum(records)::int as n from "{pool}:objects"') == [{"n": 6}]
    assert lake("tombstones", pool).err == f"{pool}: no deletes to apply\n"
    assert keys(lake, pool, "--at", "2") == list(range(10))


def test_people_are_told_what_was_done_and_what_is_left_and_why(lake: Command, pool: str) -> None:
    lake("delete", pool, "--where", "n = 30")
    said = lake("tombstones", pool, "--dry-run").err
    assert said == f"{pool}: 1 delete is due: search 2 objects; 1 left\n"
    said = lake("tombstones", pool).err
    assert said.startswith(f"{pool}: searched 2 objects, rewrote 1 (")
    assert said.endswith("; 1 delete finished; none left\n")
    lake("set", pool, "tombstones.apply=1d")
    lake("delete", pool, "--where", "n = 10")
    assert lake("tombstones", pool).err.endswith("; 1 left, which may still cover records of 2 objects\n")
    lake("drop", pool, "--from", "2", "--yes")
    said = lake("tombstones", pool, "--at-once").err
    assert said.endswith(
        "; 1 replace is remembered for tombstones.remember (1d), for loads that had already begun\n"
    )


def test_only_objects_that_hold_deleted_records_are_rewritten(lake: Command, pool: str) -> None:
    before = {r["object"] for r in lake.query(f'select object from "{pool}:references"')}
    lake("delete", pool, "--where", "n = 30")
    did = lake("tombstones", pool, "--json").records[0]
    assert (did["searched"], did["marked"], did["rewritten"], did["retired"]) == (2, 1, 1, 1)
    after = {r["object"] for r in lake.query(f'select object from "{pool}:references"')}
    assert len(before & after) == 1


def test_deletes_wait_for_the_policy(lake: Command, pool: str) -> None:
    lake("set", pool, "tombstones.apply=1d")
    lake("delete", pool, "--all")
    assert lake("tombstones", pool, "--json").records[0]["left"] == 1
    did = lake("tombstones", pool, "--at-once", "--json").records[0]
    assert (did["searched"], did["rewritten"], did["left"]) == (0, 2, 0)
    assert lake.query(f'select count(*)::int as n from "{pool}:references"') == [{"n": 0}]


# ---------------------------------------------------------------- explain, tombstones as a table


def test_explain_tells_every_version_and_what_decides(lake: Command) -> None:
    lake("create", "u", "--key", "k", "--kind", "upsert")
    for v in ("a", "b"):
        lake.load_records("u", [{"k": 1, "v": v}])
    lake("delete", "u", "--key", "1", "--reason", "asked for")
    lake.load_records("u", [{"k": 1, "v": "c"}])
    told = lake("explain", "u", "1", "--json").records[0]
    assert [(v["version"], v["record"]["v"], v["fate"]) for v in told["versions"]] == [
        (1, "a", "deleted"), (2, "b", "deleted"), (4, "c", "visible"),
    ]  # fmt: skip
    (tombstone,) = told["tombstones"]
    assert (tombstone["version"], tombstone["reason"]) == (3, "asked for")
    assert told["versions"][0]["by"] == tombstone["tombstone"]
    assert "asked for" in lake("explain", "u", "1").out
    told = lake("explain", "u", "1", "--at", "2", "--json").records[0]
    assert [(v["fate"], v["by"]) for v in told["versions"]] == [("superseded", "2"), ("visible", "")]
    assert "no object of version 4 has a record with key 7" in lake.fails(NOT_FOUND, "explain", "u", "7")


def test_explain_says_in_words_who_wrote_a_version_and_why_it_is_visible_or_not(lake: Command) -> None:
    lake("create", "u", "--key", "k", "--kind", "upsert")
    for v in ("a", "b"):
        lake.load_records("u", [{"k": 1, "v": v}])
    lake("delete", "u", "--where", "v = 'b'", "--reason", "asked for")
    lake.load_records("u", [{"k": 1, "v": "c"}])
    lake.load_records("u", [{"k": 1, "v": "d"}])
    told = lake("explain", "u", "1").out
    objects = {v["version"]: v["object"] for v in lake("explain", "u", "1", "--json").records[0]["versions"]}
    assert told.splitlines() == [
        "u at version 5: 4 stored versions, 1 of them in the answer",
        "",
        f"1. key 1: version 1 wrote it, object {objects[1]} holds it.",
        "   Not visible: version 2 wrote a newer version of its key.",
        '   The record: {"k":1,"v":"a"}',
        "",
        f"2. key 1: version 2 wrote it, object {objects[2]} holds it.",
        "   Not visible: the delete of version 3 (asked for) covers it.",
        '   The record: {"k":1,"v":"b"}',
        "",
        f"3. key 1: version 4 wrote it, object {objects[4]} holds it.",
        "   Not visible: version 5 wrote a newer version of its key.",
        '   The record: {"k":1,"v":"c"}',
        "",
        f"4. key 1: version 5 wrote it, object {objects[5]} holds it.",
        "   Visible: no delete covers it, and no newer version replaces it.",
        '   The record: {"k":1,"v":"d"}',
        "",
        "The delete of version 3 (asked for) reaches all keys: records written before it where v = 'b'.",
    ]


def test_a_load_that_a_replace_overtook_is_told_so_and_explained(
    lake: Command, caplog: pytest.LogCaptureFixture
) -> None:
    lake.pool("p")
    lake.load_records("p", [{"k": 9, "v": "old"}])

    def while_a_replace_commits() -> Iterator[Block]:
        lake.load_records("p", [{"k": 5, "v": "between"}])
        lake("replace", "p", lake.file("new.ndjson", [{"k": 1, "v": "new"}]), "--from", "0", "--to", "3")
        yield Block(pa.table({"k": [1, 7], "v": ["late", "late"]}))

    branch = Lake.open(lake.uri).pool("p").branch()
    load_blocks(branch, while_a_replace_commits(), WriteArguments())
    assert [r.getMessage() for r in caplog.records if r.levelname == "WARNING"] == [
        "p: version 4 was overtaken by the replace of version 3, which hides its records in that range"
    ]
    assert [r["v"] for r in lake.scan("p")] == ["new", "between", "late", "old"]
    told = lake("explain", "p", "1").out.splitlines()
    assert told[7:] == [
        "   Not visible: its load was overtaken by the replace of version 3.",
        '   The record: {"k":1,"v":"late"}',
        "",
        "The replace of version 3 reaches keys from 0 to below 3: records written before it.",
        "The load of version 4 was overtaken by the replace of version 3, "
        "which hides its records of keys from 0 to below 3.",
    ]


def test_explain_says_what_is_combined_and_what_deletes_its_key(lake: Command) -> None:
    lake("create", "a", "--key", "k", "--kind", "aggregate", "--aggregate", "n=sum")
    lake("create", "m", "--key", "k", "--kind", "upsert")
    for n in (1, 2):
        lake.load_records("a", [{"k": 1, "n": n}])
    assert lake("explain", "a", "1").out.count("combined with 1 other version of its key") == 2
    lake.load_records("m", [{"k": 1, "_deleted": True}])
    assert "Not visible: its field _deleted is true, so it deletes its key." in lake("explain", "m", "1").out
    lake("delete", "a", "--key", "1")
    assert "Not visible: the delete of version 3 covers it." in lake("explain", "a", "1").out


def test_a_tombstone_is_a_row_of_its_table_until_it_is_applied(lake: Command, pool: str) -> None:
    lake("delete", pool, "--from", "3", "--where", "v = 'v0'", "--reason", "asked for")
    (row,) = lake.query(f'select * from "{pool}:tombstones"')
    assert (row["version"], row["condition"], row["reason"]) == (3, "v = 'v0'", "asked for")
    assert (row["references"], row["low"], row.get("high")) == (2, "3", None)
    lake("tombstones", pool)
    assert lake.query(f'select * from "{pool}:tombstones"') == []


# ---------------------------------------------------------------- scan --where


@pytest.mark.parametrize(
    ("where", "found"),
    [("n > 30 and v = 'v1'", [4, 7]), ("k >= 8", [8, 9]), ("v is null", []), ("k < 0", [])],
)
def test_a_scan_gives_what_fulfils_the_condition(
    lake: Command, pool: str, where: str, found: list[int]
) -> None:
    assert keys(lake, pool, "--where", where) == found
    assert lake.scan(pool, "--where", where, "--columns", "k") == [{"k": k} for k in found]


def test_a_condition_that_cannot_be_read_is_said(lake: Command, pool: str) -> None:
    assert "column 3" in lake.fails(INVALID_INPUT, "scan", pool, "--where", "n ! 3")
    assert lake.run("scan", pool, "--where").status == USAGE


def test_a_drop_of_a_whole_pool_takes_no_branch(lake: Command) -> None:
    lake("create", "p", "--key", "k")
    lake.load_records("p", [{"k": 1}])
    for branch in ("main", "none"):
        assert "a whole pool is dropped" in lake.fails(
            INVALID_INPUT, "drop", "p", "--branch", branch, "--yes"
        )
    assert lake("scan", "p").records == [{"k": 1}]
    lake("drop", "p", "--from", "1", "--branch", "main", "--yes")
    assert lake("scan", "p").records == []
