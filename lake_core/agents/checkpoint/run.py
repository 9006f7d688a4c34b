"""The checkpoint agent without Spark: which journals want a checkpoint, and the work itself.

Looking at a journal that wants nothing costs one listing and one read.  The journal of pools is looked after too,
under the name `lake:pools`.  Callers: the DAG, the Spark application, `lake checkpoint` and `lake purge`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lake_core.agents.checkpoint.policy import CheckpointPolicy, JournalTail, last_older, why_due
from lake_core.agents.finding import handed_out, look_at_each
from lake_core.agents.reporting import check_found, conclude
from lake_core.agents.request import Request
from lake_core.catalog import Settings
from lake_core.errors import CheckpointDamaged, CheckpointGone, Unavailable
from lake_core.journal import Journal, Purged, purge, write_state
from lake_core.journal.marks import Marks
from lake_core.journal.purge import choose, is_sound
from lake_core.lake import Lake
from lake_core.phrases import counted

log = logging.getLogger(__name__)

POOLS = "lake:pools"

_TRIES = 4


@dataclass(frozen=True)
class DueJournal:
    """A journal that wants a checkpoint, and why."""

    pool: str
    why: str


@dataclass(frozen=True)
class CheckpointResult:
    """What was done: `checkpoint` is the entry of the newest one; `written` whether it is new."""

    pool: str
    checkpoint: int
    written: bool
    fence: int
    entries: int
    checkpoints: int


def policy_of(lake: Lake, pool: str) -> CheckpointPolicy:
    """The pool's policy; the journal of pools has the defaults.  Raises NotFound."""
    settings = Settings({}) if pool == POOLS else lake.pool(pool).settings
    return CheckpointPolicy(
        settings["checkpoint.entries"], settings["checkpoint.age"], settings["history.keep"]
    )


def journal_of(lake: Lake, pool: str) -> Journal[Any, Any]:
    """The pool's journal, as one that forgets tokens by the pool's policy.  Raises NotFound."""
    if pool == POOLS:
        return lake.catalog.journal
    return lake.pool(pool).history.journal


def find_due(lake: Lake, *, pools: list[str] | None = None, now: float) -> list[DueJournal]:
    """Journals that want a checkpoint; of `pools`, if any are named.  Raises NotFound."""
    names = pools or [POOLS, *(p.name for p in lake.pools())]
    found = []
    for name in names:
        policy = policy_of(lake, name)
        journal = journal_of(lake, name)
        why = why_due(_since(journal, journal.marks(), policy), policy, now=now)
        if why is not None:
            found.append(DueJournal(name, why))
    return found


def _since(journal: Journal[Any, Any], marks: Marks, policy: CheckpointPolicy) -> JournalTail:
    last = marks.checkpoints[0].version if marks.checkpoints else 0
    first = journal.read(last + 1)
    if first is None:
        return JournalTail(None, is_full=False)
    # entries have no holes: where this one is, so are all before it
    return JournalTail(_time(first), is_full=journal.read(last + policy.entries) is not None)


def _time(entry: Any) -> float:
    """Seconds since 1970, by the writer's clock."""
    microseconds = entry.time if hasattr(entry, "time") else entry.transactions[0].time
    return float(microseconds) / 1e6


def checkpoint_and_purge(lake: Lake, pool: str, *, now: float, purging: bool = True) -> CheckpointResult:
    """Write a checkpoint where there is something new, and purge by the pool's policy."""
    written, at = write_checkpoint(lake, pool, now=now)
    purged = purge_pool(lake, pool, now=now) if purging else Purged(0)
    return CheckpointResult(pool, at, written, purged.fence, purged.entries, purged.checkpoints)


def write_checkpoint(lake: Lake, pool: str, *, now: float) -> tuple[bool, int]:
    """Whether a checkpoint was written, and the entry of the newest one.

    One that is there already is read first: a damaged one counts for nothing.  Raises Unavailable.
    """
    journal = journal_of(lake, pool)
    for _ in range(_TRIES):
        loaded = journal.load()
        there = [mark for mark in journal.marks().checkpoints if mark.version == loaded.version]
        if not loaded.version or any(is_sound(journal, mark) for mark in there):
            return False, loaded.version
        try:
            write_state(journal, loaded, id=lake.context.ids.new(), now=now)
            return True, loaded.version
        except (CheckpointGone, CheckpointDamaged):  # what the state rests on; the next load rests on another
            continue
    raise Unavailable(f"{pool}: purged faster than a checkpoint can be written; try again")


def purge_until(lake: Lake, pool: str, *, keep: float | None = None, now: float) -> int:
    """The newest entry that may go by the policy, or that is older than `keep` seconds; 0 where none is."""
    journal = journal_of(lake, pool)
    span = policy_of(lake, pool).keep if keep is None else keep
    fence, n = journal.marks().fence, journal.load().version

    def time_of(at: int) -> float:
        entry = journal.read(at)
        return float("-inf") if entry is None else _time(entry)  # purged meanwhile

    return last_older(fence + 1, n, time_of=time_of, moment=now - span)


def plan_purge(lake: Lake, pool: str, *, keep: float | None = None, now: float) -> tuple[int, int]:
    """The fence that a purge would leave, and how many entries it would purge."""
    journal = journal_of(lake, pool)
    marks = journal.marks()
    chosen = choose(journal, marks, until=purge_until(lake, pool, keep=keep, now=now))
    return (chosen.version, chosen.version - marks.fence) if chosen else (marks.fence, 0)


def purge_pool(lake: Lake, pool: str, *, keep: float | None = None, now: float) -> Purged:
    """Purge by the policy, or what is older than `keep` seconds.  Raises Unavailable."""
    return purge(journal_of(lake, pool), until=purge_until(lake, pool, keep=keep, now=now))


def find(params: Mapping[str, Any]) -> list[str]:
    """The agent's first task: names of pools with work.  A dry run logs them and gives none."""
    asked = Request.read(params)
    lake = Lake.open(asked.lake)
    for name in asked.pools:
        journal_of(lake, name)  # which raises NotFound
    names = list(dict.fromkeys(asked.pools)) or [POOLS, *(p.name for p in lake.pools())]
    found: list[str] = []

    def look(name: str) -> list[DueJournal]:
        return find_due(lake, pools=[name], now=lake.context.now())

    for name, due in look_at_each(names, look, named=bool(asked.pools)):
        for one in due or ():
            log.info("%s: %s", one.pool, one.why)
        if due is None or due:
            found.append(name)
    return handed_out(
        found, dry_run=asked.dry_run, nothing="no checkpoint is due", not_done="nothing is written"
    )


def report(found: Sequence[str] | None, results: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """The agent's last task: a line a journal, and the totals.  Raises Incomplete if a journal failed."""
    check_found(None if found is None else [])
    done = [r for r in results if not r.get("failed")]
    for r in done:
        log.info("%s", journal_line(r))
    totals = {"journals": len(done), "entries": sum(int(r["entries"]) for r in done)}
    tried = {str(r["pool"]) for r in results}
    conclude(
        f"{counted(totals['journals'], 'journal')}: purged {counted(totals['entries'], 'entry', 'entries')}"
        if done
        else "nothing was written",
        failed=[f"{r['pool']}: {r['failed']}" for r in results if r.get("failed")]
        + [f"{name}: the task `run` failed; its log says why" for name in found or () if name not in tried],
        to_do="What was written stays; the next run tries the others again",
    )
    return totals


def journal_line(result: Mapping[str, Any]) -> str:
    """What was done for a journal."""
    wrote = "wrote the checkpoint" if result["written"] else "there was a checkpoint already, the one"
    line = f"{result['pool']}: {wrote} of version {result['checkpoint']:,}"
    if not (result["entries"] or result["checkpoints"]):
        return f"{line}; nothing to purge"
    entries = counted(result["entries"], "entry", "entries")
    return f"{line}; purged {entries} and {counted(result['checkpoints'], 'checkpoint')}"
