"""Runs agents as their tasks call them, with the plain values that tasks exchange: packs, XComs, outcomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import partial
from typing import Any

import msgspec

from log_lake.agents import driver
from log_lake.agents.agent import OpenWorkers, here
from log_lake.agents.work import Found, PutOff, Result, Work, encoded
from log_lake.lake import Lake
from spark_apps.session import OpenSpark
from spark_apps.workers import on_spark

Plain = dict[str, Any]


def find(agent: str, params: Mapping[str, Any], **how: Any) -> list[Plain]:
    """Returns what the agent gives to its tasks: work first, then the work that it puts off, which has
    `put_off`."""
    found = driver.find(agent, params, **how)
    return [plain(one) for one in (*found.work, *found.put_off)]


def plain(value: Work | PutOff | Result) -> Plain:
    """The value as another task reads it."""
    values: Plain = msgspec.json.decode(msgspec.json.encode(encoded(value)))
    return values


def finder(agent: str) -> Callable[..., list[Plain]]:
    """Returns a function that calls `find` for an agent."""
    return partial(find, agent)


def work_of(agent: str, values: Mapping[str, Any]) -> Any:
    """Makes the agent's work from its plain values."""
    return driver.agent_of(agent).decoded_work({"lake": "x", **values})


def result_of(agent: str, values: Any) -> Any:
    """Makes the agent's result from its plain values; figures that they lack are 0."""
    if not isinstance(values, Mapping):
        return values
    kind = getattr(driver.agent_of(agent), "result", None)
    needed = [one.name for one in fields(kind) if one.default is MISSING] if kind is not None else []
    return driver.agent_of(agent).decoded_result({**dict.fromkeys(needed, 0), **values})


def report(
    agent: str, all_work: Sequence[Mapping[str, Any]] | None, results: Sequence[Any]
) -> dict[str, int]:
    """Returns the agent's report of work and results that are given as plain values."""
    done = [result_of(agent, one) for one in results]
    if all_work is None:
        return driver.report(agent, None, done)
    work = [work_of(agent, one) for one in all_work if not one.get("put_off")]
    put_off = [msgspec.convert(one, PutOff) for one in all_work if one.get("put_off")]
    return driver.report(agent, Found(work, put_off), done)


def run(
    agent: str, work: Mapping[str, Any], *, lake: Lake | None = None, open_spark: OpenSpark | None = None
) -> Plain:
    """Does one piece of work, in this process or on Spark."""
    workers: OpenWorkers = here if open_spark is None else on_spark(open_spark)
    one = driver.agent_of(agent)
    return plain(one.run(lake or Lake.open(work["lake"]), one.decoded_work(work), workers))


def reporter(agent: str) -> Callable[..., dict[str, int]]:
    """Returns a function that calls `report` for an agent."""
    return partial(report, agent)


def runner(agent: str) -> Callable[..., Plain]:
    """Returns a function that calls `run` for an agent."""
    return partial(run, agent)
