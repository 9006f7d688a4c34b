"""The kinds of findings about the whole lake, as a table: each row has a name and the function that judges the
signs; pure."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lake_core.errors import Corrupt
from lake_core.phrases import counted, human_duration, human_time, listed
from log_lake.agents.checkpoint.plan import policy_of
from log_lake.agents.roster import AGENTS
from log_lake.doctor.health_finding import HealthFinding, Severity
from log_lake.doctor.kinds import AGENT_OF, DAILY, DAY, HOURLY, Judged, overdue
from log_lake.doctor.signs import LakeSigns
from log_lake.settings import Settings

APART = 60.0
"""If two clocks differ by more than these seconds, the doctor reports it (`journal.store_time`)."""


SILENT = 300.0
"""If the process of a commit gave no sign of life for so many seconds, it is dead. A live one gives a sign every
few seconds; the rest allows for clocks that differ."""


@dataclass(frozen=True)
class LakeKind:
    """A kind of findings about the whole lake: its name; what it finds; and the function that judges the
    signs."""

    name: str
    says: str
    judge: Callable[[LakeSigns], Iterator[Judged]]


def lake_findings_of(signs: LakeSigns) -> list[HealthFinding]:
    """Returns the findings about the lake, worst first, then in the order of the table."""
    findings = [
        HealthFinding(kind=kind.name, pool="", **vars(one))
        for kind in LAKE_KINDS
        for one in kind.judge(signs)
    ]
    return sorted(findings, key=lambda one: -one.severity)


def _unseen(signs: LakeSigns) -> Iterator[Judged]:
    for part, error in signs.failures.items():
        severity = Severity.ILL if isinstance(error, Corrupt) else Severity.ATTENTION
        command = "lake fsck" if isinstance(error, Corrupt) else "lake doctor"
        yield Judged(severity, f"not seen: {part}: {error}", command=command)
    if signs.store.untried:
        says = "the doctor may only read here: it did not try the store's clock and its create-only write"
        yield Judged(Severity.NOTE, says)


def _clocks(signs: LakeSigns) -> Iterator[Judged]:
    apart = signs.store.apart
    if apart is None or abs(apart) <= APART:
        return
    severity = Severity.ILL if abs(apart) > signs.store.skew else Severity.ATTENTION
    says = (
        f"the clock of this machine is {human_duration(abs(apart))} {'ahead of' if apart > 0 else 'behind'} that "
        "of the store; set the clock that is wrong"
    )
    yield Judged(severity, says, command="timedatectl")


def _creates(signs: LakeSigns) -> Iterator[Judged]:
    store = signs.store
    if store.lock_missing:
        says = f"writers of this lake share a lock ({store.lock}), which this process does not have; set LAKE_LOCK"
        yield Judged(Severity.ATTENTION, says)
    elif store.fault and store.lock:
        yield Judged(Severity.ATTENTION, f"only the lock ({store.lock}) keeps writers apart: {store.fault}")
    elif store.fault:
        yield Judged(Severity.ILL, store.fault)


def _agents(signs: LakeSigns) -> Iterator[Judged]:
    pools: dict[str, list[HealthFinding]] = defaultdict(list)
    for one in signs.late:
        if one.severity > Severity.NOTE and one.kind in AGENT_OF and one.since is not None:
            pools[AGENT_OF[one.kind]].append(one)
    for agent, late in sorted(pools.items()):
        if agent == "ingest":  # a parked file waits for a person
            continue
        last = signs.alive.get(agent)
        if last is None or signs.now - last > _late_after(agent):
            when = "has never run" if last is None else f"has not run since {human_time(last)}"
            names = listed(sorted({one.pool for one in late}), 3)
            since = max([last or 0.0, min(one.since or 0.0 for one in late)])
            says = f"the agent {agent} {when}, and work waits for it: {names}"
            yield Judged(max(one.severity for one in late), says, since, f"lake-agent {agent}")


def _late_after(agent: str) -> float:
    return DAILY if AGENTS[agent].remembers > DAY else HOURLY


def _stopped(signs: LakeSigns) -> Iterator[Judged]:
    last = max(signs.alive.values(), default=None)
    if last is None or signs.written is None or not signs.written > last + DAY:
        return
    if signs.now - last > DAILY:
        says = f"no agent has run since {human_time(last)}, and pools were written to"
        yield Judged(Severity.ATTENTION, says, last, "lake jobs --limit 5")


def _dropped(signs: LakeSigns) -> Iterator[Judged]:
    late = {name: due for name, due in signs.dropped.items() if overdue(due, signs.now, DAILY) is not None}
    if late:
        does = counted(len(late), "dropped pool is", "dropped pools are")
        says = f"{does} still on the store after the grace time: {listed(sorted(late), 3)}"
        yield Judged(Severity.ATTENTION, says, min(late.values()), "lake vacuum --dropped")


def _transactions(signs: LakeSigns) -> Iterator[Judged]:
    for one in signs.transactions:
        renewed = None if one.renewed is None else one.renewed.timestamp()
        if one.state == "committing" and renewed is not None and signs.now - renewed > SILENT:
            says = (
                f"the process that commits transaction {one.id} has been silent since {human_time(renewed)}; "
                f"writers wait for it in {listed(one.pools, 3)}"
            )
            yield Judged(Severity.ATTENTION, says, renewed, f"lake commit {one.id}")
            continue
        if one.state == "damaged":
            says = (
                f"an object of transaction {one.id} is damaged, so no agent ends it: {listed(one.pools, 3)}"
            )
            yield Judged(Severity.ATTENTION, says, command=f"lake abort {one.id}")
            continue
        due = None if one.expires is None else one.expires.timestamp()
        if one.state == "open" and due is not None and overdue(due, signs.now, DAILY) is not None:
            says = (
                f"transaction {one.id} of {one.author} has been open for longer than it may, and no agent ended "
                f"it; it holds {counted(len(one.pools), 'branch', 'branches')}"
            )
            yield Judged(Severity.ATTENTION, says, due, f"lake abort {one.id}")


def _list_of_pools(signs: LakeSigns) -> Iterator[Judged]:
    if signs.checkpoint is None:
        return
    policy = policy_of(Settings({}))
    first, full = signs.checkpoint.first, signs.checkpoint.full
    dues = [time for time in (None if first is None else first + policy.age, full) if time is not None]
    if dues and full is not None and overdue(min(dues), signs.now, HOURLY) is not None:
        says = (
            f"the list of pools has no checkpoint for {policy.entries:,} entries; each command reads them all"
        )
        yield Judged(Severity.ATTENTION, says, min(dues), f"lake checkpoint {shlex.quote('lake:pools')}")


LAKE_KINDS: tuple[LakeKind, ...] = (
    LakeKind("unseen", "a part that the doctor could not see", _unseen),
    LakeKind("clocks", "clocks of this machine and of the store that differ", _clocks),
    LakeKind("create-only", "a store that overwrites, or a lock that is missing", _creates),
    LakeKind("agent", "an agent that has not run although work waits", _agents),
    LakeKind("stopped", "no agent has run since pools were written to", _stopped),
    LakeKind("dropped", "dropped pools whose grace time is over", _dropped),
    LakeKind(
        "transaction",
        "a transaction over pools that is open for too long or damaged, or whose commit died",
        _transactions,
    ),
    LakeKind("pools", "the list of pools without a checkpoint", _list_of_pools),
)
"""Every kind of finding about the lake."""
