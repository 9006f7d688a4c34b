"""The words for what the tombstones agent plans and did: for its logs, its report and `lake tombstones`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lake_core.history import Reference
from lake_core.phrases import counted, human_size
from log_lake.agents.tombstones.plan import ApplyPlan
from log_lake.agents.work import Result, Written
from log_lake.compaction.gain import Gain


@dataclass(frozen=True)
class ApplyResult(Result, Gain):
    """What the agent did in a pool: how many references it handled, how many bytes it rewrote, and how many
    tombstones it retired and left.

    `covered`: the number of references that the remaining tombstones may still cover.  `version`: the newest
    version that it committed, None if it committed nothing.
    """

    version: int | None
    searched: int
    marked: int
    rewritten: int
    size_in: int
    size_out: int
    retired: int
    left: int
    covered: int

    @property
    def wrote(self) -> Written:
        return Written(version=self.version, size=self.size_out)


def plan_line(pool_name: str, work: ApplyPlan) -> str:
    """Returns a line that says what is due in a pool."""
    if work.idle:
        return f"{pool_name}: no deletes to apply; {work.remaining:,} left"
    steps = [
        f"remove {counted(len(work.removable), 'whole object')}" if work.removable else "",
        f"search {counted(len(work.suspects), 'object')}" if work.suspects else "",
        f"drop {counted(len(work.retirable), 'finished delete')}" if work.retirable else "",
    ]
    return (
        f"{pool_name}: {counted(work.due, 'delete is', 'deletes are')} due: "
        f"{', '.join(step for step in steps if step)}; {work.remaining:,} left"
    )


def search_line(pool_name: str, *, dirty: Sequence[Reference], clean: Sequence[Reference]) -> str:
    """Returns a line that says what a search found: `dirty` references hold deleted records, `clean` ones do
    not."""
    size = human_size(sum(r.size for r in dirty))
    rewrite = f"{counted(len(dirty), 'object')}, {size}, to rewrite" if dirty else "none to rewrite"
    return f"{pool_name}: {rewrite}; {counted(len(clean), 'object')} without deleted records"


def pool_line(result: ApplyResult, *, remember: str = "tombstones.remember") -> str:
    """Returns a line that says what was done in a pool; `remember` is how long the tombstone of a replace is
    kept."""
    if not (result.searched or result.rewritten or result.retired or result.left):
        return f"{result.pool}: no deletes to apply"
    if not result.left:
        left = "none left"
    elif result.covered:
        left = f"{result.left:,} left, which may still cover records of {counted(result.covered, 'object')}"
    else:  # `plan_apply` keeps those of replaces
        kept = counted(result.left, "replace is", "replaces are")
        left = f"{kept} remembered for {remember}, for loads that had already begun"
    return f"{result.pool}: {work_line(vars(result))}; {left}"


def work_line(done: Mapping[str, Any]) -> str:
    """Returns words for what was rewritten and retired, from the figures of one pool or of all pools."""
    work = f"searched {counted(done['searched'], 'object')}, rewrote {done['rewritten']:,}"
    if done["rewritten"]:
        work += f" ({human_size(done['size_in'])} -> {human_size(done['size_out'])})"
    return f"{work}; {counted(done['retired'], 'delete')} finished"
