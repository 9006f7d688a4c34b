"""What the triggers of one lake wait for together, and what is new to each of them."""

from __future__ import annotations

from airflow_lake.triggers.interest import Interest, is_new, leaves_gap
from log_lake.lake.watch import News, WatchPosition


def at(version: int, pool_id: str = "id") -> WatchPosition:
    return WatchPosition(pool_id, version)


def test_the_loop_looks_from_the_oldest_position_that_a_trigger_has_seen() -> None:
    interest = Interest()
    interest.add({"a": at(5)})
    interest.add({"a": at(3), "b": at(1)})
    interest.add({"a": at(9)})
    assert interest.positions == {"a": at(3), "b": at(1)}


def test_a_pool_that_was_made_again_is_looked_at_from_its_beginning_if_triggers_have_seen_both() -> None:
    for one, other in ((at(5), at(2, "new")), (at(2, "new"), at(5)), (WatchPosition(), at(2, "new"))):
        interest = Interest()
        interest.add({"a": one})
        interest.add({"a": other})
        assert interest.positions == {"a": WatchPosition()}


def test_a_look_that_begins_after_what_a_trigger_has_seen_is_not_for_it() -> None:
    news = News("a", at(8), "main", True)
    assert leaves_gap(at(7), news, at(3))
    assert leaves_gap(at(7), news, at(9, "old"))
    assert leaves_gap(at(7), news, WatchPosition())
    assert not leaves_gap(at(3), news, at(3))
    assert not leaves_gap(at(3), news, at(9))
    assert not leaves_gap(WatchPosition(), News("a", at(1), "main", True), WatchPosition())
    assert not leaves_gap(at(7, "old"), News("a", at(1), "main", True), at(9, "older"))


def test_a_pool_is_looked_at_as_long_as_a_trigger_waits_for_it() -> None:
    interest = Interest()
    for _ in range(2):
        interest.add({"a": at(5)})
    interest.remove({"a": at(5)})
    assert interest.positions == {"a": at(5)}
    interest.remove({"a": at(7)})
    assert interest.positions == {}
    interest.add({"a": at(2)})
    assert interest.positions == {"a": at(2)}


def test_a_trigger_that_comes_during_a_look_is_not_passed_over() -> None:
    interest = Interest()
    interest.add({"a": at(5)})
    before = dict(interest.positions)
    interest.add({"a": at(2), "b": at(1)})
    interest.advance(before, {"a": at(8)})
    assert interest.positions == {"a": at(2), "b": at(1)}
    interest.advance(dict(interest.positions), {"a": at(8), "b": at(1)})
    assert interest.positions == {"a": at(8), "b": at(1)}


def test_a_pool_that_nobody_waits_for_any_more_does_not_come_back() -> None:
    interest = Interest()
    interest.add({"a": at(5)})
    before = dict(interest.positions)
    interest.remove({"a": at(5)})
    interest.advance(before, {"a": at(8)})
    assert interest.positions == {}


def test_news_is_what_is_later_on_the_branch_and_changes_records() -> None:
    load = News("a", at(5), "main", True)
    compaction = News("a", at(5), "main", False)
    assert is_new(load, at(4), branch="main", maintenance=False)
    assert not is_new(load, at(5), branch="main", maintenance=False)
    assert not is_new(load, at(4), branch="dev", maintenance=False)
    assert not is_new(compaction, at(4), branch="main", maintenance=False)
    assert is_new(compaction, at(4), branch="main", maintenance=True)
    assert is_new(News("a", at(1, "new"), "main", True), at(9), branch="main", maintenance=False)
    assert is_new(News("a", at(5), "", True), at(4), branch="dev", maintenance=False)
