"""The tasks of every agent: find, run, report.  They run in workers; the decisions are log_lake's.

`find` hands out packs of work, `run` does one pack, `report` says what was done and fails if something failed.
One piece of work that fails does not hold back the others of its pack, and their results are kept.  The packs are
objects of the lake; between tasks goes of each only its title, its name, and that of its lake.

Agents that load have `announce` too.  Airflow emits the events of a task only if it succeeds, so what a task `run`
committed before it failed has no event yet.  Such results go to `announce` (`UNANNOUNCED`), which fails for no
failure of others.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

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
"""The most deferred pools that a report names; Airflow keeps what goes between tasks."""


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
    """The packs of work that the agent finds; `also` are those of `driver.find`.

    `own_pools`: if the group names pools, the agent looks at the lake's own ones too.  `bounds`: what a run, which
    has this `conf`, may name.

    Deferred pools go to the report beside the packs, as an XCom of `task`; no task is mapped for them.  It
    is a job that was put off, too.
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
    """The packs of this work, kept as objects of the lake of that name: what goes between tasks of each.

    Each piece of work is told apart from all others, so that a report takes no result of other work for its own.
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
    """The name of the lake that the group names, or its run, which has these `params`.  Raises InvalidInput."""
    return lake_name(request_of(config, params if config.get("takes_params") else None)["lake"])


def work_of(agent: str, packs: Packs, *, named: str, opened: Callable[[str], Lake] = open_lake) -> list[Any]:
    """All the work of an agent in packs of the lake that the run has `named`; `opened` opens it.

    Raises InvalidInput if they are of another lake, NotFound, Corrupt, Unavailable.
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
    """Raises InvalidInput unless the packs are of the lake that the run has `named`.

    Airflow lets some people edit what goes between tasks, who may not name a lake (`airflow_lake.allowed`).
    """
    if other := next((pack["lake"] for pack in packs if pack["lake"] != named), None):
        raise InvalidInput(
            f"the work that `find` handed over is of the lake {other!r}, which was not opened; the run names "
            f"{named!r}: clear the task `find`"
        )


def put_off_by_find(task: Any, find: str) -> list[dict[str, Any]]:
    """The pools that the task `find` deferred, by its id, in the same mapped group as `task`; none if it
    failed."""
    return list(task.xcom_pull(task_ids=find, key=PUT_OFF, map_indexes=task.map_index) or ())


def check_any(packs: Packs) -> None:
    """Raises AirflowSkipException if there is no work.

    Airflow 3.3.2 skips no task of a mapped group for a task before it that says so (ShortCircuitOperator).
    """
    from airflow.sdk.exceptions import AirflowSkipException

    if not packs:
        raise AirflowSkipException("there is no work")


def check_wanted(task: Any, find: str) -> None:
    """Raises AirflowSkipException if the task `find` was skipped: then the DAG wants nothing of the group.

    Raises Incomplete if it never ran, since a task before it failed.
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
    """What packs ask for, in a run that has these `params`.

    Nothing if they cannot be read, or are not of the lake that the run names, which the task itself will say; nor
    if they are no packs yet, because Airflow could not hand them over.
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
    """The results of packs, which are done in this task.

    If they are `to_announce`, each is handed over at once: the next piece of work may end the process.
    `does` does the work; None: the agent of that name.

    Raises the first failure after all its work was tried; one that may pass comes first, so that Airflow tries
    again.  An error that is not ours, such as Spark's, may pass: a retry may have another Spark.
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
    """Hand over, for the task `announce`, what was committed: of each result only what its event says.

    Airflow forgets XComs before a retry.  An interval that an earlier try replaced is then found as it should be,
    so nothing is committed; its event would be lost.  So what is handed over is kept for later tries too.
    """
    kept = context.get("task_state_store")
    by_pool = {one["pool"]: one for one in (kept.get(UNANNOUNCED) or () if kept is not None else ())}
    by_pool |= {event.pool: event.values for one in results if (event := _event_of(one)) is not None}
    committed = list(by_pool.values())
    if kept is not None and committed:
        kept.set(UNANNOUNCED, committed)
    context["ti"].xcom_push(UNANNOUNCED, committed)


def _event_of(result: Result) -> PoolEvent | None:
    """The event of a load's result; None if it committed nothing."""
    from log_lake.lake.results import LoadResult

    return PoolEvent.of(result.pool, result) if isinstance(result, LoadResult) else None


def results_of(outcome: Outcome, context: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The results, if nothing failed; otherwise raises the failure, and keeps the results for the report."""
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
    """The totals.  `put_off`: what `find` put off; `answer`: that of a person who was asked, if one was.

    Raises Incomplete if something failed, InvalidInput if the packs are not of the lake that the run names.
    """
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
    before = [msgspec.convert(one, PutOff) for one in put_off or ()]
    return driver.report(agent, Found(handed.work, [*handed.put_off, *before]), done)


def _each(results: Sequence[Any]) -> list[Any]:
    """The results of all packs, one by one; a pack that failed may have none."""
    return [one for part in results for one in (part if isinstance(part, list) else [part]) if one]


def announce(committed: Sequence[PoolEvent], request: Mapping[str, Any], events: Any) -> None:
    """Emit each event of a pool's asset; `events` are those of an alias."""
    for event in committed:
        events.add(_asset_of(event.pool, request), extra=event.extra)


def announce_partitions(
    committed: Sequence[PoolEvent],
    request: Mapping[str, Any],
    keys: Sequence[str],
    outlets: Sequence[Any],
    events: Any,
) -> list[Any]:
    """Emit events of the assets of the pools in which the run committed: one for each partition of these keys.

    Without `keys` it is one event without a partition.  Returns those of the `outlets` that have events: Airflow
    would make one, without a partition, for each of the others.
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
    """The events of all tasks `run`, by its id, that are not emitted; `task` is the one that asks.

    Raises Corrupt for values that are no events.
    """
    from log_lake.agents.agent import decoded

    parts = [part for part in task.xcom_pull(task_ids=[run], key=UNANNOUNCED) if part]
    return [decoded(one, PoolEvent, "an event of a pool") for one in _each(parts)]
