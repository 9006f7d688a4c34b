"""A policy file against the list of pools: what to create, change and drop, and what is refused."""

from __future__ import annotations

import pytest

from lake_core.catalog import PoolsState
from lake_core.catalog.state import fold_pools
from lake_core.keys import PoolKey
from lake_core.records import CreatePool, DropPool, PoolAction, PoolsEntry
from lake_core.records.pools import PoolConfig
from log_lake.policies.difference import Difference, compare
from log_lake.policies.file import PolicyFile, parse
from log_lake.policies.text import difference_lines, removal_question
from tests.support.records import an_id


def pool(number: int, name: str, settings: dict[str, str] | None = None) -> PoolConfig:
    return PoolConfig(an_id(number), name, PoolKey.parse("k"), "append", settings or {})


def listed(*pools: PoolConfig, dropped: tuple[PoolConfig, ...] = ()) -> PoolsState:
    """The list after these pools were made, and those were made and dropped before."""
    actions: list[PoolAction] = []
    for one in dropped:
        actions += [CreatePool(one), DropPool(one.id)]
    actions += [CreatePool(one) for one in pools]
    return fold_pools(PoolsState(), 1, PoolsEntry(an_id(9), 0, "test", tuple(actions)))


def file(text: str) -> PolicyFile:
    read, faults = parse(text)
    assert faults == []
    return read


def difference(text: str, state: PoolsState, *, prune: bool = False) -> Difference:
    answer, faults = compare(file(text), state, prune=prune)
    assert faults == []
    return answer


def refusals(text: str, state: PoolsState) -> list[str]:
    return [f"{f.place.line}:{f.place.column}: {f.message}" for f in compare(file(text), state)[1]]


def test_a_pool_that_is_not_there_is_created() -> None:
    answer = difference("pools: {a: {key: k, settings: {history.keep: 5d}}}", listed())
    assert [one.policy.name for one in answer.created] == ["a"]
    assert not answer.removes
    assert list(difference_lines(answer)) == [
        "+ pool a: key k, kind append",
        "    history.keep = 5d",
        "1 pool to create",
    ]


def test_a_lake_that_is_as_the_file_says_has_nothing_to_do() -> None:
    state = listed(pool(1, "a", {"history.keep": "5d"}))
    answer = difference("pools: {a: {key: k, settings: {history.keep: 5d}}}", state)
    assert answer.is_empty
    assert list(difference_lines(answer)) == ["nothing to do: the lake is as the file says"]


def test_settings_that_the_file_does_not_name_go_back_to_their_defaults() -> None:
    state = listed(pool(1, "a", {"compact.depth": "3", "description": "x", "nokey": "accept"}))
    answer = difference("pools: {a: {key: k, settings: {compact.depth: 8, nokey: accept}}}", state)
    assert [one.changes for one in answer.changed] == [{"compact.depth": "8", "description": ""}]
    assert list(difference_lines(answer)) == [
        "~ pool a",
        "    compact.depth: 3 -> 8",
        "    description: x -> default",
        "1 pool to change",
    ]


def test_a_setting_that_no_program_knows_any_more_is_taken_away() -> None:
    answer = difference("pools: {a: {key: k}}", listed(pool(1, "a", {"compact.colour": "red"})))
    assert [one.changes for one in answer.changed] == [{"compact.colour": ""}]


def test_a_pool_that_the_file_does_not_name_stays_unless_it_is_pruned() -> None:
    state = listed(pool(1, "a"), pool(2, "b"))
    kept = difference("pools: {a: {key: k}}", state)
    assert (kept.is_empty, kept.unnamed) == (True, ("b",))
    pruned = difference("pools: {a: {key: k}}", state, prune=True)
    assert [one.name for one in pruned.dropped] == ["b"]
    assert (pruned.removes, removal_question(pruned)) == (True, "remove 1 pool (b)")


def test_the_lakes_own_pools_are_none_of_the_files_business() -> None:
    answer = difference("pools: {}", listed(pool(1, "$jobs")), prune=True)
    assert answer.is_empty
    assert difference("pools: {}", listed(pool(1, "$jobs"))).unnamed == ()


def test_a_pool_whose_name_a_dropped_one_had_says_how_to_have_that_back() -> None:
    answer = difference("pools: {a: {key: k}}", listed(dropped=(pool(1, "a"),)))
    assert [one.was_dropped for one in answer.created] == [True]
    assert "lake restore a takes the dropped pool" in list(difference_lines(answer))[1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "{key: l}",
            "1:18: pool 'a' has the key k (the file: l); a pool keeps it: write what it has, or make",
        ),
        ("{key: 'k:desc'}", "1:18: pool 'a' has the key k (the file: k:desc)"),
        ("{key: k, kind: upsert}", "1:27: pool 'a' has the kind append (the file: upsert)"),
    ],
)
def test_key_and_kind_of_a_pool_never_change(text: str, message: str) -> None:
    (fault,) = refusals(f"pools: {{a: {text}}}", listed(pool(1, "a")))
    assert fault.startswith(message)


def test_aggregates_of_a_pool_never_change() -> None:
    there = PoolConfig(an_id(1), "a", PoolKey.parse("k"), "aggregate", {}, {"n": "sum"})
    (fault,) = refusals("pools: {a: {key: k, kind: aggregate, aggregates: {n: max}}}", listed(there))
    assert fault.startswith("1:50: pool 'a' has the aggregates n=sum (the file: n=max); a pool keeps it")


def test_all_refusals_are_named_at_once() -> None:
    state = listed(pool(1, "a"), pool(2, "b"))
    assert len(refusals("pools:\n  a: {key: l, kind: upsert}\n  b: {key: l}\n", state)) == 3


@pytest.mark.parametrize(
    ("before", "after", "removes"),
    [
        ({}, "history.keep: 60d", False),
        ({}, "history.keep: 29d", True),
        ({"history.keep": "60d"}, "", True),
        ({"history.keep": "5d"}, "", False),
        ({}, "expire.records: 100", True),
        ({"expire.records": "100"}, "expire.records: 200", False),
        ({"expire.records": "100"}, "expire.records: 99", True),
        ({"expire.records": "100"}, "", False),
        ({}, "expire.bytes: 1GB", True),
        ({"expire.by": "t", "expire.age": "9d"}, "expire.age: 8d, expire.by: t", True),
        ({"expire.by": "t", "expire.age": "9d"}, "expire.age: 9d, expire.by: u", True),
        ({}, "expire.by: u", False),
        ({}, "vacuum.grace: 1d", True),
        ({}, "vacuum.grace: 8d", False),
        ({"age_off": "t:9d"}, "age_off: 't:8d'", True),
        ({"age_off": "t:9d"}, "age_off: 'u:9d'", True),
        ({"age_off": "t:9d"}, "age_off: 't:10d'", False),
        ({"age_off": "t:9d"}, "", False),
        ({"compact.colour": "red"}, "history.keep: 1d", True),
        ({"history.keep": "unreadable"}, "history.keep: 60d", False),
        ({}, "compact.depth: 2", False),
    ],
)
def test_a_change_by_which_agents_remove_more_is_told_apart(
    before: dict[str, str], after: str, removes: bool
) -> None:
    text = f"pools: {{a: {{key: k, settings: {{{after}}}}}}}"
    answer = difference(text, listed(pool(1, "a", before)))
    assert answer.removes is removes
    assert any("(agents will remove more)" in line for line in difference_lines(answer)) is removes
