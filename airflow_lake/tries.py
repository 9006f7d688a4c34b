"""The log line of a task that is retried: why, and what happened to its earlier work.

The log of a try whose worker was killed just ends, so the next try is the first that can say it.  Callers: the
operators and the tasks `run`.
"""

from __future__ import annotations

import logging
from typing import Any

log = logging.getLogger(__name__)


def tell_of_tries(task_instance: Any) -> None:
    """Log, in every try but the first, what became of the one before."""
    number = getattr(task_instance, "try_number", 1)
    if number > 1:
        log.warning(
            "try %s: the log of try %s says how that ended: it failed, or it succeeded and the task was cleared; "
            "if that log just ends, its worker was killed. What it committed stays, and is not done again",
            number,
            number - 1,
        )
