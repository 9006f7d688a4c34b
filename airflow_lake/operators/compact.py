"""Merges the overlapping objects of a pool now, by the pool's policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_lake import given
from airflow_lake.operators.base import LakeOperator

if TYPE_CHECKING:
    from airflow.sdk import Context


class LakeCompactOperator(LakeOperator):
    """Compacts a pool, as `lake compact` does; `strategy` overrides the pool's `compact.strategy`.

    It works on Spark, which does not start if there is nothing to do; with `on_spark=False` the task itself
    works.
    """

    agent = "compact"
    template_fields: Sequence[str] = (*LakeOperator.template_fields, "strategy")

    def __init__(self, *, strategy: str | None = None, on_spark: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.asked |= {"strategy": strategy}
        self.strategy = strategy
        self.on_spark = given.fixed_flag(on_spark, "on_spark", who=self.task_id)

    def act(self, context: Context) -> dict[str, Any]:
        """Returns what was merged: version (None if nothing was), jobs, inputs, objects, size_in, size_out; depth,
        objects and size before and after (depth_before, ...); if the pool is published, `published` (the
        version) and `publication`."""
        from log_lake.agents.compact.report import plan_lines, pool_line
        from log_lake.agents.compact.run import compact_pool, finished, log_job, plan_pool
        from log_lake.agents.work import encoded
        from spark_apps.workers import workers_of

        lake = self.get_lake()
        plan = plan_pool(
            lake, self.pool_name, branch=self.branch, strategy=self.strategy, now=lake.context.now()
        )
        for line in plan_lines(self.pool_name, plan):
            self.log.info("%s", line)
        if not plan.jobs:
            results = []
        elif self.on_spark:
            size = sum(job.size for job in plan.jobs)
            with self.get_spark()(f"lake compact {self.pool_name}", size=size) as spark:
                workers = workers_of(spark, lake.context)
                results = compact_pool(
                    lake, self.pool_name, plan, branch=self.branch, workers=workers, progress=log_job
                )
        else:
            results = compact_pool(lake, self.pool_name, plan, branch=self.branch)
        done = finished(lake.pool(self.pool_name), results, branch=self.branch, before=plan.standing)
        values = encoded(done)
        self.effects = (self.done_effect(values | {"size": values["size_out"]}, reads=True),)
        self.log.info("%s", pool_line(done))
        return values
