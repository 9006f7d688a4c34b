"""Drives every agent: find, run, report.  Commands, Spark applications and the groups of Airflow call these
functions.

    handed = find("compact", params)            finds the work; writes no data
    outcome = carry_out("compact", handed.work, open_lake=..., open_workers=here)
    report("compact", handed, outcome.results)  says what was done; raises Incomplete if something failed

If a pool cannot be read, or a piece of work fails, the others are still done.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from lake_core.errors import Incomplete, LakeError, from_wire, to_wire
from lake_core.naming import MAIN, is_own
from lake_core.store.meter import meter_of
from log_lake.agents.agent import Agent, AgentRun, OpenWorkers, PoolLook, here
from log_lake.agents.costs import shares, total_text
from log_lake.agents.finding import divided, handed_out, look_at_each
from log_lake.agents.jobs import recorded_each
from log_lake.agents.quiet import Quiet
from log_lake.agents.reporting import conclude
from log_lake.agents.request import OpenLake, Request
from log_lake.agents.roster import AGENTS
from log_lake.agents.work import Found, PutOff, Result, Work, encoded
from log_lake.lake import Lake
from log_lake.lake.one_list import with_one_list
from log_lake.measuring import measured

log = logging.getLogger(__name__)


def agent_of(name: str) -> Agent[Any, Any]:
    """Returns the agent with this name in `roster`."""
    agent: Agent[Any, Any] = AGENTS[name].load()
    return agent


def find(name: str, params: Mapping[str, Any], *, open_lake: OpenLake = Lake.open, **how: Any) -> Found[Any]:
    """Runs an agent's first task: finds the work, and which pools are deferred.

    `params` are the parameters of the run: those of `COMMON` and those of the agent's row.  A dry run logs what
    it finds, and hands out nothing.  `how` are the fields of a Request that come from Airflow and not from
    parameters.

    Raises InvalidInput, NotFound, Corrupt, Unavailable.
    """
    agent = agent_of(name)
    asked = replace(Request.read(params, also=AGENTS[name].parameters), **how)
    agent.check(asked)
    lake = with_one_list(open_lake(asked.lake))
    names = agent.pools(lake, asked)
    agent.begin(lake, asked, names)
    open_names, put_off = divided(names, lake, asked, agent=name)
    run = AgentRun(lake, asked, Quiet.of(lake, asked, agent=name))
    put_off = agent.paused(run, put_off)
    looked_at = agent.others(run, open_names)
    must_find = asked.branch != MAIN and looked_at == open_names and not put_off
    all_work: list[Work] = []
    looks: dict[str, PoolLook[Any]] = {}
    for pool, seen in look_at_each(
        looked_at,
        partial(agent.look, run),
        named=bool(asked.pools),
        must_find=must_find,
        skips_gone=agent.skips_gone,
    ):
        if isinstance(seen, LakeError):
            one = agent.unreadable(asked, pool, seen)
            put_off += [one] if isinstance(one, PutOff) else []
            all_work += [one] if isinstance(one, Work) else []
            continue
        for level, lines in ((logging.INFO, seen.lines), (logging.WARNING, seen.warnings)):
            for line in lines:
                log.log(level, "%s", line)
        if seen.rests is not None:
            run.quiet.found_nothing(seen.rests, until=seen.until, seen=seen.seen)
        looks[pool] = seen
        all_work += seen.work
    run.quiet.write()
    now = lake.context.now()
    all_work = [*agent.merged(all_work, now=now), *agent.beside(run)]
    handed = handed_out(
        all_work,
        put_off,
        dry_run=asked.dry_run,
        nothing=agent.nothing_in(open_names),
        not_done=agent.not_done,
        limit=asked.limit,
        now=now,
    )
    return handed if asked.dry_run else agent.left(asked, looks, all_work, handed)


@dataclass(frozen=True)
class Outcome:
    """What came of some pieces of work: the number and the result of each piece that was done, and the errors of
    the other pieces."""

    done: tuple[tuple[int, Result], ...] = ()
    failures: tuple[Exception, ...] = ()

    @property
    def results(self) -> list[Result]:
        """The results of the pieces that were done."""
        return [result for _, result in self.done]

    def raise_failure(self) -> None:
        """Raises the first failure, if there is one.  A failure that a retry may cure comes before the others, so
        that the caller retries.

        An error of another library, such as Spark's, counts as one that a retry may cure, because a retry may
        get another Spark.
        """
        if self.failures:
            raise min(self.failures, key=_rank)

    @property
    def values(self) -> list[dict[str, Any]]:
        """Returns the outcome as plain values; `of` decodes them."""
        done = [{"piece": piece, "result": encoded(result)} for piece, result in self.done]
        return [*done, *({"error": to_wire(_as_ours(one))} for one in self.failures)]

    @classmethod
    def of(cls, values: Sequence[Mapping[str, Any]], *, agent: str) -> Outcome:
        """Returns the outcome that `values` turned into plain values."""
        decoded = agent_of(agent).decoded_result
        return cls(
            tuple((one["piece"], decoded(one["result"])) for one in values if "result" in one),
            tuple(from_wire(one["error"]) for one in values if "error" in one),
        )


def _rank(failure: Exception) -> int:
    """Returns the rank of a failure; of several failures, the one with the smallest rank is raised."""
    if not isinstance(failure, LakeError):
        return 1
    return 0 if failure.may_pass else 2


def _as_ours(error: Exception) -> LakeError:
    """Returns an error of Spark or Python as a LakeError with its class and text, because only LakeErrors can be
    passed to other tasks."""
    return error if isinstance(error, LakeError) else LakeError(f"{type(error).__name__}: {error}")


def carry_out(
    name: str,
    all_work: Sequence[Any],
    *,
    open_lake: OpenLake,
    open_workers: OpenWorkers,
    does: Agent[Any, Any] | None = None,
    done: Callable[[Any, Any], None] = lambda work, result: None,
    ends: Callable[[Exception], bool] = lambda error: False,
) -> Outcome:
    """Does all pieces of work of the agent, and continues after errors.  Each piece is a job of the lake (`jobs`).

    `does`: the agent; None: the one with that name.  It calls `done` after each piece, because the next piece
    may end the process.  `ends`: whether it stops after this error, and tries no further piece.
    """
    agent = does or agent_of(name)
    together = AGENTS[name].together
    pieces: list[tuple[int, Result]] = []
    failures: list[Exception] = []
    packs = [list(all_work)] if together and all_work else [[work] for work in all_work]
    numbers = {id(work): number for number, work in enumerate(all_work)}
    for pack in packs:
        of = name if together else pack[0].pool
        try:
            lake, pools = open_lake(pack[0].lake), {work.pool: work for work in pack}
            # the lake's own pools hold what agents wrote of their runs: a few kilobytes need no Spark
            workers = here if all(is_own(pool) for pool in pools) else open_workers
            with (
                recorded_each(lake, agent=name, pool_names=list(pools), branch=pack[0].branch) as jobs,
                measured(lake.store, "agent", agent=name, pool="" if together else of),
            ):
                before = meter_of(lake.store).counts()
                results = (
                    agent.run_together(lake, pack, workers)
                    if together
                    else [agent.run(lake, pack[0], workers)]
                )
                costs = shares(meter_of(lake.store).counts() - before, len(results) or 1)
                for result, cost in zip(results, costs, strict=False):
                    work = pools[result.pool]
                    jobs[result.pool] = encoded(result)
                    result = replace(result, piece=work.piece, cost=cost)
                    pieces.append((numbers[id(work)], result))
                    if not getattr(result, "failed", ""):
                        done(work, result)
                agent.check_answered(results)
        except LakeError as error:
            log.error("%s: %s", of, error)
            failures.append(error)
        except Exception as error:
            log.exception("%s: %s", of, type(error).__name__)
            failures.append(error)
            if ends(error):
                break
    return Outcome(tuple(pieces), tuple(failures))


def report(name: str, handed: Found[Any] | None, results: Sequence[Any]) -> dict[str, int]:
    """Runs an agent's last task, even if other tasks failed: logs a line for each piece of work, and the totals.

    `handed`: what `find` handed out; None if `find` failed.  Raises Incomplete, which names what failed, if
    anything did.
    """
    if handed is None:
        raise Incomplete("the task `find` failed, so nothing was done; its log says why")
    agent = agent_of(name)
    for one in handed.put_off:
        log.info("%s", one.title)
    for result in results:
        for line in agent.lines(result):
            log.info("%s", line)
    if any(result.cost for result in results):
        log.info("the work cost %s", total_text(result.cost for result in results))
    for pool, lag in agent.lags(handed.work, results).items():
        log.warning("%s: %s", pool, lag)
    totals = agent.totals(handed, results)
    conclude(
        agent.total(totals) if results else agent.none_done,
        failed=agent.failures(handed, results),
        to_do=agent.to_do,
    )
    return totals
