"""How an agent's run ends: it logs what was done, and fails if something failed, naming it.

`report` is the last task and runs whatever became of the others.  It knows what `find` handed out and which
results came back: work without a result has failed.  By Airflow's usual rule the report of a failed run would be
skipped, and its reader would have to look for the task that failed.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lake_core.errors import Incomplete
from lake_core.phrases import MAX_NAMED, counted

log = logging.getLogger(__name__)

Found = Sequence[Mapping[str, Any]]

PIECE = "piece"
"""The name of a value that tells one piece of work from all others, also from those of another `find`."""


def check_found(all_work: Found | None) -> Found:
    """What `find` handed out to be done; logs the pools that it put off, and why.

    Raises Incomplete if it failed and handed out nothing.
    """
    if all_work is None:
        raise Incomplete("the task `find` failed, so nothing was done; its log says why")
    for work in put_off(all_work):
        log.info("%s", work["title"])
    return [work for work in all_work if not work.get("put_off")]


def put_off(all_work: Found) -> Found:
    """What `find` handed out for the report alone: pools that the agent left alone."""
    return [work for work in all_work if work.get("put_off")]


def missing(all_work: Found, results: Found, *, by: str = PIECE) -> list[str]:
    """What failed, in words: the work in `all_work` without a result; a line a pool and task.

    A result is of the work with the same value `by`, otherwise of that of the same pool.  The pool alone is not
    enough if work was packed: a result may be of what another `find` found.  Packed work says the number of its
    task (`task`).
    """
    finished = {_identity(result, by) for result in results}
    failed = Counter(
        f"{work['pool']}: run[{work.get('task', number)}] failed; its log says why"
        for number, work in enumerate(all_work)
        if _identity(work, by) not in finished
    )
    return [line if count == 1 else f"{line} ({count:,} pieces of work)" for line, count in failed.items()]


def _identity(one: Mapping[str, Any], by: str) -> object:
    return one.get(by) or one["pool"]


def conclude(total: str, *, failed: Sequence[str], to_do: str) -> None:
    """Log the total, and what failed; raises Incomplete, which repeats it, if anything did."""
    log.info("%s", total)
    for line in failed:
        log.error("%s", line)
    if failed:
        raise Incomplete(f"{counted(len(failed), 'failure')}: {'; '.join(failed[:MAX_NAMED])}. {to_do}")


def load_line(result: Mapping[str, Any]) -> str:
    """What became of files that were loaded as one transaction, from the values of a LoadResult."""
    if result["version"] is None:
        return f"{result['pool']}: nothing to commit"
    again = " (committed before)" if result["repeated"] else ""
    changes = "".join(f"; {line}" for line in result.get("changes", ()))
    return f"{result['pool']}: version {result['version']:,}, {_records(result)}{again}{changes}"


def load_totals(results: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """The sums over all loads."""
    return sums(results, "batches", of=("records", "objects", "nokey", "rejected"))


def sums(results: Sequence[Mapping[str, Any]], counted_as: str, *, of: Sequence[str]) -> dict[str, int]:
    """How many results there are, under the name `counted_as`, and the sums of their values `of` these names."""
    return {counted_as: len(results)} | {name: sum(int(r[name]) for r in results) for name in of}


def newest_version(versions: Iterable[int | None]) -> int | None:
    """The newest of these versions, which a piece of work committed; None if it committed nothing."""
    return max((version for version in versions if version is not None), default=None)


def figures_of(result: Mapping[str, Any]) -> dict[str, int]:
    """The whole numbers of a result."""
    return {
        name: value
        for name, value in result.items()
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63
    }


def totals_line(totals: Mapping[str, int]) -> str:
    """The sums in words."""
    return f"{counted(totals['batches'], 'batch', 'batches')}: {_records(totals)}"


def _records(counts: Mapping[str, Any]) -> str:
    """Records and objects; sub-pools only if they got records."""
    words = f"{counted(counts['records'], 'record')} in {counted(counts['objects'], 'object')}"
    if counts["nokey"]:
        words += f", {counts['nokey']:,} without the key"
    if counts["rejected"]:
        words += f", {counts['rejected']:,} rejected"
    return words
