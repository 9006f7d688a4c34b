"""One pack of an agent's work, carried out piece by piece: in a task of Airflow, or in a submitted application.

A piece that fails does not hold back the others of its pack, whatever its error is, and their results are kept.
The checkpoint agent alone takes all its work at once (`Agent.together`).  Each piece is a job of the lake
(`agents.jobs`).  Callers: `airflow_lake.groups.tasks`, and `spark_apps.agent`, which keeps the outcome in the lake
for the task.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from lake_core import naming
from lake_core.errors import LakeError, from_wire, to_wire
from log_lake.agents.jobs import recorded, recorded_each
from log_lake.agents.reporting import PIECE
from log_lake.agents.request import OpenLake
from log_lake.agents.roster import AGENTS
from spark_apps.in_task import in_task
from spark_apps.session import OpenSpark, is_gone, one_session

log = logging.getLogger(__name__)

Work = Mapping[str, Any]
Result = dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """What came of a pack: the pieces that were done, by number and result, and the errors of the others."""

    done: tuple[tuple[int, Result], ...]
    failures: tuple[Exception, ...]

    @property
    def results(self) -> list[Result]:
        """The results of the pieces that were done."""
        return [result for _, result in self.done]

    def raise_failure(self) -> None:
        """Raise the first failure, if there is one; one that may pass comes first, so that a caller tries again.

        An error that is not ours, such as Spark's, may pass: a retry may have another Spark.
        """
        if self.failures:
            raise min(self.failures, key=_rank)

    @property
    def values(self) -> list[dict[str, Any]]:
        """As plain values; `of` is the way back."""
        done = [{"piece": piece, "result": result} for piece, result in self.done]
        return [*done, *({"error": to_wire(_as_ours(one))} for one in self.failures)]

    @classmethod
    def of(cls, values: Sequence[Mapping[str, Any]]) -> Outcome:
        """The outcome that these values are of."""
        return cls(
            tuple((one["piece"], one["result"]) for one in values if "result" in one),
            tuple(from_wire(one["error"]) for one in values if "error" in one),
        )


def _rank(failure: Exception) -> int:
    """Which of several failures is raised: the smallest."""
    if not isinstance(failure, LakeError):
        return 1
    return 0 if failure.may_pass else 2


def _as_ours(error: Exception) -> LakeError:
    """An error of Spark or Python has no form on the wire; its text has."""
    return error if isinstance(error, LakeError) else LakeError(f"{type(error).__name__}: {error}")


def carry_out(
    agent: str,
    all_work: Sequence[Work],
    *,
    open_lake: OpenLake,
    open_spark: OpenSpark,
    application: Callable[..., Mapping[str, Any]] | None = None,
    done: Callable[[Work, Result], None] = lambda work, result: None,
) -> Outcome:
    """Do all pieces of work of the agent, as far as they can be done.

    `application` does one piece; None: the agent's.  `done` is told of each piece at once: the next one may end the
    process.
    """
    if AGENTS[agent].together:
        opener = _opener(all_work, open_spark)
        return _together(agent, all_work, open_lake=open_lake, open_spark=opener, done=done)
    do = application or import_module(f"spark_apps.{agent}").run
    pieces: list[tuple[int, Result]] = []
    failures: list[Exception] = []
    try:
        with one_session(open_spark) as spark:
            for piece, work in enumerate(all_work):
                try:
                    pool = {"pool_name": work["pool"], "branch": work.get("branch", naming.MAIN)}
                    with recorded(open_lake(work["lake"]), agent=agent, **pool) as job:
                        result = dict(do(work, open_lake=open_lake, open_spark=_opener([work], spark)))
                        job.update(result)
                    result |= _piece_of(work)
                    pieces.append((piece, result))
                    done(work, result)
                except LakeError as error:
                    log.error("%s: %s", work["pool"], error)
                    failures.append(error)
                except Exception as error:
                    log.exception("%s: %s", work["pool"], type(error).__name__)
                    failures.append(error)
                    if is_gone(error):  # the other pieces would each wait for it, and fail too
                        break
            Outcome((), tuple(failures)).raise_failure()  # the session says whether its Spark is gone
    except Exception as error:
        failures = [error, *(one for one in failures if one not in (error, error.__cause__))]
    return Outcome(tuple(pieces), tuple(failures))


def _piece_of(work: Work) -> Result:
    """What tells the result of a piece of work from others; nothing if the work does not say it."""
    return {PIECE: work[PIECE]} if PIECE in work else {}


def _opener(all_work: Sequence[Work], open_spark: OpenSpark) -> OpenSpark:
    """What opens the Spark for this work.

    The lake's own pools need none: they hold what agents wrote of their runs.  Each run adds to them, so each run
    of upkeep would start a JVM for a few kilobytes.
    """
    return in_task if all(naming.is_own(work["pool"]) for work in all_work) else open_spark


def _together(
    agent: str,
    all_work: Sequence[Work],
    *,
    open_lake: OpenLake,
    open_spark: OpenSpark,
    done: Callable[[Work, Result], None],
) -> Outcome:
    """All work in one call of the agent, a job each pool; if the store did not answer for some, it failed."""
    lake = open_lake(all_work[0]["lake"])
    do = import_module(f"spark_apps.{agent}").run
    numbers = {work["pool"]: piece for piece, work in enumerate(all_work)}
    pieces: list[tuple[int, Result]] = []
    try:
        with recorded_each(lake, agent=agent, pool_names=list(numbers)) as jobs:
            for result in do(all_work, open_lake=open_lake, open_spark=open_spark):
                jobs[result["pool"]] = result
                work = all_work[numbers[result["pool"]]]
                pieces.append((numbers[result["pool"]], {**result, **_piece_of(work)}))
                if not result.get("failed"):
                    done(work, pieces[-1][1])
            import_module(f"log_lake.agents.{agent}.report").check_answered(jobs.values())
    except Exception as error:
        return Outcome(tuple(pieces), (error,))
    return Outcome(tuple(pieces), ())
