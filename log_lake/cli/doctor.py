"""`lake doctor`: whether the lake is well; the exit status is the verdict."""

from __future__ import annotations

import contextlib
from argparse import Namespace
from typing import Any

from lake_core.phrases import counted, human_duration, human_time, printable
from log_lake.cli.opening import open_lake
from log_lake.console.output import print_json, print_table
from log_lake.console.sink import print_text
from log_lake.doctor.examine import examine
from log_lake.doctor.health_finding import HealthFinding, LakeHealth, PoolHealth, Verdict, verdict_of


def doctor(args: Namespace) -> int:
    """Print findings, worst first, and how many pools are well; returns the verdict as the exit status.

    Raises what reading the list of pools raises.  Then there is no verdict, and the exit status is that of the
    error.
    """
    health = examine(open_lake(args), args.pools, anew=args.anew)
    with contextlib.suppress(BrokenPipeError):  # the status is the verdict, also if the reader has gone
        if args.json:
            _print_json(health)
        else:
            _print(health)
    return health.verdict.value


def _print(health: LakeHealth) -> None:
    rows = [_row(one) for one in health.all_findings]
    if rows:
        print_table(rows, empty="", whole=("pool", "mend"), below="reason")
    print_text(printable(f"{health.verdict.word}: {_summary(health)}") + "\n")


def _row(one: HealthFinding) -> dict[str, Any]:
    return {
        "pool": one.pool or "(the lake)",
        "verdict": one.severity.name.lower(),
        "kind": one.kind,
        "since": "" if one.since is None else human_time(one.since),
        "reason": one.says,
        "mend": one.command,
    }


def _summary(health: LakeHealth) -> str:
    """Returns the number of pools with each verdict, in words.  Also says for how many of them an earlier
    verdict counts, because nothing was written since."""
    counts = health.counts()
    parts = [f"{counts[verdict]:,} {verdict.word}" for verdict in reversed(Verdict) if counts[verdict]]
    earlier = [pool.seen for pool in health.pools if pool.seen < health.now]
    text = counted(len(health.pools), "pool")
    if counts[Verdict.WELL] < len(health.pools):
        text += f": {', '.join(parts)}"
    if earlier:
        text += (
            f"; nothing was written to {len(earlier):,} of them since they were well, at most "
            f"{human_duration(health.now - min(earlier))} ago (--anew looks at them too)"
        )
    return text


def _print_json(health: LakeHealth) -> None:
    """A line for the lake, whose pool is null, then a line for each pool."""
    lake = {"pool": None, "verdict": verdict_of(health.findings).word, "seen": human_time(health.now)}
    print_json(lake | {"findings": [_plain(one) for one in health.findings]})
    for pool in health.pools:
        print_json(_pool(pool))


def _pool(pool: PoolHealth) -> dict[str, Any]:
    return {
        "pool": pool.pool,
        "verdict": pool.verdict.word,
        "seen": human_time(pool.seen),
        "findings": [_plain(one) for one in pool.findings],
    }


def _plain(one: HealthFinding) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "severity": one.severity.name.lower(),
        "since": None if one.since is None else human_time(one.since),
        "says": one.says,
        "command": one.command or None,
    }
