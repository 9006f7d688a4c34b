"""The tasks of every agent: find, run, report.  They run in workers; log_lake has the decisions.

`find` hands out packs of work, `run` does one pack, `report` says what was done and fails if something failed.
If a piece of work fails, the others of its pack are still done, and their results are kept.  Packs are objects
of the lake; tasks pass each other only a pack's title, its name, and the name of its lake.

Agents that load also have `announce`.  Airflow emits the events of a task only if it succeeds, so what a task
`run` committed before it failed has no event yet.  Such results go to `announce` (`UNANNOUNCED`), which succeeds
even if others failed.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from airflow_lake.assets import PoolEvent, lake_asset
from airflow_lake.effects import Effect, done_work, planned_work
from airflow_lake.groups.bounds import Bounds
from airflow_lake.groups.config import request_of
from airflow_lake.groups.pack import pack
from airflow_lake.groups.question import put_off_by
from airflow_lake.reach import lake_name, open_lake, open_spark
from airflow_lake.tries import tell_of_tries
from lake_core.errors import Corrupt, InvalidInput
from lake_core.naming import MAIN

if TYPE_CHECKING:
    from log_lake.agents.agent import Agent
    from log_lake.agents.driver import Outcome
    from log_lake.agents.work import Result, Work
    from log_lake.lake import Lake

log = logging.getLogger(__name__)

Packs = Sequence[Mapping[str, Any]]
RESULT = "return_value"
PUT_OFF = "put_off"
UNANNOUNCED = "unannounced"
"""The key of the XCom of a task `run`: results whose events it has not emitted.  Airflow forgets it in a retry."""
MAX_PUT_OFF = 1000
"""The most deferred pools that a report names; Airflow stores the values that tasks pass to each other."""


def find(
    agent: str,
    config: Mapping[str, Any],
    params: Mapping[str, Any] | None,
    *,
    task: Any = None,
    own_pools: bool = False,
    bounds: Bounds | None = None,
    conf: Mapping[str, Any] | None = None,
    **also: Any,
) -> list[dict[str, Any]]:
    """Returns the packs of work that the agent finds; `also` are further arguments of `driver.find`.

    `own_pools`: if the group names pools, the agent also looks at the lake's own pools.  `bounds`: what a run
    with this `conf` may name.  Deferred pools go to the report as a separate XCom of `task`, without a mapped
    task, and are recorded as jobs.
    """
    from log_lake.agents import driver
    from log_lake.agents.put_off_jobs import record_put_off
    from log_lake.agents.request import with_own_pools
    from log_lake.agents.work import encoded

    request = request_of(config, params)
    request["lake"] = lake_name(request["lake"])
    opened = cache(open_lake)
    if bounds is not None:
        bounds.check(request, params=params, conf=conf or {}, opened=opened, environ=os.environ)
    # pools that the group names are named by each run, not by a person
    recurring = not (params or {}).get("pools")
    if own_pools and recurring and request.get("branch", MAIN) == MAIN:
        request["pools"] = with_own_pools(opened(request["lake"]), request["pools"])
    handed = driver.find(agent, request, open_lake=opened, recurring=recurring, **also)
    if not request["dry_run"]:
        record_put_off(opened(request["lake"]), handed.put_off, agent=agent)
    if task is not None:
        task.xcom_push(PUT_OFF, [encoded(one) for one in handed.put_off[:MAX_PUT_OFF]])
    return keep(opened(request["lake"]), request["lake"], handed.work)


def keep(lake: Lake, name: str, all_work: Sequence[Work]) -> list[dict[str, Any]]:
    """Writes the packs of this work as objects of the lake with that name.  Returns the values that tasks pass to
    each other for each pack.

    Each piece of work gets an identity of its own, so that a report does not confuse its result with that of
    other work.
    """
    from msgspec.structs import replace

    from log_lake.agents.packs import write_packs
    from log_lake.agents.work import encoded

    plan = lake.context.ids.new()
    packs = pack([replace(work, piece=f"{plan}:{number}") for number, work in enumerate(all_work)])
    written = write_packs(lake, [[encoded(work) for work in part.all_work] for part in packs])
    return [
        {"title": part.title, "lake": name, "pack": object_name}
        for part, object_name in zip(packs, written, strict=True)
    ]


def named_lake(config: Mapping[str, Any], params: Mapping[str, Any] | None) -> str:
    """Returns the name of the lake from the group, or from its run with these `params`.  Raises
    InvalidInput."""
    return lake_name(request_of(config, params if config.get("takes_params") else None)["lake"])


def work_of(agent: str, packs: Packs, *, named: str, opened: Callable[[str], Lake] = open_lake) -> list[Any]:
    """Returns all the work in these packs.  `named` is the lake that the run names; `opened` opens it.

    Raises InvalidInput if the packs are of another lake, NotFound, Corrupt, Unavailable.
    """
    from log_lake.agents.driver import agent_of
    from log_lake.agents.packs import read_packs

    if not packs:
        return []
    check_lake(packs, named=named)
    parts = read_packs(opened(named), [part["pack"] for part in packs])
    decoded = agent_of(agent).decoded_work
    all_work = [decoded(work) for part in parts for work in part]
    if other := next((one.lake for one in all_work if one.lake != named), None):
        raise Corrupt(
            f"{packs[0]['pack']}: not work of the lake {named!r}, but of {other!r}; clear the task `find`"
        )
    return all_work


def check_lake(packs: Packs, *, named: str) -> None:
    """Raises InvalidInput unless the packs are of the lake `named`, which the run names.

    In Airflow some people may edit the values that tasks pass to each other, but may not name a lake
    (`airflow_lake.allowed`).
    """
    if other := next((pack["lake"] for pack in packs if pack["lake"] != named), None):
        raise InvalidInput(
            f"the work that `find` handed over is of the lake {other!r}, which was not opened; the run names "
            f"{named!r}: clear the task `find`"
        )


def put_off_by_find(task: Any, find: str) -> list[dict[str, Any]]:
    """Returns the pools that the task `find`, in the same mapped group as `task`, deferred; none if it
    failed."""
    return list(task.xcom_pull(task_ids=find, key=PUT_OFF, map_indexes=task.map_index) or ())


def check_any(packs: Packs) -> None:
    """Raises AirflowSkipException if there is no work.

    In Airflow 3.3.2 an earlier task cannot skip tasks of a mapped group (ShortCircuitOperator), so the task
    skips itself.
    """
    from airflow.sdk.exceptions import AirflowSkipException

    if not packs:
        raise AirflowSkipException("there is no work")


def check_wanted(task: Any, find: str) -> None:
    """Raises AirflowSkipException if the task `find` was skipped: then the DAG does not want this group's work.

    Raises Incomplete if `find` never ran, because a task before it failed.
    """
    from airflow.sdk.exceptions import AirflowSkipException

    from lake_core.errors import Incomplete

    index = task.map_index if task.map_index >= 0 else None
    states = task.get_task_states(dag_id=task.dag_id, task_ids=[find], run_ids=[task.run_id], map_index=index)
    state = states.get(task.run_id, {}).values()
    if "skipped" in state:
        raise AirflowSkipException("the task `find` was skipped, so there is nothing to report")
    if "upstream_failed" in state:
        raise Incomplete("nothing was done, because a task before this group failed")


def planned(
    agent: str, packs: Any, config: Mapping[str, Any], *, params: Mapping[str, Any] | None
) -> list[Effect]:
    """Returns the effects that packs ask for, in a run with these `params`.

    Returns none if the packs cannot be read, or are not of the lake that the run names (the task itself reports
    that), or if Airflow could not pass them on.
    """
    from lake_core.errors import LakeError

    if not isinstance(packs, list) or not all(isinstance(pack, Mapping) for pack in packs):
        return []
    try:
        return planned_work(work_of(agent, packs, named=named_lake(config, params)), agent=agent)
    except LakeError as error:
        log.debug("no lineage of %s: %s", packs, error)
        return []


def run(
    agent: str,
    packs: Packs,
    config: Mapping[str, Any],
    context: Mapping[str, Any],
    *,
    to_announce: bool = False,
    does: Agent[Any, Any] | None = None,
) -> list[dict[str, Any]]:
    """Does the work of packs in this task, and returns the results.

    If they are `to_announce`, each result is passed on at once, because the next piece of work may end the
    process.  `does` does the work; None: the agent with that name.

    After all work was tried, it raises the first failure.  A failure that may pass comes first, so that Airflow
    retries.  An error of another library, such as Spark's, may pass: a retry may get another Spark.
    """
    from spark_apps.packs import carry_out

    tell_of_tries(context.get("ti"))
    named = named_lake(config, context.get("params"))
    check_lake(packs, named=named)
    opened = cache(open_lake)
    if to_announce:
        announce_later((), context)  # what an earlier try committed
    context["task"].effects = effects = []
    results: list[Result] = []

    def done(work: Work, result: Result) -> None:
        effects.extend(done_work(work, result, agent=agent))
        results.append(result)
        if to_announce and result.wrote.version is not None:
            announce_later(results, context)

    outcome = carry_out(
        agent,
        work_of(agent, packs, named=named, opened=opened),
        open_lake=opened,
        open_spark=open_spark(named, config["spark"], conf=config["spark_conf"]),
        does=does,
        done=done,
    )
    return results_of(outcome, context)


def announce_later(results: Iterable[Result], context: Mapping[str, Any]) -> None:
    """Passes to the task `announce` what was committed: only the part of each result that its event needs.

    Airflow deletes XComs before a retry.  An interval that an earlier try replaced then needs no change, so
    nothing is committed, and its event would be lost.  So these values are also stored for later tries.
    """
    kept = context.get("task_state_store")
    by_pool = {one["pool"]: one for one in (kept.get(UNANNOUNCED) or () if kept is not None else ())}
    by_pool |= {event.pool: event.values for one in results if (event := _event_of(one)) is not None}
    committed = list(by_pool.values())
    if kept is not None and committed:
        kept.set(UNANNOUNCED, committed)
    context["ti"].xcom_push(UNANNOUNCED, committed)


def _event_of(result: Result) -> PoolEvent | None:
    """Returns the event of a load's result; None if it committed nothing."""
    from log_lake.lake.results import LoadResult

    return PoolEvent.of(result.pool, result) if isinstance(result, LoadResult) else None


def results_of(outcome: Outcome, context: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the results if nothing failed.  Otherwise raises the failure, and keeps the results for the
    report."""
    from log_lake.agents.work import encoded

    results = [encoded(one) for one in outcome.results]
    if outcome.failures:
        context["ti"].xcom_push(RESULT, results)
        outcome.raise_failure()
    return results


def report(
    agent: str,
    packs: Packs | None,
    results: Sequence[Any],
    config: Mapping[str, Any],
    *,
    params: Mapping[str, Any] | None = None,
    put_off: Sequence[Mapping[str, Any]] | None = None,
    answer: Any = None,
) -> dict[str, int]:
    """Reports the results, and returns the totals.  `put_off`: the pools that `find` deferred.  `answer`: the
    answer of a person, if one was asked.

    Raises Incomplete if something failed, and InvalidInput if the packs are not of the lake that the run names.
    """
    from lake_core.records.decoders import converted
    from log_lake.agents import driver
    from log_lake.agents.put_off_jobs import record_put_off
    from log_lake.agents.work import Found, PutOff

    done = [driver.agent_of(agent).decoded_result(one) for one in _each(results)]
    if packs is None:
        return driver.report(agent, None, done)
    named = named_lake(config, params)
    handed = put_off_by(answer, work_of(agent, packs, named=named))
    if handed.put_off:
        record_put_off(open_lake(named), handed.put_off, agent=agent)
    before = [converted(one, PutOff) for one in put_off or ()]
    return driver.report(agent, Found(handed.work, [*handed.put_off, *before]), done)


def _each(results: Sequence[Any]) -> list[Any]:
    """Returns the results of all packs, one by one; a pack that failed may have none."""
    return [one for part in results for one in (part if isinstance(part, list) else [part]) if one]


def announce(committed: Sequence[PoolEvent], request: Mapping[str, Any], events: Any) -> None:
    """Emits the event of each pool's asset; `events` are the events of an alias of Airflow, to which they are
    added."""
    for event in committed:
        events.add(_asset_of(event.pool, request), extra=event.extra)


def announce_partitions(
    committed: Sequence[PoolEvent],
    request: Mapping[str, Any],
    keys: Sequence[str],
    outlets: Sequence[Any],
    events: Any,
) -> list[Any]:
    """Emits asset events of the pools to which the run committed: one for each partition with these keys.

    Without `keys` it is one event without a partition.  Returns the `outlets` that have events: for each other
    outlet Airflow would make an event without a partition.
    """
    announced = []
    for event in committed:
        asset = _asset_of(event.pool, request)
        if asset not in outlets:  # a parameter of the run names another lake, branch or pool
            log.warning("%s: no event: the config of the group does not name this pool", asset.uri)
            continue
        events[asset].extra = event.extra
        if keys:
            events[asset].add_partitions(list(keys))
        announced.append(asset)
    return announced


def _asset_of(pool: str, request: Mapping[str, Any]) -> Any:
    return lake_asset(pool, lake=request["lake"] or "", branch=request.get("branch") or MAIN)


def unannounced(task: Any, run: str) -> list[PoolEvent]:
    """Returns the events of all tasks `run`, by this task id, that are not emitted yet; `task` is the calling
    task.

    Raises Corrupt for values that are not events.
    """
    from log_lake.agents.agent import decoded

    parts = [part for part in task.xcom_pull(task_ids=[run], key=UNANNOUNCED) if part]
    return [decoded(one, PoolEvent, "an event of a pool") for one in _each(parts)]
