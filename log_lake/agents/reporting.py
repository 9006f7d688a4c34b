"""Ends an agent's run: says what failed, and fails if something did.

The report knows what `find` handed out and which results came back: work without a result has failed.  By
Airflow's default rule a failed task would skip the report, and a person would have to search for the task that
failed.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from lake_core.errors import Incomplete
from lake_core.phrases import MAX_NAMED, counted
from log_lake.agents.work import Result, Work
from log_lake.lake.results import LoadResult

log = logging.getLogger(__name__)


def missing(all_work: Sequence[Work], results: Sequence[Result], *, by: str = "piece") -> list[str]:
    """Returns a line for each pool and task whose work in `all_work` has no result.

    `by`: the name of a field that work and results both have.  A result belongs to the work with the same value
    in that field.  If the value is empty, the result belongs to the work of the same pool.  For packed work the
    pool alone is not enough: a result may come from work in the same pool that another run of `find` found.
    """
    finished = {getattr(result, by) or result.pool for result in results}
    failed = Counter(
        f"{work.pool}: run[{number if work.task is None else work.task}] failed; its log says why"
        for number, work in enumerate(all_work)
        if (getattr(work, by) or work.pool) not in finished
    )
    return [line if count == 1 else f"{line} ({count:,} pieces of work)" for line, count in failed.items()]


def conclude(total: str, *, failed: Sequence[str], to_do: str) -> None:
    """Logs the total, and what failed.  Raises Incomplete, with the same words, if anything did."""
    log.info("%s", total)
    for line in failed:
        log.error("%s", line)
    if failed:
        more = len(failed) - MAX_NAMED
        named = "; ".join(failed[:MAX_NAMED]) + (
            f"; and {more:,} more, which the log names" if more > 0 else ""
        )
        raise Incomplete(f"{counted(len(failed), 'failure')}: {named}. {to_do}")


def newest_version(versions: Iterable[int | None]) -> int | None:
    """Returns the newest of these versions, each committed by a piece of work; None if no piece committed
    anything."""
    return max((version for version in versions if version is not None), default=None)


def figures_of(result: Mapping[str, Any]) -> dict[str, int]:
    """Returns the fields of a result that are whole numbers; for a load that was committed before, only
    `repeated`.

    So sums over jobs count each record once.
    """
    repeated = bool(result.get("repeated"))
    figures = {
        name: value
        for name, value in result.items()
        if isinstance(value, int)
        and not isinstance(value, bool)
        and abs(value) < 1 << 63
        and not (repeated and name in _OF_LOAD)
    }
    return figures | {"repeated": 1} if repeated else figures


_OF_LOAD = frozenset(field.name for field in fields(LoadResult)) - {"version"}
