"""The words for what the derive agent did: for its logs and its report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lake_core.phrases import counted
from log_lake.agents.work import Result


@dataclass(frozen=True)
class DeriveResult(Result):
    """What the agent did in a pool: its steps, the groups that they computed anew, the records that they brought.

    Then the pool holds the answer as of version `upto` of the pool `source`.  `wholes`: the steps that computed
    all groups.  `version` is None if another process was faster.
    """

    version: int | None
    source: str
    upto: int
    steps: int
    groups: int
    wholes: int
    records: int


def pool_line(done: DeriveResult) -> str:
    """The result for a pool, in a line."""
    return f"{done.pool}: {work_line(vars(done))}; as of {done.source}@{done.upto:,}"


def work_line(done: Mapping[str, Any]) -> str:
    """What was computed, in words, from the figures of one pool or of all."""
    whole = f", {counted(done['wholes'], 'step')} of all groups" if done["wholes"] else ""
    return (
        f"{counted(done['steps'], 'step')}, {counted(done['groups'], 'group')} anew{whole}, "
        f"{counted(done['records'], 'record')}"
    )
