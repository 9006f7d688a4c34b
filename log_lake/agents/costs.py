"""The cost of jobs: requests, bytes and seconds, as the meter of their store counted them; pure.

Called by `jobs`, which stores them, by the reports of agents, and by `lake jobs`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

import pyarrow as pa

from lake_core.phrases import counted, human_duration, human_size
from lake_core.store.meter import Counts

COST = pa.struct(
    [
        pa.field(one.name, pa.map_(pa.string(), pa.float64()) if one.name == "seconds" else pa.int64())
        for one in fields(Counts)
    ]
)
"""The type of a cost in `$jobs`."""


def stored_cost(cost: Counts | None) -> Mapping[str, Any] | None:
    """Returns a cost as a value of the Arrow type `COST`, as `$jobs` stores it."""
    return None if cost is None else {**vars(cost), "seconds": list(cost.seconds.items())}


def shares(cost: Counts, parts: int) -> list[Counts]:
    """Divides a cost evenly among the pools that were worked on together; the first part gets the remainder."""
    if parts == 1:
        return [cost]
    each = Counts.of(
        (number // parts for number in cost.numbers),
        {phase: seconds / parts for phase, seconds in cost.seconds.items()},
    )
    rest = Counts.of((number % parts for number in cost.numbers), {})
    return [each + rest, *[each] * (parts - 1)]


def cost_text(cost: Counts) -> str:
    """Returns a cost in words, without figures that are 0; "" if the job asked nothing of the store."""
    moved = ((cost.received, "read"), (cost.sent, "written"))
    asked = [counted(cost.requests, "request")] if cost.requests else []
    return ", ".join([*asked, *(f"{human_size(size)} {how}" for size, how in moved if size)])


def total_text(costs: Iterable[Counts | None]) -> str:
    """Returns the sum of costs in words, with the phases that took a second or longer."""
    total = sum((one for one in costs if one is not None), Counts())
    text = cost_text(total)
    phases = sorted(total.seconds.items(), key=lambda one: -one[1])
    took = [f"{phase} {human_duration(spent)}" for phase, spent in phases if spent >= 1.0]
    return ", ".join([text or "no request", *took])
