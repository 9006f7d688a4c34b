"""The sensor that waits until a pool holds all intervals up to a time.

LakeCoverageSensor(task_id="whole", pool_name="flights", until="{{ data_interval_end }}")
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator, PokeReturnValue

from airflow_lake import allowed, given
from airflow_lake.defaults import NO_RETRY
from airflow_lake.reach import lake_name, open_lake
from airflow_lake.rendering import KeepsTexts
from airflow_lake.runs import conf_of, defaults_of
from lake_core.naming import MAIN

if TYPE_CHECKING:
    from airflow.sdk import Context, RetryPolicy

    from log_lake.coverage.coverage import Coverage

SHOWN = 5
"""How many gaps, from the first on, are logged at each look."""


class LakeCoverageSensor(KeepsTexts, BaseSensorOperator):
    """Waits until a branch of the pool has every interval that ends by `until` (inclusive).

    The intervals are those of the pool's settings.  The first of them is the one with the time `since`; without
    `since`, the first one that the pool should have, or has.  `since` and `until` are times of ISO 8601; a time
    without a zone is in the pool's zone.  The sensor looks every five minutes (`poke_interval`), holds no
    worker in between (`mode`), and fails after `timeout`, or at once if the key has no times.  If the store
    does not answer, it looks again later.

    The result: `pool`, `until`, `intervals` (their number), `version` (of the branch).
    """

    template_fields: Sequence[str] = ("lake", "pool_name", "branch", "until", "since")
    ui_color = "#d9ecf2"

    def __init__(
        self,
        *,
        pool_name: str,
        until: str,
        since: str | None = None,
        lake: str = "",
        branch: str = MAIN,
        mode: str = "reschedule",
        poke_interval: float = 300.0,
        retry_policy: RetryPolicy | None = NO_RETRY,  # as a default, so that a DAG's own comes before it
        **kwargs: Any,
    ) -> None:
        super().__init__(mode=mode, poke_interval=poke_interval, retry_policy=retry_policy, **kwargs)
        self.pool_name = pool_name
        self.until = until
        self.since = since
        self.branch = branch
        self.asked = {"lake": lake, "since": since}  # what the DAG says, before templates are filled in
        self.defaults = defaults_of(self)
        self.lake = lake

    def poke(self, context: Context) -> PokeReturnValue:
        """Whether the branch holds all intervals; if not, logs the first gaps."""
        from lake_core.errors import Unavailable
        from log_lake.coverage.coverage import check_schedule, coverage_of

        task = self.task_id
        until = _time(given.text(self.until, "until", task=task), "until", task=task)
        since = given.text_if_given(self.since, "since", task=task, asked=self.asked["since"])
        first = None if since is None else _time(since, "since", task=task)
        pool_name = given.text(self.pool_name, "pool_name", task=task)
        branch = given.text(self.branch, "branch", task=task)
        name = lake_name(given.text_or_empty(self.lake, "lake", task=task, asked=self.asked["lake"]))
        allowed.check_lake_of_run(
            name,
            asked=self.asked["lake"],
            defaults=self.defaults,
            conf=conf_of(context),
            task=task,
            environ=os.environ,
        )
        try:
            view = open_lake(name).pool(pool_name).at(branch)
            check_schedule(view)
            coverage = coverage_of(view, since=first, until=until)
        except Unavailable as error:
            if not error.may_pass:
                raise
            self.log.warning("%s; looks again", error)
            return PokeReturnValue(is_done=False)
        if not self._is_whole(coverage, pool_name, has_first=first is not None):
            return PokeReturnValue(is_done=False)
        value = {"pool": pool_name, "until": until.isoformat(), "intervals": len(coverage.intervals)}
        return PokeReturnValue(is_done=True, xcom_value=value | {"version": view.version})

    def _is_whole(self, coverage: Coverage, pool_name: str, *, has_first: bool) -> bool:
        """Whether there are intervals and all are held.  Raises InvalidInput if there can be none, or too many."""
        from lake_core.errors import InvalidInput

        if not coverage.intervals and (has_first or coverage.policy.since is not None):
            raise InvalidInput(
                f"{self.task_id}: no interval of {pool_name!r} ends by until={self.until}: name a later time, or "
                "an earlier since (or setting intervals.since)"
            )
        if coverage.cut_before is not None:
            raise InvalidInput(
                f"{self.task_id}: pool {pool_name!r} has too many intervals to tell: those before "
                f"{coverage.cut_before.isoformat()} are left out; name since, or set intervals.since"
            )
        begins = ", ".join(gap.begin.isoformat() for gap in coverage.gaps[:SHOWN])
        if coverage.gaps:
            number, lacking = len(coverage.intervals), len(coverage.gaps)
            self.log.info("%s lacks %d of %d intervals, the first: %s", pool_name, lacking, number, begins)
        elif not coverage.intervals:
            self.log.info("%s holds no interval yet", pool_name)
        return bool(coverage.intervals) and not coverage.gaps


def _time(text: str, what: str, *, task: str) -> dt.datetime:
    """Returns the time that a text spells.  Raises InvalidInput."""
    from lake_core.errors import InvalidInput

    try:
        return dt.datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidInput(
            f"{task}: {what}={text!r}: must be a time of ISO 8601, as 2026-01-31T00:00:00Z"
        ) from error
