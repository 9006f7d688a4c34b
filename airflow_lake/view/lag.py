"""Which agents lag in a pool: the pool's settings ask for work that is not done; pure.

It is told by what the overview knows anyway.  What only an agent's own look tells, such as files that wait to be
ingested and objects that may be deleted, is in the reports of the agents.
"""

from __future__ import annotations

from airflow_lake.view.figures import PoolFigures
from lake_core.errors import InvalidInput
from lake_core.phrases import counted, human_duration
from log_lake.settings import Settings


def lag_of(figures: PoolFigures, settings: Settings, *, tail: int, now: float) -> dict[str, str]:
    """By agent, what it has not done; `tail` counts entries since the newest checkpoint, `now` is in seconds.

    Empty if no agent lags, or if the settings cannot be read, which the agents report.
    """
    lag: dict[str, str] = {}
    try:
        depth, entries = settings["compact.depth"], settings["checkpoint.entries"]
        apply = settings["tombstones.apply"]
    except InvalidInput:
        return lag
    if figures.depth > depth:
        lag["compact"] = (
            f"{counted(figures.depth, 'object overlaps', 'objects overlap')}; the policy allows {depth:,}"
        )
    if figures.oldest_delete is not None and now - figures.oldest_delete > apply:
        age = human_duration(now - figures.oldest_delete)
        lag["tombstones"] = f"a delete is {age} old; it is due after {human_duration(apply)}"
    if tail > entries:
        lag["checkpoint"] = (
            f"{counted(tail, 'entry', 'entries')} since the newest checkpoint; one is due after {entries:,}"
        )
    return lag
