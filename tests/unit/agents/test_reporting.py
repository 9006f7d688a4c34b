"""What failed, in words: a line for each pool and task, however much work was packed together."""

from __future__ import annotations

from log_lake.agents.reporting import missing
from log_lake.agents.work import Result, Work


def test_work_that_failed_in_one_task_is_one_line() -> None:
    work = [Work(lake="x", pool="p", piece=str(number), task=number % 2) for number in range(10)]
    assert missing(work, [Result("p", piece="0")]) == [
        "p: run[1] failed; its log says why (5 pieces of work)",
        "p: run[0] failed; its log says why (4 pieces of work)",
    ]


def test_work_that_was_not_packed_says_its_own_number() -> None:
    work = [Work(lake="x", pool=name, piece=name) for name in ("a", "b")]
    assert missing(work, [Result("a", piece="a")]) == ["b: run[1] failed; its log says why"]


def test_a_result_of_the_same_pool_that_another_find_found_is_none_of_the_work() -> None:
    work = [Work(lake="x", pool=name, piece=f"new:{n}") for n, name in enumerate("pq")]
    results = [Result("p", piece="old:0"), Result("q", piece="new:1")]
    assert missing(work, results) == ["p: run[0] failed; its log says why"]
    assert missing([Work(lake="x", pool="p")], [Result("p")]) == [], "without packs there is one piece a pool"
