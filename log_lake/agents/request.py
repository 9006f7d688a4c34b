"""The parameters of a run of an agent, from a trigger, a schedule or a backfill, read in one place.

An agent refuses unknown names and values of another type before it looks at anything.  Otherwise a mistyped name
(`pols`, `dryrun`) would be ignored, and the agent would work on all pools for real.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from lake_core import naming
from lake_core.errors import InvalidInput
from lake_core.naming import MAIN
from lake_core.phrases import nearest
from log_lake.agents.roster import KINDS, ParameterKind
from log_lake.agents.work import PutOff, Work
from log_lake.lake import Lake

COMMON = ("lake", "pools", "dry_run")
"""Parameters that every agent has."""

W = TypeVar("W", bound=Work)

OpenLake = Callable[[str], Lake]
"""A function that opens the lake that the parameter `lake` names: `Lake.open`, or one that also knows Airflow's
connections."""


@dataclass(frozen=True)
class Request:
    """What a run of an agent was asked to do.  An empty `pools` means all pools.  `limit`: the most pieces of
    work.

    Only the ingest agent reads `wait` and `bulk`, only the intervals agent `files`, only the compact agent
    `strategy`, and only the tombstones agent `at_once`.

    Only the erasure agent reads the next ones: which records to erase, by `where`, `key`, or `low` and `high`
    (the parameters `from` and `to`), and how.

    The last fields come from the caller, not from parameters.  `any_time`: the run ignores pauses and hours of
    pools. `recurring`: the DAG named the pools, not a person.  `begins`: the task `find` may begin erasures,
    because no person must approve them.  `begin` and `end`: the interval of the run, for the intervals agent.
    `run`: a text that identifies the run and its task among all DAGs.
    """

    lake: str
    pools: tuple[str, ...] = ()
    dry_run: bool = False
    branch: str = MAIN
    limit: int | None = None
    strategy: str | None = None
    at_once: bool = False
    wait: bool = True
    bulk: bool = False
    files: tuple[str, ...] = ()
    where: str | None = None
    key: str | None = None
    low: str | None = None
    high: str | None = None
    grace: str | None = None
    keep_history: bool = False
    any_time: bool = False
    recurring: bool = False
    begins: bool = True
    begin: dt.datetime | None = None
    end: dt.datetime | None = None
    run: str = ""

    @classmethod
    def read(cls, params: Mapping[str, Any], *, also: tuple[str, ...] = ()) -> Request:
        """Reads the parameters of a run.  Raises InvalidInput for a value of another type, and for a name that is
        neither in `COMMON` nor in `also`, the agent's own parameters."""
        names = (*COMMON, *also)
        for name, value in params.items():
            if name not in names:
                near = nearest(name, names)
                raise InvalidInput(
                    f"unknown parameter {name!r}"
                    + (f": did you mean {near!r}?" if near else ".")
                    + f" The parameters are {', '.join(names)}; nothing was done"
                )
            if value is not None and not _is(value, KINDS[name]):
                raise InvalidInput(
                    f"parameter {name!r} must be {KINDS[name].value} (got {value!r}); nothing was done"
                )
        given = {name: value for name, value in params.items() if value is not None}
        if not given.get("lake"):
            raise InvalidInput("no lake: set the parameter `lake` of the run, or the variable LAKE")
        return cls(
            lake=str(given["lake"]),
            pools=tuple(given.get("pools", ())),
            dry_run=bool(given.get("dry_run", False)),
            branch=str(given.get("branch") or MAIN),
            limit=given.get("limit"),
            strategy=given.get("strategy"),
            at_once=bool(given.get("at_once", False)),
            wait=bool(given.get("wait", True)),
            bulk=bool(given.get("bulk", False)),
            files=tuple(given.get("files", ())),
            where=given.get("where"),
            key=given.get("key"),
            low=given.get("from"),
            high=given.get("to"),
            grace=given.get("grace"),
            keep_history=bool(given.get("keep_history", False)),
        )

    def work(self, kind: type[W], pool_name: str, what: str, **values: Any) -> W:
        """Returns a piece of work of class `kind`.  `what` describes it in its title; `values` are the agent's own
        fields."""
        title = f"{pool_name}: {what}"
        return kind(lake=self.lake, pool=pool_name, branch=self.branch, title=title, **values)

    def put_off(self, pool_name: str, why: str, **values: Any) -> PutOff:
        """Returns a deferred pool with the reason `why`; `values` are further fields of `PutOff`."""
        title = f"{pool_name}: put off: {why}"
        return PutOff(
            **{"lake": self.lake, "pool": pool_name, "branch": self.branch, "title": title, "why": why}
            | values
        )


def _is(value: Any, kind: ParameterKind) -> bool:
    match kind:
        case ParameterKind.TEXTS:
            return isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)
        case ParameterKind.COUNT:
            return isinstance(value, int) and not isinstance(value, bool) and value >= 1
        case _:
            return isinstance(value, bool if kind is ParameterKind.FLAG else str)


def named_pools(lake: Lake, pools: Sequence[str]) -> list[str]:
    """Returns the names of the pools that a run looks at: the named ones, each once, or all.  Raises NotFound for
    an unknown name."""
    for name in pools:
        lake.pool(name)
    return list(dict.fromkeys(pools)) or [pool.name for pool in lake.pools()]


def with_own_pools(lake: Lake, pools: Sequence[str]) -> list[str]:
    """Returns the named pools, and the pools that the lake keeps for itself, such as `$jobs`.  An empty list,
    which means all pools, stays empty.

    For runs of a DAG: a user who names a few pools for upkeep does not think of `$jobs`, which each such run
    enlarges.
    """
    names = lake.catalog.load().state.names
    own = [name for name in naming.OWN_POOLS if name in names]
    return [*pools, *own] if pools else []
