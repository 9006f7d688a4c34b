"""What failed, in words: a line for each pool and task, however much work was packed together."""

from __future__ import annotations

import pytest

from lake_core.errors import Incomplete
from lake_core.phrases import MAX_NAMED
from log_lake.agents.reporting import conclude, missing
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


def test_the_error_of_many_failures_says_how_many_it_does_not_name() -> None:
    failed = [f"pool {number} is gone" for number in range(MAX_NAMED + 2)]
    with pytest.raises(Incomplete) as caught:
        conclude("2 batches", failed=failed, to_do="The next run tries again")
    assert str(caught.value).startswith("12 failures: pool 0 is gone; ")
    assert str(caught.value).endswith(
        "pool 9 is gone; and 2 more, which the log names. The next run tries again"
    )
    with pytest.raises(Incomplete, match=r"^10 failures: [^m]*pool 9 is gone\. The next run tries again$"):
        conclude("2 batches", failed=failed[:MAX_NAMED], to_do="The next run tries again")
