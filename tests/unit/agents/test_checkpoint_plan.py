"""When a journal wants a checkpoint."""

from __future__ import annotations

from log_lake.agents.checkpoint.plan import CheckpointPolicy, JournalTail, why_due

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
