"""The words for what the intervals agent found and did: for its logs and its report."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from lake_core.phrases import counted, human_size
from log_lake.agents.loads import load_line, written_by
from log_lake.agents.work import Result, Written
from log_lake.lake.results import LoadResult
from log_lake.loading.source_files import SourceFile


@dataclass(frozen=True)
class _OfInterval(Result):
    begin: str


@dataclass(frozen=True)
class IntervalsResult(LoadResult, _OfInterval):
    """What came of one interval of a pool; `begin` names the interval, and is "" for files that a person
    named."""

    @property
    def wrote(self) -> Written:
        return written_by(self)


def plan_line(
    pool_name: str, files: Sequence[SourceFile], *, begin: dt.datetime | None, end: dt.datetime | None
) -> str:
    """Returns a line that says which files a run will load into a pool, and for which interval."""
    what = f"{counted(len(files), 'file')}, {human_size(sum(f.size for f in files))}"
    if not (begin and end):
        return f"{pool_name}: append {what}, as the run asks"
    return f"{pool_name}: replace {begin.isoformat()} to {end.isoformat()} by {what}"


def interval_line(result: IntervalsResult) -> str:
    """Returns a line that says what was loaded into an interval of a pool, or from the files that a person
    named."""
    if result.version is None and result.begin:
        return f"{result.pool}: no files for {result.begin}: nothing changed"
    if result.begin and not (result.objects or result.repeated or result.removed):
        return f"{result.pool}: no records for {result.begin}: the interval is held, and empty"
    return load_line(result.pool, result)
