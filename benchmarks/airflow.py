"""Airflow: idle runs over 1,000 pools, mapped tasks, parsing, a batch of files, the trigger, the web view.

Everything is on local files.  `floor` lines are Airflow without the lake: an empty DAG of the same three tasks,
an empty DAG file, the view of one pool.  In lines of runs, `to the first` is the floor's seconds divided by
those of the line: the share that Airflow itself takes.  Aims that are missed are printed as MISSED.

AIRFLOW_PARTS: which of idle, work, parse, trigger, batch, view.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks import data
from benchmarks.airflow_runs import POOLS, put_dags
from benchmarks.measure import Measure, run
from lake_core.phrases import human_size

PARTS = tuple(os.environ.get("AIRFLOW_PARTS", "idle,work,parse,trigger,batch,view").split(","))
HERE = "benchmarks.airflow_runs"
IDLE_SECONDS, MAPPED, PARSE_SECONDS, BATCH_SECONDS = 20.0, 64, 0.5, 10.0
EVENT_SECONDS, TRIGGER_BYTES, PAINT_SECONDS = 5.0, 150e6, 1.0
REFERENCES = 100_000


def measures() -> Iterator[Measure]:
    """Yields the lines of all parts; each part begins with its floor."""
    lake, landing = data.fresh("idle"), data.fresh("landing")
    run("build", f"{HERE}:build_idle", lake, landing)
    if "idle" in PARTS:
        yield from _idle(lake)
    if "work" in PARTS:
        yield from _work()
    if "parse" in PARTS:
        yield from _parse(lake)
    if "trigger" in PARTS:
        yield from _trigger(lake)
    if "view" in PARTS:
        yield from _view(lake)
    if "batch" in PARTS:  # the last: it changes the lake
        from benchmarks import airflow_live as live

        with live.whole_airflow(lake) as services:
            yield from live.interval(services)
            for line in live.batches(services, lake, landing):
                yield aimed(line, ("seconds", line.seconds, BATCH_SECONDS))


def aimed(line: Measure, *aims: tuple[str, float, float]) -> Measure:
    """Returns the line with a note that names each missed aim. An aim is (what, measured value, most)."""
    missed = [f"MISSED: {what} {value:,.3g} > {most:,.3g}" for what, value, most in aims if value > most]
    return replace(line, note="; ".join(filter(None, [line.note, *missed])))


def _idle(lake: str) -> Iterator[Measure]:
    whole = run("idle", f"{HERE}:idle", lake, data.fresh("home"))
    said = json.loads(whole.note)
    for number, (name, seconds, processor, mapped, resident) in enumerate(said["rows"]):
        title = "floor: a run of an empty DAG" if not number else name
        note = "" if not number else f"{mapped} mapped tasks"
        yield Measure(title, seconds, POOLS, resident, note, processor, begins=not number)
    for visit in ("first", "second"):
        rows = [row for row in said["rows"] if row[0].endswith(f"{visit} run")]
        seconds, processor, mapped = (sum(row[column] for row in rows) for column in (1, 2, 3))
        note = f"{mapped} mapped tasks, {said['java']}"
        line = Measure(f"all agents, {visit} run", seconds, POOLS * len(rows), whole.peak, note, processor)
        yield aimed(line, ("seconds", seconds, IDLE_SECONDS), ("mapped tasks", mapped, 0))


def _work() -> Iterator[Measure]:
    lake, landing = data.fresh("work"), data.fresh("work-landing")
    run("build", f"{HERE}:build_work", lake, landing)
    whole = run("work", f"{HERE}:work", lake, data.fresh("home"))
    for number, (agent, seconds, mapped) in enumerate(json.loads(whole.note)):
        how = "1 task for all pools, not mapped" if agent == "checkpoint" else f"{mapped} mapped tasks"
        line = Measure(f"{agent}, work in {POOLS:,}", seconds, POOLS, whole.peak, how, begins=not number)
        yield aimed(line, ("mapped tasks", mapped, MAPPED))


def _parse(lake: str) -> Iterator[Measure]:
    folder = put_dags(Path(data.fresh("parsed")))
    names = [
        file.stem for file in sorted(folder.glob("*.py")) if file.stem not in ("__init__", "bench_empty")
    ]
    files = [str(folder / f"{name}.py") for name in ("bench_empty", *names)]
    whole = run("parse", f"{HERE}:parse", json.dumps(files), lake, data.fresh("home"))
    titles = ("floor: parse an empty DAG", *(f"parse {name}.py" for name in names))
    for number, (seconds, processor, said) in enumerate(json.loads(whole.note)):
        line = Measure(titles[number], seconds, 1, whole.peak, said, processor, begins=not number)
        yield aimed(line, ("seconds", seconds, PARSE_SECONDS))


def _trigger(lake: str) -> Iterator[Measure]:
    for number, triggers in enumerate((1, POOLS)):
        line = run("trigger", f"{HERE}:watch", lake, data.fresh("home"), str(triggers))
        said = json.loads(line.note)
        delays = sorted(said["delays"])
        note = (
            f"{said['loops']} loop; {delays[0]:.1f} to {delays[-1]:.1f} s; "
            f"all had begun after {said['began']:.1f} s; {human_size(said['before'])} are Airflow's"
        )
        title = f"commit to event, {triggers:,} trigger{'s' * (triggers > 1)}"
        line = replace(line, name=title, note=note, peak=said["peak"], begins=not number)
        memory = ("MB", said["peak"] / 1e6, TRIGGER_BYTES / 1e6)
        yield aimed(line, ("seconds", delays[-1], EVENT_SECONDS), memory, ("loops", said["loops"], 1))


def _view(lake: str) -> Iterator[Measure]:
    from benchmarks import airflow_live as live
    from log_lake.lake import Lake

    one, references = data.fresh("one"), data.fresh("references")
    Lake.create(one).create_pool("p", key="k")
    run("build", "benchmarks.opening:build", references, str(REFERENCES))
    lakes = {"one_pool": one, "thousand_pools": lake, "references_100k": references}
    for line in live.pages(lakes):
        yield aimed(line, ("seconds", line.seconds, PAINT_SECONDS))
