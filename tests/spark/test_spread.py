"""Errors between Spark tasks and driver: of the class, with the words and attributes, that they had in the task."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lake_core import errors
from lake_core.errors import LakeError, OutcomeUnknown, Unavailable, from_wire, to_wire
from spark_apps.spread import Pair, gather

pytestmark = pytest.mark.spark

ERRORS = [
    *(
        kind("what, where, what to do")
        for kind in vars(errors).values()
        if isinstance(kind, type)
        and issubclass(kind, LakeError)
        and kind not in (OutcomeUnknown, Unavailable)
    ),
    OutcomeUnknown("nobody knows", entry_id="x", version=7),
]


def fail(wire: str, unit: int) -> list[Pair]:
    """A unit that meets an error; the second of three."""
    if unit == 1:
        raise from_wire(wire)
    return [(b"%d" % unit, b"")]


def fail_at_first(folder: str, tries: int, unit: int) -> list[Pair]:
    """A unit whose store answers after so many tries."""
    tried = Path(folder) / str(unit)
    with tried.open("a") as log:
        log.write(".")
    if tried.stat().st_size < tries:
        raise Unavailable('s3://bucket: no answer "for now"\nback off')
    return [(b"%d" % unit, b"")]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_of_a_task_is_raised_as_it_was(spark: Any, error: LakeError) -> None:
    with pytest.raises(LakeError) as caught:
        gather(spark, partial(fail, to_wire(error)), 3)
    assert type(caught.value) is type(error)
    assert (str(caught.value), vars(caught.value)) == (str(error), vars(error))


def test_a_store_that_does_not_answer_is_asked_again_by_spark(spark: Any, tmp_path: Path) -> None:
    answers = gather(spark, partial(fail_at_first, str(tmp_path), 3), 2)
    assert answers == [(b"0", b""), (b"1", b"")]
    assert {tried.stat().st_size for tried in tmp_path.iterdir()} == {3}


def test_a_store_that_never_answers_is_unavailable_in_its_own_words(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(Unavailable) as caught:
        gather(spark, partial(fail_at_first, str(tmp_path), 99), 1)
    assert str(caught.value) == 's3://bucket: no answer "for now"\nback off'
    assert (tmp_path / "0").stat().st_size == 4, "as often as Spark tries a task"
