"""`lake jobs`: the jobs of the agents, with those that failed or died."""

from __future__ import annotations

import datetime as dt
from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from lake_core.naming import MAIN
from lake_core.phrases import human_duration, human_size, human_time
from log_lake.agents.costs import cost_text
from log_lake.agents.jobs import DONE, Job, list_jobs
from log_lake.cli.opening import open_lake
from log_lake.console.output import print_json, print_table


def jobs(args: Namespace) -> None:
    """Print the jobs of all pools, or of one, newest first.  Raises NotFound for a pool without jobs that does not
    exist."""
    lake = open_lake(args)
    listed = list_jobs(
        lake,
        pool_name=args.pool or "",
        agent=args.agent or "",
        state=args.state or "",
        limit=args.limit,
    )
    if args.pool and not listed:
        lake.pool(args.pool)
    if args.json:
        for job in listed:
            print_json(_plain(job))
        return
    print_table([_row(job) for job in listed], empty="no jobs", right=("took",))


def _plain(job: Job) -> dict[str, Any]:
    times = {"began": _instant(job.began), "ended": _instant(job.ended) if job.ended else None}
    return {**vars(job), **times, "cost": None if job.cost is None else vars(job.cost)}


def _instant(time: dt.datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")


def _pool(job: Job) -> str:
    if not job.pool:
        return "(several)"
    return job.pool if job.branch == MAIN else f"{job.pool}@{job.branch}"


def _text(name: str, value: int) -> str:
    """Returns a figure of a job as text; if its name says that it is a size, as bytes with a unit."""
    return human_size(value) if "size" in name.split("_") or name == "freed" else f"{value:,}"


def figures_text(figures: Mapping[str, int]) -> str:
    """Returns the figures of a job as text: the gain, such as `depth 12 -> 1`, then the other figures.  Zeros and
    unchanged figures are left out."""
    pairs = {name.removesuffix("_before") for name in figures if name.endswith("_before")}
    ends = {f"{name}_{end}" for name in pairs for end in ("before", "after")}
    done = [f"{name} {_text(name, value)}" for name, value in figures.items() if value and name not in ends]
    gained = [
        f"{name} {_text(name, figures[f'{name}_before'])} -> {_text(name, after)}"
        for name in sorted(pairs)
        if (after := figures.get(f"{name}_after")) is not None and after != figures[f"{name}_before"]
    ]
    return ", ".join([*gained, *done])


def _without_figures(job: Job) -> str:
    """Returns the text for a finished job that changed nothing."""
    return "nothing to do" if job.state == DONE else ""


def _row(job: Job) -> dict[str, Any]:
    return {
        "began": human_time(job.began.timestamp()),
        "agent": job.agent,
        "pool": _pool(job),
        "state": job.state,
        "took": "" if job.seconds is None else human_duration(job.seconds),
        "cost": "" if job.cost is None else cost_text(job.cost),
        "result": (job.error or job.why or figures_text(job.figures) or _without_figures(job)).partition(
            "\n"
        )[0],
        "run": "/".join(job.run[name] for name in ("dag", "run", "task") if name in job.run),
    }
