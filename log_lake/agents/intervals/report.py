"""What the intervals agent found and what it did, in words: for its logs and its last task."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from lake_core.phrases import counted, human_size
from log_lake.agents.reporting import (
    Found,
    check_found,
    conclude,
    load_line,
    load_totals,
    missing,
    put_off,
    totals_line,
)
from log_lake.loading.source_files import SourceFile

log = logging.getLogger(__name__)


def plan_line(
    pool_name: str, files: Sequence[SourceFile], *, begin: dt.datetime | None, end: dt.datetime | None
) -> str:
    """What is decided for a pool, in a line."""
    what = f"{counted(len(files), 'file')}, {human_size(sum(f.size for f in files))}"
    if not (begin and end):
        return f"{pool_name}: append {what}, as the run asks"
    return f"{pool_name}: replace {begin.isoformat()} to {end.isoformat()} by {what}"


def interval_line(result: Mapping[str, Any]) -> str:
    """What became of an interval of a pool, or of files that were appended by hand."""
    if result["version"] is None and result["begin"]:
        return f"{result['pool']}: no files for {result['begin']}: nothing changed"
    return load_line(result)


def report(all_work: Found | None, results: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """The agent's last task: a line a pool, and the totals.

    Raises Incomplete if a pool failed, or was put off: no later run does its interval.
    """
    for result in results:
        log.info("%s", interval_line(result))
    totals = load_totals(results)
    failed = missing(check_found(all_work), results)
    failed += [str(work["title"]) for work in put_off(all_work or ())]
    conclude(
        totals_line(totals) if results else "nothing to do",
        failed=failed,
        to_do="What failed changed nothing. Mend what its log names, then run the interval again",
    )
    return totals
