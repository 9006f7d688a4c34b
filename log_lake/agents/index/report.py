"""The words for what the index agent plans and did: for its logs and its report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lake_core.phrases import counted, human_size
from log_lake.agents.work import Result


@dataclass(frozen=True)
class IndexResult(Result):
    """What the agent did in a pool: the data objects that got their indexes, and the bytes of these.

    `damaged`: indexes that were damaged and are replaced.  `gone`: objects that a vacuum took meanwhile.  `left`:
    objects that the next run must do.  `faults`: what is wrong with objects that cannot be read.  `version` is
    None: the agent commits nothing.
    """

    version: int | None
    objects: int
    size: int
    damaged: int
    gone: int
    left: int
    faults: tuple[str, ...]


def plan_line(pool_name: str, *, objects: int, size: int, damaged: int) -> str:
    """Returns a line that says what a pool lacks; `size` is that of the data objects, in bytes."""
    lack = f"{counted(objects, 'object lacks', 'objects lack')} an index, {human_size(size)} to read"
    broken = f"; {counted(damaged, 'index is', 'indexes are')} damaged" if damaged else ""
    return f"{pool_name}: {lack}{broken}"


def pool_line(done: IndexResult) -> str:
    """Returns a line that says what was done in a pool."""
    return f"{done.pool}: {work_line(vars(done))}"


def work_line(done: Mapping[str, Any]) -> str:
    """Returns words for the indexes that were made, from the figures of one pool or of all pools."""
    steps = [f"indexed {counted(done['objects'], 'object')}, {human_size(done['size'])}"]
    steps += [f"{counted(done['damaged'], 'damaged index', 'damaged indexes')} replaced"] * bool(
        done["damaged"]
    )
    steps += [f"{done['gone']:,} gone meanwhile"] * bool(done["gone"])
    steps += [f"{done['left']:,} left"] * bool(done["left"])
    return "; ".join(steps)
