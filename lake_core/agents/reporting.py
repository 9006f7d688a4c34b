"""How an agent's run ends: what was done is logged, and a run of which something failed fails by saying what.

`report` is the last task and runs whatever became of the others.  It knows what `find` handed out and what came
back: what did not come back has failed.  With Airflow's usual rule the report of a red run would be skipped, and
its reader would have to look for the task that failed.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from lake_core.errors import Incomplete
from lake_core.phrases import MAX_NAMED, counted

log = logging.getLogger(__name__)

Found = Sequence[Mapping[str, Any]]


def check_found(found: Found | None) -> Found:
    """What `find` handed out; raises Incomplete if it failed and handed out nothing."""
    if found is None:
        raise Incomplete("the task `find` failed, so nothing was done; its log says why")
    return found


def missing(found: Found, results: Found, *, by: str) -> list[str]:
    """What failed, in words: the work in `found` whose value `by` no result carries."""
    finished = {result[by] for result in results}
    return [
        f"{work['pool']}: run[{number}] failed; its log says why"
        for number, work in enumerate(found)
        if work[by] not in finished
    ]


def conclude(total: str, *, failed: Sequence[str], to_do: str) -> None:
    """Log the total, and what failed; raises Incomplete, which repeats it, if anything did."""
    log.info("%s", total)
    for line in failed:
        log.error("%s", line)
    if failed:
        raise Incomplete(f"{counted(len(failed), 'failure')}: {'; '.join(failed[:MAX_NAMED])}. {to_do}")
