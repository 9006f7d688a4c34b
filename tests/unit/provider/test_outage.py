"""A lake that does not answer: the task `find` gives it up after two tries, and its sentence ends the log."""

from __future__ import annotations

import traceback
from types import SimpleNamespace

import pytest

from lake_core.errors import InvalidInput, LakeError, OutcomeUnknown, Unavailable

pytest.importorskip("airflow.sdk")

from airflow.sdk import RetryAction

from airflow_lake.defaults import FIND, NO_RETRY, OUTAGE_TRIES
from airflow_lake.groups.decorator import LakeTaskOperator
from airflow_lake.tries import sentence_last

UNKNOWN = OutcomeUnknown("no answer", entry_id="x", version=1)


@pytest.mark.parametrize(
    ("error", "number", "action"),
    [
        (Unavailable("down"), OUTAGE_TRIES - 1, RetryAction.DEFAULT),
        (Unavailable("down"), OUTAGE_TRIES, RetryAction.FAIL),
        (UNKNOWN, OUTAGE_TRIES, RetryAction.DEFAULT),
        (RuntimeError("the API server"), OUTAGE_TRIES, RetryAction.DEFAULT),
        (InvalidInput("wrong"), 1, RetryAction.FAIL),
    ],
)
def test_a_lake_that_does_not_answer_is_given_up_after_two_tries(
    error: Exception, number: int, action: RetryAction
) -> None:
    decision = FIND["retry_policy"].evaluate(error, number, 5)
    assert decision.action is action
    if isinstance(error, Unavailable):
        assert NO_RETRY.evaluate(error, number, 5).action is RetryAction.DEFAULT
        assert (action is RetryAction.FAIL) == ("next run" in (decision.reason or ""))


@pytest.mark.parametrize(("number", "action"), [(3, RetryAction.DEFAULT), (4, RetryAction.FAIL)])
def test_a_task_that_was_cleared_has_all_its_tries_again(number: int, action: RetryAction) -> None:
    """Two tries were done before the clear: Airflow's number of the next one is 3, of 2 + 5 at most."""
    context = {"task": SimpleNamespace(retries=5)}
    decision = FIND["retry_policy"].evaluate(Unavailable("down"), number, 7, context)
    assert decision.action is action
    if action is RetryAction.FAIL:
        assert "in 2 tries" in (decision.reason or "")


def below() -> None:
    try:
        raise ConnectionError("a frame of a client library")
    except ConnectionError as error:
        raise Unavailable("the store at x does not answer: wait, then run it again") from error


def test_the_sentence_ends_the_log_without_frames_of_libraries() -> None:
    with pytest.raises(LakeError) as caught:
        sentence_last(below)
    text = "".join(traceback.format_exception(caught.value))
    assert text.strip().endswith("the store at x does not answer: wait, then run it again")
    assert "client library" not in text
    assert "in below" not in text


def test_an_error_that_nobody_foresaw_keeps_its_frames() -> None:
    def unforeseen() -> None:
        raise ConnectionError("as it is")

    with pytest.raises(ConnectionError) as caught:
        sentence_last(unforeseen)
    assert "in unforeseen" in "".join(traceback.format_exception(caught.value))


def test_a_task_of_a_group_ends_so() -> None:
    task = LakeTaskOperator(task_id="find", python_callable=below, op_args=[], op_kwargs={})
    with pytest.raises(Unavailable) as caught:
        task.execute({})
    assert caught.value.__cause__ is None
    assert "in below" not in "".join(traceback.format_exception(caught.value))
