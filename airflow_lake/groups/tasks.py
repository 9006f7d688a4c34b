"""What the three tasks of every agent do: find, run, report.  They run in workers; the decisions are lake_core's.

`find` hands out packs of work, `run` does one pack, `report` says what was done and fails if something failed.
One piece of work that fails does not hold back the others of its pack, and their results are kept.  The packs are
objects of the lake; between tasks goes of each only its title, its name, and that of its lake.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from airflow_lake.assets import event_of, lake_asset, withhold
from airflow_lake.effects import Effect, done_work, planned_work
from airflow_lake.groups.config import request_of
from airflow_lake.groups.pack import pack
from airflow_lake.groups.question import put_off_by
from airflow_lake.reach import lake_name, open_lake, open_spark

if TYPE_CHECKING:
    from lake_core.lake import Lake
    from spark_apps.packs import Outcome

log = logging.getLogger(__name__)

Packs = Sequence[Mapping[str, Any]]
RESULT = "return_value"
PUT_OFF = "put_off"
MAX_PUT_OFF = 1000
"""Pools that were put off and that a report names at most; Airflow keeps what goes between tasks."""


def find(
    agent: str,
    config: Mapping[str, Any],
    params: Mapping[str, Any] | None,
    *,
    task: Any = None,
    **also: Any,
) -> list[dict[str, Any]]:
    """The packs of work that the agent finds; `also` are arguments of its own `find`.

    What the agent puts off goes to the report beside the packs, as an XCom of `task`: no task is mapped for it.
    """
    request = request_of(config, params)
    request["lake"] = lake_name(request["lake"])
    opened = cache(open_lake)
    work = import_module(f"lake_core.agents.{agent}.run").find(request, open_lake=opened, **also)
    if task is not None:
        task.xcom_push(PUT_OFF, [one for one in work if one.get("put_off")][:MAX_PUT_OFF])
    return keep(opened(request["lake"]), request["lake"], [one for one in work if not one.get("put_off")])


def keep(lake: Lake, name: str, all_work: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The packs of this work, kept as objects of the lake of that name: what goes between tasks of each."""
    from lake_core.agents.packs import write_packs

    packs = pack(all_work)
    written = write_packs(lake, [part["all_work"] for part in packs])
    return [
        {"title": part["title"], "lake": name, "pack": object_name}
        for part, object_name in zip(packs, written, strict=True)
    ]


def work_of(packs: Packs, *, opened: Callable[[str], Lake] = open_lake) -> list[dict[str, Any]]:
    """All the work in packs; `opened` opens their lake.  Raises NotFound, Corrupt, Unavailable."""
    from lake_core.agents.packs import read_packs

    if not packs:
        return []
    parts = read_packs(opened(packs[0]["lake"]), [part["pack"] for part in packs])
    return [work for part in parts for work in part]


def put_off_by_find(task: Any, find: str) -> list[dict[str, Any]]:
    """What the task `find` put off, by its id; none if it failed."""
    return list(task.xcom_pull(task_ids=find, key=PUT_OFF) or ())


def planned(agent: str, packs: Packs) -> list[Effect]:
    """What packs ask for; nothing if they cannot be read, which the task itself will say."""
    from lake_core.errors import LakeError

    try:
        return planned_work(work_of(packs), agent=agent)
    except LakeError as error:
        log.debug("no lineage of %s: %s", packs, error)
        return []


def run(
    agent: str, packs: Packs, config: Mapping[str, Any], context: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The results of packs, which are done in this task.

    Raises the first failure after all its work was tried; one that may pass comes first, so that Airflow tries
    again.
    """
    from spark_apps.packs import carry_out

    opened = cache(open_lake)
    context["task"].effects = effects = []
    outcome = carry_out(
        agent,
        work_of(packs, opened=opened),
        open_lake=opened,
        open_spark=open_spark(packs[0]["lake"], config["spark"], conf=config["spark_conf"]),
        done=lambda work, result: effects.extend(done_work(work, result, agent=agent)),
    )
    return results_of(outcome, context)


def results_of(outcome: Outcome, context: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The results, if nothing failed; otherwise raises the failure, and keeps the results for the report."""
    results = outcome.results
    if outcome.failures:
        context["ti"].xcom_push(RESULT, results)
        outcome.raise_failure()
    return results


def report(
    agent: str,
    packs: Packs | None,
    results: Sequence[Any],
    config: Mapping[str, Any],
    params: Mapping[str, Any] | None,
    put_off: Sequence[Mapping[str, Any]] | None = None,
    answer: Any = None,
) -> dict[str, int]:
    """The totals.  `put_off`: what `find` put off; `answer`: that of a person who was asked, if one was.

    Raises Incomplete if something failed.
    """
    flat = _each(results)
    task = import_module(f"lake_core.agents.{agent}.report").report
    all_work = None if packs is None else [*put_off_by(answer, work_of(packs)), *(put_off or ())]
    if agent == "ingest":  # it looks at the sources again, for what is parked
        request = request_of(config, params)
        request["lake"] = lake_name(request["lake"])
        return dict(task(request, all_work, flat, open_lake=open_lake))
    return dict(task(all_work, flat))


def _each(results: Sequence[Any]) -> list[Any]:
    """The results of all packs, one by one; a pack that failed may have none."""
    return [one for part in results for one in (part if isinstance(part, list) else [part]) if one]


def announce(
    results: Sequence[Mapping[str, Any]],
    config: Mapping[str, Any],
    params: Mapping[str, Any] | None,
    events: Any,
) -> None:
    """Emit an event of a pool's asset for each load that committed something; `events` are those of an alias."""
    request = request_of(config, params)
    for result in results:
        if result.get("version") is not None:
            asset = lake_asset(
                result["pool"], lake=request["lake"] or "", branch=request.get("branch") or "main"
            )
            events.add(asset, extra=event_of(result))


def announce_partitions(
    assets: Mapping[str, Any],
    results: Sequence[Any],
    config: Mapping[str, Any],
    params: Mapping[str, Any] | None,
    keys: Sequence[str],
    context: Any,
) -> None:
    """Emit events of the pools in which the run committed: one for each partition, one without if `keys` is empty.

    `assets`, by pool, are outlets of the task.  They are of the lake and the branch that the group names; if the
    run names others, no event is emitted.
    """
    request, asked = config["request"], request_of(config, params)
    is_there = all(
        (request.get(name) or usual) == (asked.get(name) or usual)
        for name, usual in (("lake", ""), ("branch", "main"))
    )
    done = {one["pool"]: one for one in _each(results) if one.get("version") is not None} if is_there else {}
    withhold(context["task"], [asset for pool, asset in assets.items() if pool not in done])
    for pool, asset in assets.items():
        if pool in done:
            event = context["outlet_events"][asset]
            event.extra = event_of(done[pool])
            event.add_partitions(list(keys))
