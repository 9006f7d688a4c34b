"""The intervals agent without Spark: which files belong to an interval of time, pool by pool.

A run for an interval replaces exactly that interval of a pool with the files of the interval, in one transaction;
so it may be run twice, in any order and beside others, and ends in the same state.  If there are no files, it
fails, or with `intervals.missing=empty` the interval becomes empty.  A run without an interval appends the files
that it is given, once.  A pool takes part if its setting `intervals.source` says where the files are.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Mapping
from typing import Any

import msgspec

from lake_core.errors import InvalidInput, LakeError, NotFound
from lake_core.phrases import counted
from lake_core.store import Address, address_of
from log_lake.agents.finding import divided, handed_out, looks, pools_with
from log_lake.agents.intervals.plan import empty_interval, path_of
from log_lake.agents.intervals.policy import IntervalsPolicy, policy_of
from log_lake.agents.intervals.report import plan_line
from log_lake.agents.request import OpenLake, Request
from log_lake.agents.roster import AGENTS
from log_lake.lake import Lake
from log_lake.loading.source_files import SourceFile
from log_lake.loading.sources import find_files

log = logging.getLogger(__name__)


def find_source_files(policy: IntervalsPolicy, begin: dt.datetime, *, access: Address) -> list[SourceFile]:
    """The files of the interval that begins then; `access` is the address of the lake.

    Raises NotFound if there is none, unless the pool says that an interval may be without files: a folder that is
    late, or misspelt, would empty the interval.
    """
    path = path_of(policy.source, begin)
    try:
        files = find_files([path], include=policy.include, exclude=policy.exclude, access=access)
        return [f for f in files if f.size]
    except NotFound as error:
        if policy.may_be_missing:
            return []
        raise NotFound(
            f"no file for the interval that begins {begin.isoformat()}: {path} has none. Run the interval again "
            "when its files are there; if it may have none: lake set POOL intervals.missing=empty"
        ) from error


def has_changed(lake: Lake, work: Mapping[str, Any]) -> bool:
    """Whether the files of the interval of a piece of work are not those that `find` found any more.

    Files that a person named, and those that `find` could not list, are not compared.  Raises Unavailable.
    """
    if not work["begin"] or work["files"] is None:
        return False
    begin = dt.datetime.fromisoformat(work["begin"])
    policy = policy_of(lake.pool(work["pool"]).settings)
    try:
        now = find_source_files(policy, begin, access=address_of(lake.store))
    except NotFound:
        return True
    return [one.source for one in now] != [
        one.source for one in msgspec.convert(work["files"], list[SourceFile])
    ]


def find(
    params: Mapping[str, Any],
    *,
    begin: dt.datetime | None,
    end: dt.datetime | None,
    run: str,
    open_lake: OpenLake = Lake.open,
) -> list[dict[str, Any]]:
    """The agent's first task: pools and their files as plain values, for one task `run` each.

    `params`: lake, pools (none named: all), branch, files (to be appended if there is no interval), dry_run.  `run`
    names the run and the task in it, among all DAGs: what it appends, it appends once.
    """
    asked = Request.read(params, also=AGENTS["intervals"].parameters)
    lake = open_lake(asked.lake)
    names = pools_with(lake, "intervals.source", asked.pools, example="PATTERN")
    if begin is None and (not asked.files or len(names) != 1):
        raise InvalidInput(
            "a run without an interval appends files: set the parameters `pools` (one pool) and `files`"
        )
    if begin is not None and asked.files:
        raise InvalidInput(
            "a run of an interval loads the files of the interval: leave `files` out, or start a run by hand"
        )
    if begin is not None and end is not None and begin >= end:
        raise InvalidInput(empty_interval(begin, end))
    open_names, put_off = divided(names, lake, asked, agent="intervals")
    access = address_of(lake.store)

    def look(name: str) -> list[SourceFile]:
        if begin is None:
            return find_files(list(asked.files), access=access)
        return find_source_files(policy_of(lake.pool(name).settings), begin, access=access)

    all_work = []
    for name, answer in looks(open_names, look):
        files = None if isinstance(answer, LakeError) else answer
        if isinstance(answer, LakeError):
            if begin is None:  # the run has no other pool
                raise answer
            log.error("%s: %s", name, answer)  # its task meets the same error, and holds no other pool back
        else:
            log.info("%s", plan_line(name, answer, begin=begin, end=end))
        all_work.append(
            asked.work(
                name,
                begin.isoformat() if begin else counted(len(files or ()), "file"),
                begin=begin.isoformat() if begin else "",
                end=end.isoformat() if end else "",
                token="" if begin else f"interval:{run}:{name}",
                files=None if files is None else msgspec.to_builtins(files),
            )
        )
    return handed_out(
        all_work,
        put_off,
        dry_run=asked.dry_run,
        nothing="no pool has intervals.source",
        not_done="nothing is loaded",
    )
