"""The interval agent without Spark: which files belong to an interval of time, pool by pool.

A run for an interval replaces exactly that interval of a pool with what has landed for it, in one transaction; so
it may be run twice, in any order and beside others, and ends in the same state.  Where nothing has landed, the
interval becomes empty.  A run without an interval appends the files that it is given, once.  A pool takes part when
its setting `intervals.source` says where the files of an interval land.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Mapping
from typing import Any

import msgspec

from lake_core.agents.intervals.policy import path_of
from lake_core.agents.request import Request
from lake_core.catalog import Settings
from lake_core.errors import InvalidInput, NotFound
from lake_core.lake import Lake
from lake_core.loading.sources import find_files
from lake_core.phrases import counted, human_size
from lake_core.records.source_files import SourceFile

log = logging.getLogger(__name__)


def pools_with_intervals(lake: Lake, only: list[str] | None = None) -> list[str]:
    """Names of the pools that take intervals; of `only`, if any are named.  Raises NotFound, InvalidInput."""
    if not only:
        return [p.name for p in lake.pools() if Settings(p.settings)["intervals.source"]]
    for name in only:
        if not lake.pool(name).settings["intervals.source"]:
            raise InvalidInput(
                f"pool {name!r}: intervals.source is empty; set it with: lake set {name} intervals.source=PATTERN"
            )
    return sorted(set(only))


def find_source_files(pattern: str, settings: Settings) -> list[SourceFile]:
    """The files at a place, which may not be there yet, as the pool's settings choose them."""
    try:
        found = find_files([pattern], include=settings["include"], exclude=settings["exclude"])
        return [f for f in found if f.size]
    except NotFound:
        return []


def find(
    params: Mapping[str, Any], *, begin: dt.datetime | None, end: dt.datetime | None, run: str
) -> list[dict[str, Any]]:
    """The agent's first task: work as plain values, for one mapped task each.

    `params`: lake, pools (none named: all), branch, files (to be appended where there is no interval), dry_run.
    `run` names the run: what it appends, it appends once.
    """
    asked = Request.read(params, also=("branch", "files"))
    lake = Lake.open(asked.lake)
    names = pools_with_intervals(lake, list(asked.pools))
    given = list(asked.files)
    if begin is None and (not given or len(names) != 1):
        raise InvalidInput(
            "a run without an interval appends files: set the parameters `pools` (one pool) and `files`"
        )
    found = []
    for name in names:
        if begin is None:
            files = find_files(given)
        else:
            settings = lake.pool(name).settings
            files = find_source_files(path_of(settings["intervals.source"], begin), settings)
        when = f"{begin.isoformat()} to {end.isoformat()}" if begin and end else "appended"
        size = human_size(sum(f.size for f in files))
        log.info("%s: %s: %s, %s", name, when, counted(len(files), "file"), size)
        found.append(
            {
                "lake": asked.lake,
                "pool": name,
                "branch": asked.branch,
                "begin": begin.isoformat() if begin else "",
                "end": end.isoformat() if end else "",
                "title": f"{name}: {begin.isoformat() if begin else counted(len(files), 'file')}",
                "token": "" if begin else f"interval:{run}:{name}",
                "files": msgspec.to_builtins(files),
            }
        )
    if asked.dry_run:
        log.info("dry run: nothing is ingested")
        return []
    return found
