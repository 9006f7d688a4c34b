"""What the checkpoint agent did, in words: for its logs and its last task."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lake_core.errors import Unavailable
from lake_core.phrases import counted
from log_lake.agents.reporting import Found, check_found, conclude, sums

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CheckpointResult:
    """What was done: `checkpoint` is the version of the newest one, `written` whether it is new.

    `entries` and `checkpoints` count what was purged, up to the version `fence`.  `tail_before` and `tail_after`:
    entries since the newest checkpoint.  Who opens the pool reads each with a request of its own.
    """

    pool: str
    checkpoint: int
    written: bool
    fence: int
    entries: int
    checkpoints: int
    tail_before: int
    tail_after: int


def journal_line(result: Mapping[str, Any]) -> str:
    """What was done for a journal."""
    wrote = "wrote the checkpoint" if result["written"] else "there was a checkpoint already, the one"
    line = f"{result['pool']}: {wrote} of version {result['checkpoint']:,}"
    if result["tail_before"]:
        line += f"; entries to read when it is opened: {result['tail_before']:,} -> {result['tail_after']:,}"
    if not (result["entries"] or result["checkpoints"]):
        return f"{line}; nothing to purge"
    entries = counted(result["entries"], "entry", "entries")
    return f"{line}; purged {entries} and {counted(result['checkpoints'], 'checkpoint')}"


def check_answered(results: Sequence[Mapping[str, Any]]) -> None:
    """Raises Unavailable if the store did not answer for some: trying again may help, and does nothing twice."""
    passing = [one for one in results if one.get("kind") == Unavailable.__name__]
    if passing:
        raise Unavailable("; ".join(f"{one['pool']}: {one['failed']}" for one in passing))


def report(all_work: Found | None, results: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """The agent's last task: a line a journal, and the totals.  Raises Incomplete if a journal failed."""
    all_work = check_found(all_work)
    done = [r for r in results if not r.get("failed")]
    for result in done:
        log.info("%s", journal_line(result))
    totals = sums(done, "journals", of=("entries",))
    tried = {str(r["pool"]) for r in results}
    conclude(
        f"{counted(totals['journals'], 'journal')}: purged {counted(totals['entries'], 'entry', 'entries')}"
        if done
        else "nothing was written",
        failed=[f"{r['pool']}: {r['failed']}" for r in results if r.get("failed")]
        + [f"{w['pool']}: run failed; its log says why" for w in all_work if w["pool"] not in tried],
        to_do="What was written stays; the next run tries the others again",
    )
    return totals
