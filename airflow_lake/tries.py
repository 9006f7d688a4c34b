"""Logs the tries of a task, and the error that ends one.

The log of a try whose worker was killed just ends, so only the next try can report it.  Called by the operators
and the tasks `run`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from lake_core.errors import LakeError

log = logging.getLogger(__name__)


def tell_of_tries(task_instance: Any) -> None:
    """In every try but the first, logs what happened to the previous one."""
    number = getattr(task_instance, "try_number", 1)
    if number > 1:
        log.warning(
            "try %s: the log of try %s says how that ended: it failed, or it succeeded and the task was cleared; "
            "if that log just ends, its worker was killed. What it committed stays, and is not done again",
            number,
            number - 1,
        )


def sentence_last(work: Callable[[], Any]) -> Any:
    """Does the work.  If it raises an error of the lake, removes the frames of libraries below it, so that its
    sentence ends the log.

    At the level DEBUG the log has these frames.  Other errors keep all frames, because they are unforeseen.
    """
    try:
        return work()
    except LakeError as error:
        log.debug("%s", error, exc_info=True)
        raise error.with_traceback(None) from None
