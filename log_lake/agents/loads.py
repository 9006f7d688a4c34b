"""What the agents that load files (ingest, intervals) have in common: the figures of their results, and the words
for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from lake_core.phrases import counted
from log_lake.agents.agent import Agent
from log_lake.agents.work import Result, Work, Written
from log_lake.lake.results import LoadResult

W = TypeVar("W", bound=Work)
R = TypeVar("R", bound=Result)


class LoadingAgent(Agent[W, R]):
    """An agent that loads files; each piece of work is one transaction."""

    counted_as = "batches"
    sums = ("records", "objects", "nokey", "rejected", "retyped")

    def summed(self, results: Sequence[object]) -> dict[str, int]:
        """Returns the sums of the figures, as every agent does.  A load that was committed before adds no records,
        and counts as `repeated`."""
        new = [one for one in results if not getattr(one, "repeated", False)]
        return super().summed(new) | {self.counted_as: len(results), "repeated": len(results) - len(new)}

    def total(self, totals: Mapping[str, int]) -> str:
        """Returns a line that says how many batches, records and objects the run loaded, from `totals`."""
        before = f", {totals['repeated']:,} of them committed before" if totals["repeated"] else ""
        return f"{counted(totals['batches'], 'batch', 'batches')}{before}: {_records(totals)}"


def written_by(result: LoadResult, *, unread: Iterable[str] = ()) -> Written:
    """Returns what a load wrote to its pool; `unread` are files that it left out."""
    return Written(
        version=result.version,
        records=result.records,
        objects=result.objects,
        size=result.size,
        unread=frozenset(unread),
    )


def load_line(pool_name: str, result: LoadResult) -> str:
    """Returns a line that says what one transaction loaded from files."""
    if result.version is None:
        return f"{pool_name}: nothing to commit"
    again = " (committed before)" if result.repeated else ""
    changes = "".join(f"; {line}" for line in (*result.changes, *result.notes))
    return f"{pool_name}: version {result.version:,}, {_records(vars(result))}{again}{changes}"


def _records(counts: Mapping[str, Any]) -> str:
    """Returns how many records and objects were loaded, in words.  Records without the key, or rejected ones, are
    mentioned only if there are any."""
    words = f"{counted(counts['records'], 'record')} in {counted(counts['objects'], 'object')}"
    if counts["nokey"]:
        words += f", {counts['nokey']:,} without the key"
    if counts["rejected"]:
        words += f", {counts['rejected']:,} rejected"
    return words
