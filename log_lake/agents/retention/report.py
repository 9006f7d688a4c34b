"""The words for what the retention agent plans and did: for its logs, its report and `lake expire`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lake_core.phrases import counted, human_size, human_time, listed
from log_lake.agents.retention.expire import ExpireResult
from log_lake.agents.retention.plan import ExpirePlan, RetentionPlan
from log_lake.agents.work import Result
from log_lake.compaction.gain import Gain
from log_lake.lake.open_transactions import Cleaned


@dataclass(frozen=True)
class RetentionResult(Result, Gain):
    """What the agent did in a pool.

    `expired` references of the branch, with `records` and `expired_size` bytes; `deletes`: tombstones that it
    committed, for older records in other objects.  It found `orphans`, deleted `vacuumed` objects of `freed`
    bytes, and left `spared` objects for a lease.  It purged `purged` entries of the journal.  It `ended`
    transactions over several pools, and deleted the decisions of `forgotten` ones.  `released`: the number of
    clones for which the pool no longer keeps anything.  `version`: the newest version that it committed, None
    if it committed nothing.
    """

    branch: str
    version: int | None
    expired: int
    records: int
    expired_size: int
    deletes: int
    orphans: int
    vacuumed: int
    freed: int
    spared: int
    purged: int
    ended: int = 0
    forgotten: int = 0
    released: int = 0


def plan_line(pool_name: str, work: ExpirePlan) -> str:
    """Returns a line that says what expires."""
    stays = "".join(f"; {counted(count, 'object')} must stay: {why}" for why, count in work.stays.items())
    if work.idle:
        return f"{pool_name}: nothing expires{stays}"
    steps = []
    if work.removed:
        why = listed([f"{count:,} by {name}" for name, count in work.why.items()])
        records = counted(work.records, "record")
        steps.append(f"remove {_objects(len(work.removed))} ({why}): {records}, {human_size(work.size)}")
    if work.tombstone is not None:
        older = f"delete records with {work.by} before {human_time(work.older_than)}"
        records = counted(sum(r.records for r in work.hidden), "record")
        steps.append(f"{older} in up to {counted(len(work.hidden), 'object')} of {records}")
    return f"{pool_name}: {'; '.join(steps)}{stays}"


def expire_line(done: ExpireResult) -> str:
    """Returns a line that says what expired."""
    if done.version is None:
        return f"{done.pool}: nothing expired"
    line = f"{done.pool}: version {done.version:,} removed {_objects(done.objects)}, "
    line += f"{counted(done.records, 'record')}, {human_size(done.size)}"
    return line + ("; older records of other objects are deleted by a tombstone" if done.deleted else "")


def retention_lines(pool_name: str, work: RetentionPlan) -> Iterator[str]:
    """Yields a line for each step of the work in a pool."""
    if not work.expiry.idle or work.expiry.stays:
        yield plan_line(pool_name, work.expiry)
    if work.unfinished:
        objects = f"{counted(work.begun, 'object')}, {human_size(work.begun_size)}"
        yield f"{pool_name}: {counted(work.unfinished, 'interrupted vacuum')} to finish: delete {objects}"
    if work.deletable or work.held:
        kept = "".join(f"; {counted(count, 'object')} kept by {why}" for why, count in work.held.items())
        yield f"{pool_name}: delete {counted(work.deletable, 'object')}, {human_size(work.size)}{kept}"
    if work.ended:
        yield f"{pool_name}: keep nothing more for {counted(work.ended, 'clone')}"
    if work.has_new_names:
        yield f"{pool_name}: scan new objects for orphans"
    if work.entries:
        yield f"{pool_name}: purge {counted(work.entries, 'entry', 'entries')}"
    if work.unused:
        yield f"{pool_name}: delete {counted(work.unused, 'unused index', 'unused indexes')}"


def transactions_line(name: str, over: Cleaned) -> str:
    """Returns a line: which transactions over pools are ended because they were open for too long, and how many
    decisions are deleted."""
    steps = [f"end {listed(over.ended)}, open for too long"] if over.ended else []
    if over.forgotten:
        steps.append(f"delete {counted(len(over.forgotten), 'decision')} that no journal needs")
    return f"{name}: {'; '.join(steps)}"


def pool_line(result: RetentionResult) -> str:
    """Returns a line that says what was done in a pool."""
    return f"{result.pool}: {work_line(vars(result))}"


def work_line(done: Mapping[str, Any]) -> str:
    """Returns words for what was expired and deleted, from the figures of one pool or of all pools."""
    steps = [
        f"expired {_objects(done['expired'])}, {counted(done['records'], 'record')}"
        if done["expired"]
        else "",
        "hid old records beside newer ones" if done["deletes"] else "",
        f"found {counted(done['orphans'], 'orphan')}" if done["orphans"] else "",
        f"deleted {counted(done['vacuumed'], 'object')}, {human_size(done['freed'])}"
        if done["vacuumed"]
        else "",
        f"spared {counted(done['spared'], 'object')} for a lease" if done["spared"] else "",
        f"purged {counted(done['purged'], 'entry', 'entries')}" if done["purged"] else "",
        f"ended {counted(done['ended'], 'transaction')}, open for too long" if done["ended"] else "",
        f"deleted {counted(done['forgotten'], 'decision')} that no journal needs"
        if done["forgotten"]
        else "",
        f"keeps nothing more for {counted(done['released'], 'clone')}" if done.get("released") else "",
    ]
    return "; ".join(step for step in steps if step) or "nothing to do"


def _objects(count: int) -> str:
    return counted(count, "whole object")
