"""What a person is asked before an agent deletes, and what the answer means."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_lake.groups.config import LakeConfig
from airflow_lake.groups.question import MAX_LINE, MAX_LINES, put_off_by, question
from log_lake.agents.retention.run import RetentionWork
from log_lake.agents.work import Found

WORK = [
    RetentionWork(
        lake="x", pool="a", title="a: retention", says=("a: remove 1 object", "a: purge 3 entries")
    ),
    RetentionWork(lake="x", pool="b", title="b: cannot be read"),
]


def test_a_question_says_each_step_in_each_pool() -> None:
    assert question(WORK, lake="main").splitlines() == [
        "In the lake `main`.  What a vacuum or an erasure deletes does not come back.",
        "",
        "- `a: remove 1 object`",
        "- `a: purge 3 entries`",
        "- `b: cannot be read`",
    ]


def test_a_long_question_is_cut_and_says_so() -> None:
    lines = question([WORK[1]] * (MAX_LINES + 2), lake="main").splitlines()
    assert sum(line == "- `b: cannot be read`" for line in lines) == MAX_LINES
    assert lines[-1] == "and 2 more lines, in the log of the task `find`."


def test_stored_text_in_a_line_forges_no_other_line() -> None:
    """Who began an erasure is a text of its receipt, which each writer of the pool can write."""
    said = "a: go on with erasure x, which ann`\n\n**Nothing will be deleted.**\x1b[2J\u202e began"
    (*_, line) = question(
        [RetentionWork(lake="x", pool="a", title="", says=(said,))], lake="main"
    ).splitlines()
    assert line.startswith("- `a: go on")
    assert line.endswith(" began`")
    assert line.count("`") == 2
    assert line.isprintable()
    long = question([RetentionWork(lake="x", pool="a", title="", says=("x" * 10**6,))], lake="main")
    assert len(long.splitlines()[-1]) == MAX_LINE + 5


@pytest.mark.parametrize("answer", [None, {}, {"chosen_options": ["Approve"], "by": "ann"}])
def test_what_was_approved_or_not_asked_is_not_put_off(answer: Any) -> None:
    assert put_off_by(answer, WORK) == Found(WORK)


@pytest.mark.parametrize(("by", "why"), [("ann", "ann refused"), ("", "no approval came in time")])
def test_what_was_refused_is_put_off_and_says_by_whom(by: str, why: str) -> None:
    answer = {"chosen_options": ["Reject"], "by": by}
    assert [(one.title, one.why) for one in put_off_by(answer, WORK).put_off] == [
        (f"a: put off: {why}", why),
        (f"b: put off: {why}", why),
    ]


def test_nobody_is_asked_unless_the_config_says_so() -> None:
    assert LakeConfig().approval is False
