"""The tombstones agent without Spark: what deletes covered goes out of the objects, and the deletes are forgotten.

    search -> mark what holds nothing covered -> rewrite what does -> retire what covers nothing any more

Every step is a transaction of its own and may be repeated: killed at any point and run again, the agent plans anew.
Loads, deletes and compactions go on meanwhile; where a compaction takes a reference first, it has applied the
tombstones itself.  `apply` is given how references are searched and jobs are rewritten: here one after another, in
`spark_apps.tombstones` as Spark tasks.  Callers: the DAG, the Spark application, `lake tombstones`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lake_core.agents.compact.jobs import CompactionJob, CompactionResult
from lake_core.agents.compact.run import rewrite_here, run_jobs
from lake_core.agents.finding import handed_out, look_at_each
from lake_core.agents.reporting import Found, check_found, conclude, missing
from lake_core.agents.request import Request, named_pools
from lake_core.agents.tombstones.plan import (
    ApplyPlan,
    Policy,
    Search,
    holds_covered,
    plan_apply,
    searches,
)
from lake_core.errors import Conflict
from lake_core.history import Draft, PoolState
from lake_core.history.rebase import still_covered
from lake_core.lake import Lake
from lake_core.lake.branch import Branch
from lake_core.phrases import counted, human_size
from lake_core.reading.age_off import age_off
from lake_core.reading.plan import united_schema
from lake_core.records import Action, MarkApplied, RemoveTombstone

log = logging.getLogger(__name__)

Searcher = Callable[[Sequence[Search]], Sequence[bool]]
Runner = Callable[[Sequence[CompactionJob]], list[CompactionResult]]

WHY = "remove deleted records"
GOES_WHOLE = 1_000
"""References that are covered as a whole go together, at most so many in one transaction."""


@dataclass(frozen=True)
class ApplyResult:
    """What the agent did in a pool: numbers of references, bytes rewritten, tombstones retired and left.

    `covered` is how many references those that are left may still cover.
    """

    pool: str
    searched: int
    marked: int
    rewritten: int
    size_in: int
    size_out: int
    retired: int
    left: int
    covered: int


def policy_of(branch: Branch, *, now: float, at_once: bool = False) -> Policy:
    """The pool's policy at a time; `at_once`: everything is due, whatever its age."""
    return Policy(
        due=None if at_once else int((now - branch.settings["tombstones.apply"]) * 1_000_000),
        forget=int((now - branch.settings["tombstones.remember"]) * 1_000_000),
    )


def plan(branch: Branch, *, now: float, at_once: bool = False) -> ApplyPlan:
    """The work that is due.  Raises Unavailable, Corrupt."""
    return _plan(branch, branch.history.load().state, policy_of(branch, now=now, at_once=at_once), now=now)


def _plan(branch: Branch, state: PoolState, policy: Policy, *, now: float) -> ApplyPlan:
    schema = united_schema(state, branch=branch.name, sub_pool="")
    aged = age_off(branch.settings["age_off"], schema, now=now)
    return plan_apply(state, policy, branch=branch.name, rule=branch.rule, aged=aged)


def search_here(branch: Branch) -> Searcher:
    """Searches one reference after another."""
    return lambda wanted: [holds_covered(search, branch.store) for search in wanted]


def run_here(branch: Branch) -> Runner:
    """Rewrites one reference after another."""
    return lambda jobs: run_jobs(branch, jobs, rewrite_here(branch))


def apply(
    branch: Branch,
    *,
    now: float,
    at_once: bool = False,
    search: Searcher | None = None,
    run: Runner | None = None,
) -> ApplyResult:
    """Do what is due.  Raises ObjectMissing, Corrupt, OutcomeUnknown, Unavailable."""
    loaded = branch.history.load()
    policy = policy_of(branch, now=now, at_once=at_once)
    work = _plan(branch, loaded.state, policy, now=now)
    wanted = list(
        searches(loaded.state, work.suspects, branch=branch.name, pool=branch.pool.id, key=branch.pool.key)
    )
    found = (search or search_here(branch))(wanted)
    dirty = [s.reference for s, holds in zip(wanted, found, strict=True) if holds]
    clean = [s.reference for s, holds in zip(wanted, found, strict=True) if not holds]
    marked = _commit(
        branch,
        loaded.version,
        [MarkApplied(r.object, r.low, loaded.version) for r in clean],
        "searched for deleted records",
    )
    target = branch.settings["compact.target_size"]
    of_sub = [
        [r for r in work.covered if r.sub_pool == sub_pool]
        for sub_pool in sorted({r.sub_pool for r in work.covered})
    ]
    whole = [tuple(part[i : i + GOES_WHOLE]) for part in of_sub for i in range(0, len(part), GOES_WHOLE)]
    jobs = [CompactionJob(part, 1, WHY) for part in whole]
    jobs += [CompactionJob((r,), max(1, round(r.size / target)), WHY) for r in dirty]
    done = [d for d in (run or run_here(branch))(jobs) if d.version is not None]
    retired = retire(branch, now=now)
    state = branch.history.load().state
    held = state.branches[branch.name]
    left = held.tombstones.values()
    return ApplyResult(
        pool=branch.pool.name,
        searched=len(wanted),
        marked=len(clean) if marked else 0,
        rewritten=sum(d.inputs for d in done),
        size_in=sum(d.size_in for d in done),
        size_out=sum(d.size_out for d in done),
        retired=retired,
        left=len(left),
        covered=len({(r.object, r.low) for t in left for r in still_covered(state, held, t)}),
    )


def retire(branch: Branch, *, now: float) -> int:
    """Forget the tombstones that can cover nothing any more; how many."""
    loaded = branch.history.load()
    work = plan_apply(loaded.state, policy_of(branch, now=now), branch=branch.name, rule=branch.rule)
    actions = [RemoveTombstone(name) for name in work.retirable]
    return len(actions) if _commit(branch, loaded.version, actions, "drop finished deletes") else 0


def _commit(branch: Branch, read_version: int, actions: Sequence[Action], message: str) -> bool:
    """Whether it landed: where somebody changed what it names, it is planned again at the next run."""
    if not actions:
        return False
    draft = Draft(
        branch.context.ids.new(),
        branch.name,
        read_version,
        branch.context.author,
        tuple(actions),
        message=message,
    )
    try:
        branch.history.commit(draft)
    except Conflict:
        return False
    return True


def find(params: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The agent's first task: pools with work as plain values, for one mapped task each.

    `params`: lake, pools (none named: all), branch, dry_run.  A dry run logs what is due and gives none.
    """
    asked = Request.read(params, also=("branch",))
    lake = Lake.open(asked.lake)
    found = []

    def look(name: str) -> ApplyPlan:
        return plan(lake.pool(name).branch(asked.branch), now=lake.context.now())

    for name, work in look_at_each(named_pools(lake, asked.pools), look, named=bool(asked.pools)):
        if work is not None:
            if work.idle:
                continue
            log.info("%s", describe(name, work))
        found.append({"lake": asked.lake, "pool": name, "branch": asked.branch, "title": name})
    return handed_out(
        found, dry_run=asked.dry_run, nothing="no deletes to apply", not_done="nothing is rewritten"
    )


def describe(pool: str, work: ApplyPlan) -> str:
    """What is due, in a line."""
    doing = [
        f"remove {counted(len(work.covered), 'whole object')}" if work.covered else "",
        f"search {counted(len(work.suspects), 'object')}" if work.suspects else "",
        f"drop {counted(len(work.retirable), 'finished delete')}" if work.retirable else "",
    ]
    return (
        f"{pool}: {counted(work.due, 'delete is', 'deletes are')} due: "
        f"{', '.join(part for part in doing if part) or 'nothing to do'}; {work.left:,} left"
    )


def report(found: Found | None, results: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """The agent's last task: a line a pool, and the totals.  Raises Incomplete if a pool failed."""
    for r in results:
        log.info("%s", pool_line(ApplyResult(**r)))
    summed = ("searched", "rewritten", "size_in", "size_out", "retired", "left")
    totals = {"pools": len(results)} | {name: sum(int(r[name]) for r in results) for name in summed}
    conclude(
        f"{counted(totals['pools'], 'pool')}: {_work_line(totals)}; {totals['left']:,} left"
        if results
        else "no deletes were applied",
        failed=missing(check_found(found), results, by="pool"),
        to_do="What was rewritten stays; the next run plans the rest again",
    )
    return totals


def pool_line(did: ApplyResult, *, remember: str = "tombstones.remember") -> str:
    """What was done in a pool, in a line; `remember` is how long a replace is remembered."""
    if not (did.searched or did.rewritten or did.retired or did.left):
        return f"{did.pool}: no deletes to apply"
    if not did.left:
        left = "none left"
    elif did.covered:
        left = f"{did.left:,} left, which may still cover records of {counted(did.covered, 'object')}"
    else:  # as `plan_application` has it
        kept = counted(did.left, "replace is", "replaces are")
        left = f"{kept} remembered for {remember}, for loads that had already begun"
    return f"{did.pool}: {_work_line(asdict(did))}; {left}"


def _work_line(did: Mapping[str, Any]) -> str:
    work = f"searched {counted(did['searched'], 'object')}, rewrote {did['rewritten']:,}"
    if did["rewritten"]:
        work += f" ({human_size(did['size_in'])} -> {human_size(did['size_out'])})"
    return f"{work}; {counted(did['retired'], 'delete')} finished"
