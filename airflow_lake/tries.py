"""What the log of a task says of its tries, and of the error that ends one.

The log of a try whose worker was killed just ends, so the next try is the first that can say it.  Callers: the
operators and the tasks `run`.
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
    """Do the work; an error of the lake loses the frames of libraries below it, so its sentence ends the log.

    At the level DEBUG the log has them.  Other errors keep all frames, because they are unforeseen.
    """
    try:
        return work()
    except LakeError as error:
        log.debug("%s", error, exc_info=True)
        raise error.with_traceback(None) from None
