"""The kinds of findings about a pool, as a table: each row has a name and the function that judges the signs;
pure.

The pool's settings say when work of an agent is due. Work is late if it is not done `late` seconds after that:
an agent runs each hour or once a day, and `upkeep.window` may open only once a day. After `ILL_AFTER` times
`late` seconds the pool is ill. A pool that is paused by its settings is not late, because a person chose that.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lake_core.errors import Corrupt, InvalidInput
from lake_core.phrases import counted, human_duration, human_size
from log_lake.agents.jobs import DIED, DONE, FAILED, Job
from log_lake.agents.roster import AGENTS, Purpose
from log_lake.doctor import fights
from log_lake.doctor.dues import checkpoint_due, depth_due, garbage_due, purge_due, tombstones_due
from log_lake.doctor.health_finding import HealthFinding, Severity
from log_lake.doctor.signs import PoolSigns

DAY = 86_400.0
HOURLY, DAILY = DAY, 2 * DAY
"""Seconds after which due work of an agent is late, by how often the agent runs."""
ILL_AFTER = 7
"""A pool is ill if work is not done after this many times the span after which it is late."""
ERASED_WITHIN = 30 * DAY
"""Seconds in which an erasure must end: laws give about a month."""
CLOCK_AHEAD = 900.0
"""Seconds by which a writer's clock may be ahead.  S3 refuses every request of a machine whose clock is wrong by
more (`journal.limits`)."""
LEASE_HOLDS = 0.1
"""The doctor reports an old lease if it keeps removed objects of more than this share of a pool's bytes."""
BEHIND_RUNS = 2
"""How many compactions in a row must leave a pool too deep before it is a finding. One may just have met many
loads."""


@dataclass(frozen=True)
class Judged:
    """What a judge found, before the finding gets its kind and its pool."""

    severity: Severity
    says: str
    since: float | None = None
    command: str = ""


@dataclass(frozen=True)
class PoolKind:
    """A kind of findings: its name; what it finds; the agent whose work it is about, "" for none; the judge.

    `judge` is the function that decides from the signs of a pool.  It raises InvalidInput if it needs a setting
    that cannot be used; the kind `settings` finds such settings.
    """

    name: str
    says: str
    judge: Callable[[PoolSigns], Iterator[Judged]]
    agent: str = ""


def findings_of(signs: PoolSigns) -> list[HealthFinding]:
    """Returns the findings of a pool, worst first, then in the order of the table."""
    findings: list[HealthFinding] = []
    for kind in POOL_KINDS:
        try:
            if kind.agent and paused_by(signs, kind.agent):
                continue
            unnamed = list(kind.judge(signs))
        except InvalidInput:  # the row `settings` names it
            continue
        findings += [HealthFinding(kind=kind.name, pool=signs.config.name, **vars(one)) for one in unnamed]
    return sorted(findings, key=lambda one: -one.severity)


def paused_by(signs: PoolSigns, agent: str) -> str:
    """Returns the setting by which an agent leaves the pool alone; "" if the agent works on it."""
    if signs.settings["agents"] == "paused":
        return "agents"
    is_upkeep = AGENTS[agent].purpose is Purpose.UPKEEP
    return "upkeep" if is_upkeep and signs.settings["upkeep"] == "paused" else ""


def overdue(due: float, now: float, late: float) -> Severity | None:
    """Returns how bad it is that due work is not done; None if it is not late yet."""
    if now - due <= late:
        return None
    return Severity.ILL if now - due > ILL_AFTER * late else Severity.ATTENTION


def _command(words: str, signs: PoolSigns, *options: str) -> str:
    return " ".join([words, shlex.quote(signs.config.name), *options])


def _unseen(signs: PoolSigns) -> Iterator[Judged]:
    for part, error in signs.failures.items():
        is_damage = isinstance(error, Corrupt)
        severity = Severity.ILL if is_damage else Severity.ATTENTION
        command = _command("lake fsck" if is_damage else "lake doctor", signs)
        yield Judged(severity, f"not seen: {part}: {error}", command=command)


def _closed(signs: PoolSigns) -> Iterator[Judged]:
    if signs.closed:
        says = "a drop or a restore of it was interrupted, and it refuses all work"
        yield Judged(Severity.ILL, says, command=_command("lake restore", signs))


def _settings(signs: PoolSigns) -> Iterator[Judged]:
    for fault in fights.unusable(signs.config):
        yield Judged(Severity.ILL, f"agents cannot use it: {fault}", command=_command("lake show", signs))


def _fights(signs: PoolSigns) -> Iterator[Judged]:
    for fight in fights.fights(signs.config):
        yield Judged(Severity.ATTENTION, fight, command=_command("lake show", signs))
    if signs.state and signs.state.expire_fault and signs.settings["expire.age"] is not None:
        yield Judged(
            Severity.ATTENTION,
            f"no record expires by its age: {signs.state.expire_fault}",
            command=_command("lake describe", signs),
        )
    for name in signs.state.idle_filters if signs.state else ():
        says = f"{name} hides nothing: no record ever had a field that it names"
        yield Judged(Severity.ATTENTION, says, command=_command("lake describe", signs))


def _paused(signs: PoolSigns) -> Iterator[Judged]:
    for name, says in (
        ("agents", "every agent leaves it alone (agents=paused)"),
        ("upkeep", "upkeep leaves it alone, loads go on (upkeep=paused)"),
    ):
        if signs.settings[name] == "paused":
            yield Judged(Severity.NOTE, says, command=_command("lake set", signs, f"{name}=active"))


def _depth(signs: PoolSigns) -> Iterator[Judged]:
    since = depth_due(signs)
    if signs.state is None or since is None:
        return
    depth, allowed = len(signs.state.arrivals), signs.settings.allowed_depth
    severity = overdue(since, signs.now, HOURLY)
    if severity is not None:
        says = f"{counted(depth, 'object overlaps', 'objects overlap')}; the policy allows {allowed:,}"
        yield Judged(severity, says, since, _command("lake compact", signs))


def _behind(signs: PoolSigns) -> Iterator[Judged]:
    allowed = signs.settings.allowed_depth
    if signs.state is None or len(signs.state.arrivals) <= allowed:
        return
    runs = [job for job in signs.jobs if job.agent == "compact" and job.state == DONE][:BEHIND_RUNS]
    left = [job.figures.get("depth_after", 0) for job in runs]
    if len(runs) == BEHIND_RUNS and min(left) > allowed:
        says = (
            f"compaction falls behind the loads: its last runs left a depth of {left[1]:,} and {left[0]:,}; the "
            f"policy allows {allowed:,}. Load fewer, larger batches, or compact more often"
        )
        yield Judged(Severity.ATTENTION, says, runs[-1].began.timestamp(), _command("lake compact", signs))


def _tombstones(signs: PoolSigns) -> Iterator[Judged]:
    since = tombstones_due(signs)
    if signs.state is None or since is None:
        return
    severity = overdue(since, signs.now, HOURLY)
    if severity is not None:
        count = counted(len(signs.state.deletes) + len(signs.state.replaces), "delete")
        says = f"{count} not applied; the first was due {human_duration(signs.now - since)} ago"
        yield Judged(severity, says, since, _command("lake tombstones", signs))


def _erasures(signs: PoolSigns) -> Iterator[Judged]:
    if not signs.erasures:
        return
    began, now = signs.erasures[0], signs.now
    if now - began > DAILY:
        severity = Severity.ILL if now - began > ERASED_WITHIN else Severity.ATTENTION
        count = counted(len(signs.erasures), "erasure is", "erasures are")
        says = f"{count} pending; the first began {human_duration(now - began)} ago"
        yield Judged(severity, says, began, _command("lake erasures", signs))


def _checkpoint(signs: PoolSigns) -> Iterator[Judged]:
    due = checkpoint_due(signs)
    if signs.tail is None or signs.tail.first is None or due is None:
        return
    severity = overdue(due, signs.now, HOURLY)
    if severity is not None:
        count = counted(signs.tail.entries, "entry", "entries")
        ago = human_duration(signs.now - signs.tail.first)
        says = f"{count} since the newest checkpoint, the first {ago} ago"
        yield Judged(severity, says, due, _command("lake checkpoint", signs))


def _purge(signs: PoolSigns) -> Iterator[Judged]:
    due = purge_due(signs)
    if signs.tail is None or due is None:
        return
    severity = overdue(due, signs.now, DAILY)
    if severity is not None:
        count = counted(signs.tail.purgeable, "entry is", "entries are")
        says = f"{count} older than history.keep ({signs.settings.text('history.keep')})"
        yield Judged(min(severity, Severity.ATTENTION), says, due, _command("lake purge", signs))


def _garbage(signs: PoolSigns) -> Iterator[Judged]:
    garbage = signs.garbage
    if garbage is None:
        return
    due, began = garbage_due(signs), garbage.vacuum_began
    if due is not None and overdue(due, signs.now, DAILY) is not None:
        count = counted(garbage.deletable, "removed object")
        says = f"{count} of {human_size(garbage.size)} could be deleted, and nothing keeps them"
        yield Judged(Severity.ATTENTION, says, due, _command("lake vacuum", signs))
    if began is not None and overdue(began, signs.now, DAILY) is not None:
        says = "a vacuum was interrupted, and no other has ended it"
        yield Judged(Severity.ATTENTION, says, began, _command("lake vacuum", signs))


def _leases(signs: PoolSigns) -> Iterator[Judged]:
    garbage = signs.garbage
    if garbage is None or garbage.lease_began is None or signs.state is None:
        return
    if signs.now - garbage.lease_began > DAY and garbage.leased > LEASE_HOLDS * signs.state.live:
        says = (
            f"a lease of {garbage.holder} keeps {human_size(garbage.leased)} of removed objects, beside "
            f"{human_size(signs.state.live)} that are in use; end that process if it hangs"
        )
        yield Judged(Severity.ATTENTION, says, garbage.lease_began, _command("lake leases", signs))


def _parked(signs: PoolSigns) -> Iterator[Judged]:
    if signs.parked:
        count = len(signs.parked)
        says = f"{counted(count, 'file')} cannot be loaded, and {'is' if count == 1 else 'are'} skipped"
        yield Judged(Severity.ATTENTION, says, signs.parked[0], _command("lake parked", signs))


def _publication(signs: PoolSigns) -> Iterator[Judged]:
    lag = signs.publication
    if lag is None or lag.since is None or overdue(lag.since, signs.now, HOURLY) is None:
        return
    behind = counted(lag.transactions, "transaction")
    says = (
        f"the published table is {behind} behind"
        if lag.is_published
        else "publish.iceberg is set, and no table is there"
    )
    yield Judged(Severity.ATTENTION, says, lag.since, _command("lake publish", signs))


def _coverage(signs: PoolSigns) -> Iterator[Judged]:
    if signs.coverage is None or signs.settings["agents"] == "paused":
        return
    late = [due for due in signs.coverage.dues if due <= signs.now]
    if late:
        severity = Severity.ILL if signs.now - late[0] > ILL_AFTER * DAY else Severity.ATTENTION
        count = counted(len(late), f"{signs.coverage.every} is", f"{signs.coverage.every}s are")
        says = f"{count} late; the first was due {human_duration(signs.now - late[0])} ago"
        yield Judged(severity, says, late[0], _command("lake coverage", signs, "--gaps"))


def _jobs(signs: PoolSigns) -> Iterator[Judged]:
    by_agent: dict[str, list[Job]] = {}
    for job in signs.jobs:
        if job.state in (DONE, FAILED, DIED):
            by_agent.setdefault(job.agent, []).append(job)
    for agent, jobs in sorted(by_agent.items()):
        failed = _first_failures(jobs)
        if failed:
            severity = Severity.ILL if len(failed) >= 3 else Severity.ATTENTION
            times = "" if len(failed) == 1 else f" {len(failed)} times, one after another"
            newest = failed[0]
            why = newest.error or "its process ended without a word"
            says = f"{agent} {'failed' if newest.state == FAILED else 'died'}{times}: {why}"
            command = _command("lake jobs", signs, f"--agent {agent}")
            yield Judged(severity, says, failed[-1].began.timestamp(), command)


def _first_failures(jobs: Sequence[Job]) -> list[Job]:
    """Returns the newest jobs, up to the newest one that succeeded (exclusive)."""
    done = next((at for at, job in enumerate(jobs) if job.state == DONE), len(jobs))
    return list(jobs[:done])


def _clock(signs: PoolSigns) -> Iterator[Judged]:
    if signs.state is not None and signs.state.ahead > CLOCK_AHEAD:
        ahead = human_duration(signs.state.ahead)
        says = f"the clock of its last writer was {ahead} ahead of the store's; ages count from there"
        yield Judged(Severity.ATTENTION, says, command=_command("lake log", signs, "--limit 5"))


POOL_KINDS: tuple[PoolKind, ...] = (
    PoolKind("unseen", "a part that the doctor could not see", _unseen),
    PoolKind("interrupted", "a drop or restore that did not end", _closed),
    PoolKind("settings", "a setting that agents cannot use", _settings),
    PoolKind("fight", "settings that undo each other", _fights),
    PoolKind("paused", "a pause that a person set", _paused),
    PoolKind("depth", "more objects overlap than the policy allows", _depth, "compact"),
    PoolKind("behind", "compaction does not keep up with loads", _behind, "compact"),
    PoolKind("tombstones", "deletes that are due and not applied", _tombstones, "tombstones"),
    PoolKind("erasure", "an erasure that does not end", _erasures),
    PoolKind("checkpoint", "a checkpoint that is due", _checkpoint, "checkpoint"),
    PoolKind("purge", "history that is older than the policy keeps", _purge, "checkpoint"),
    PoolKind("garbage", "removed objects that nothing keeps", _garbage, "retention"),
    PoolKind("lease", "an old lease that keeps much", _leases),
    PoolKind("parked", "files that cannot be loaded", _parked, "ingest"),
    PoolKind("publication", "a published table that is behind", _publication, "compact"),
    PoolKind("coverage", "intervals that the pool lacks and that are late", _coverage),
    PoolKind("job", "an agent whose last job failed or died", _jobs),
    PoolKind("clock", "a writer whose clock is ahead", _clock),
)
"""Every kind of finding about a pool."""

AGENT_OF = {kind.name: kind.agent for kind in POOL_KINDS if kind.agent}
"""For each kind, the agent whose work it is."""
