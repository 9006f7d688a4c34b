"""Expires old records of a pool, and deletes objects that are no longer needed, by the pool's settings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from airflow_lake.effects import Effect
from airflow_lake.operators.base import LakeOperator

if TYPE_CHECKING:
    from airflow.sdk import Context


class LakeRetainOperator(LakeOperator):
    """Expires, vacuums and purges a pool, as the retention agent does.

    Spark starts only if there are more names to list or to delete than the task handles itself.
    """

    agent = "retention"

    def planned_effects(self) -> Iterable[Effect]:
        """Returns the pool as the planned effect; it loses old records."""
        return [self.effect(reads=True)]

    def act(self, context: Context) -> dict[str, Any]:
        """Returns the result: version (None if it committed nothing), expired, records, orphans, vacuumed, freed,
        ..."""
        from log_lake.agents.retention.run import AGENT, RetentionWork
        from log_lake.agents.work import encoded
        from spark_apps.workers import on_spark

        work = RetentionWork(lake=self.lake_name, pool=self.pool_name, branch=self.branch)
        values = encoded(AGENT.run(self.get_lake(), work, on_spark(self.get_spark())))
        self.effects = (self.done_effect({"version": values["version"]}, reads=True),)
        return values
