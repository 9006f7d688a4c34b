"""Checks the request for a run of the intervals agent, and turns an interval of time into a path of files; pure.

`log_lake.coverage.key_ranges` turns an interval into the range of keys that its load replaces.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from lake_core.errors import InvalidInput
from log_lake.agents.request import Request
from log_lake.coverage.key_ranges import empty_interval
from log_lake.settings.time_format import interval_place


def check_asked(asked: Request, names: Sequence[str]) -> None:
    """Raises InvalidInput if the run names both an interval and files, or neither.

    Files need exactly one pool in `names`.  An interval must not end before it begins, or at the same time.
    """
    if asked.begin is None and (not asked.files or len(names) != 1):
        raise InvalidInput(
            "a run without an interval appends files: set the parameters `pools` (one pool) and `files`"
        )
    if asked.begin is not None and asked.files:
        raise InvalidInput(
            "a run of an interval loads the files of the interval: leave `files` out, or start a run by hand"
        )
    if asked.begin is not None and asked.end is not None and asked.begin >= asked.end:
        raise InvalidInput(empty_interval(asked.begin, asked.end))


def path_of(pattern: str, begin: dt.datetime) -> str:
    """Returns the path of the files of the interval that begins at that time: the pattern with `%Y`, `%m`, `%d`,
    `%H`, ... filled in.

    The day and the hour are those in the zone of `begin`: a day in Tokyo begins on the day before in UTC.
    Raises InvalidInput if the pattern names no time, because every interval would load the same files.
    """
    try:
        interval_place(pattern)
    except ValueError as error:
        raise InvalidInput(f"intervals.source={pattern}: {error}") from error
    return begin.strftime(pattern)
