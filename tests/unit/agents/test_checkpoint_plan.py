"""When a journal wants a checkpoint, and how far it may be purged."""

from __future__ import annotations

import pytest

from lake_core.agents.checkpoint.plan import JournalTail, last_older, why_due
from lake_core.agents.checkpoint.policy import CheckpointPolicy

POLICY = CheckpointPolicy(entries=500, age=86_400.0, keep_seconds=0.0)
NOW = 1_000_000.0


def test_a_journal_without_news_wants_nothing() -> None:
    assert why_due(JournalTail(None, is_full=False), POLICY, now=NOW) is None


def test_a_young_and_short_tail_wants_nothing() -> None:
    assert why_due(JournalTail(NOW - 86_399, is_full=False), POLICY, now=NOW) is None


def test_a_long_tail_wants_a_checkpoint_however_young() -> None:
    assert (
        why_due(JournalTail(NOW, is_full=True), POLICY, now=NOW)
        == "500 entries or more since the last checkpoint"
    )


def test_an_old_tail_wants_a_checkpoint_however_short() -> None:
    assert (
        why_due(JournalTail(NOW - 86_400, is_full=False), POLICY, now=NOW)
        == "the oldest entry since the last checkpoint is 1 d old"
    )


@pytest.mark.parametrize("moment", range(12))
@pytest.mark.parametrize("fence", [0, 3, 10])
def test_all_that_is_older_may_go_and_nothing_else(moment: int, fence: int) -> None:
    expected = max([fence, *(n for n in range(fence + 1, 11) if n < moment)])
    assert last_older(fence + 1, 10, time_of=float, moment=moment) == expected


def test_entries_of_one_moment_go_together() -> None:
    assert last_older(1, 10, time_of=lambda n: 5.0, moment=5.0) == 0
    assert last_older(1, 10, time_of=lambda n: 5.0, moment=5.1) == 10


def test_few_entries_are_looked_at() -> None:
    asked: list[int] = []
    last_older(1, 1_000_000, time_of=lambda n: asked.append(n) or float(n), moment=77.0)
    assert len(asked) <= 20
