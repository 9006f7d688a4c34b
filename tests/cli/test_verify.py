"""`lake verify`: two revisions or pools hold the same records, or not; the exit status is the answer."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.support.command import INVALID_INPUT, NOT_FOUND, USAGE, Command
from tests.support.pools import a_pool

RECORDS = [{"k": 1, "v": "a", "r": {"x": 1, "y": 2}}, {"k": 2, "v": "b"}, {"k": 2, "v": "b"}]


def test_revisions_with_the_same_records_are_equal_whatever_their_objects(lake: Command) -> None:
    for number, record in enumerate(RECORDS):
        lake.load_records(lake.pool("p") if not number else "p", [record], f"{number}.ndjson")
    lake("branch", "p", "test")
    lake("compact", "p", "--strategy", "full")
    shown = lake("verify", "p@3", "p")
    first, second, answer = shown.out.splitlines()
    assert first.startswith("p@3: version 3: 3 records, content sum ")
    assert second == first.replace("p@3: version 3", "p: version 5")
    assert answer == "equal: both hold the same records"
    assert lake("verify", "p@test", "p", "-j", "2").out.splitlines()[-1] == answer


def test_different_records_are_an_answer_with_status_1(lake: Command) -> None:
    lake.pool("p")
    lake.load_records("p", RECORDS)
    lake.pool("q")
    lake.load_records("q", [*RECORDS[:2], {"k": 2, "v": "c"}])
    assert lake.answers(1, "verify", "p", "q").out.splitlines()[-1] == (
        "different: the same number of records, but not the same records"
    )
    lake.load_records("q", [{"k": 5}])
    assert (
        lake.answers(1, "verify", "p", "q").out.splitlines()[-1] == "different: the second has 1 record more"
    )
    assert "the first has 1 record more" in lake.answers(1, "verify", "q", "p").out
    answer = lake.answers(1, "verify", "p", "q", "--json").records[0]
    assert answer["equal"] is False
    assert [(side["name"], side["version"], side["records"]) for side in answer["sides"]] == [
        ("p", 1, 3),
        ("q", 2, 4),
    ]
    assert {len(side["sum"]) for side in answer["sides"]} == {16}


def test_records_without_the_key_count_with_their_pool(lake: Command) -> None:
    for name, others in (("p", [{"v": 2}]), ("q", [{"v": 3}, {"v": 4}])):
        lake.pool(name)
        lake.load_records(name, [{"k": 1, "v": 1}, *others])
    assert "the second has 1 record more" in lake.answers(1, "verify", "p", "q").out
    lake("rekey", "p", "by_v", "--key", "v")
    assert lake("verify", "p", "by_v", "--json").records[0]["sides"][0]["records"] == 2
    assert lake("verify", "p.$nokey", "p.$nokey").out.splitlines()[-1].startswith("equal")


def test_the_types_of_other_loads_do_not_matter(lake: Command) -> None:
    lake.pool("p")
    lake.load_records("p", [{"k": 1, "v": 5, "w": 1}])
    before = lake("verify", "p", "p", "--json").records[0]["sides"][0]
    lake.load_records("p", [{"k": 2, "v": "text", "w": 0.5}])
    lake("delete", "p", "--where", "k = 2")
    after = lake("verify", "p", "p@1", "--json").records[0]
    assert after["equal"] is True
    assert after["sides"][0]["sum"] == before["sum"]


def test_an_upsert_pool_counts_what_a_scan_shows() -> None:
    tables = [
        pa.table({"k": [1, 2], "v": [1, 2]}),
        pa.table({"k": [2, 3], "v": [9, 9], "_deleted": [True, False]}),
    ]
    upsert = a_pool(*tables, kind="upsert")
    plain = a_pool(pa.table({"k": [3, 1], "v": [9, 1]}))
    assert upsert.at().content() == plain.at().content()


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (["p", "nosuch"], NOT_FOUND, "nosuch"),
        (["p", "p@99"], NOT_FOUND, "99"),
        (["p@", "p"], INVALID_INPUT, "'p@': write POOL or POOL@REVISION, such as logs, logs@7 or logs@test"),
        (["@3", "p"], INVALID_INPUT, "write POOL or POOL@REVISION"),
        (["p"], USAGE, "B"),
        (["p", "p", "-j", "0"], USAGE, "use 1 or more"),
    ],
)
def test_bad_input_is_one_line(lake: Command, words: list[str], status: int, says: str) -> None:
    lake.pool("p")
    assert says in lake.fails(status, "verify", *words)


def test_an_empty_pool_holds_no_records() -> None:
    pool = a_pool()
    assert pool.at().content().records == 0


def test_stored_sums_answer_without_a_read_and_fsck_proves_them(lake: Command) -> None:
    for name, sums in (("p", "on"), ("q", "off")):
        lake.pool(name)
        lake("set", name, f"content.sums={sums}")
        lake.load_records(name, [*RECORDS, {"v": "no key"}])
    first, second, answer = lake("verify", "p", "q").out.splitlines()
    assert first == second.replace("q:", "p:") + " (stored sums; no record was read)"
    assert answer == "equal: both hold the same records"
    assert [side["read"] for side in lake("verify", "p", "q", "--json").records[0]["sides"]] == [False, True]
    lake("delete", "p", "--where", "v='b'")
    assert "no record was read" not in lake.answers(1, "verify", "p", "q").out
    proved = lake("fsck", "--content").err
    assert "all data of 4 objects and 2 content sums (2 objects without) in 2 pools; no damage" in proved


def test_a_revert_quotes_the_sum_of_what_is_left(lake: Command) -> None:
    lake.pool("p")
    lake("set", "p", "content.sums=on")
    lake.load_records("p", RECORDS)
    first = lake("verify", "p", "p").out.splitlines()[0].partition(": version 1: ")[2].partition(" (")[0]
    lake.load_records("p", [{"k": 7}])
    assert lake("revert", "p", "2").err.rstrip().endswith(f"; main holds {first}")
    assert lake("verify", "p@1", "p").out.splitlines()[-1].startswith("equal")
