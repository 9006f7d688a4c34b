"""Asks the doctor whether the lake is well, and fails if it is not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from airflow_lake import given
from airflow_lake.effects import Effect
from airflow_lake.health import VERDICTS, check_verdict, log_health, summary, values_of
from airflow_lake.operators.base import LakeOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

UNREAD = dict.fromkeys(
    ("branch", "spark", "spark_conf"), "the doctor looks at `main` of pools, without Spark"
)
"""Arguments of other operators that this one does not read, and why."""
NEVER = "never"


class LakeDoctorOperator(LakeOperator):
    """Logs what the doctor finds in these pools (none: all), and fails if the verdict is `fail_on` or worse.

    `fail_on="never"`: the task succeeds whatever the verdict, and passes its result on.
    """

    template_fields: Sequence[str] = ("lake", "pools")

    def __init__(self, *, pools: Sequence[str] = (), fail_on: str = "ill", **kwargs: Any) -> None:
        super().__init__(pool_name="", **kwargs)
        given.refuse_unread(kwargs, UNREAD, who=self.task_id)
        self.pools = pools
        self.fail_on = check_verdict(fail_on, "fail_on", (*VERDICTS[1:], NEVER), who=self.task_id)

    def take(self) -> None:
        """Reads the rendered parameters.  Raises InvalidInput."""
        self.take_asked()
        self.pools = given.texts(self.pools, "pools", task=self.task_id)

    def planned_effects(self) -> Iterable[Effect]:
        """Returns no effect, because the task reads no records."""
        return []

    def act(self, context: Context) -> dict[str, Any]:
        """Returns the result: verdict, well, attention and ill (numbers of pools), findings.

        Raises Incomplete for a verdict on which the task fails, and what `examine` raises.
        """
        from lake_core.errors import Incomplete
        from log_lake.doctor.examine import examine

        health = examine(self.get_lake(), self.pools)
        log_health(self.log, health)
        if self.fail_on != NEVER and health.verdict >= VERDICTS.index(self.fail_on):
            worst = health.all_findings[0]
            raise Incomplete(f"{summary(health)}; the worst: {worst.says}; {worst.command or 'see the log'}")
        return values_of(health)
