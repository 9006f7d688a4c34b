"""Saves the state of a pool, so that it opens quickly, and purges its old entries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from airflow_lake import given
from airflow_lake.effects import Effect
from airflow_lake.operators.base import LakeOperator

if TYPE_CHECKING:
    from airflow.sdk import Context


UNREAD = dict.fromkeys(("branch", "spark", "spark_conf"), "a checkpoint is of all branches, without Spark")
"""Arguments of other operators that this one does not read, and why."""


class LakeCheckpointOperator(LakeOperator):
    """Writes a checkpoint of a pool if there are new entries, and purges by its `history.keep` unless
    `purging=False`.

    One journal needs no Spark, so the task does the work itself.
    """

    agent = "checkpoint"

    def __init__(self, *, purging: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        given.refuse_unread(kwargs, UNREAD, who=self.task_id)
        self.purging = given.fixed_flag(purging, "purging", who=self.task_id)

    def planned_effects(self) -> Iterable[Effect]:
        """Returns the pool as the planned effect; its records do not change."""
        return [self.effect(reads=True, writes=False)]

    def act(self, context: Context) -> dict[str, Any]:
        """Returns the result: checkpoint (its version), written, fence, entries, checkpoints.  Nothing is
        committed."""
        from log_lake.agents.checkpoint.report import journal_line
        from log_lake.agents.checkpoint.run import checkpoint_and_purge
        from log_lake.agents.work import encoded

        lake = self.get_lake()
        done = checkpoint_and_purge(lake, self.pool_name, now=lake.context.now(), purging=self.purging)
        values = encoded(done)
        self.effects = (self.done_effect({"version": values["checkpoint"]}, reads=True, writes=False),)
        self.log.info("%s", journal_line(done))
        return values
