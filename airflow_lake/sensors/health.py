"""The sensor that waits until a lake is well."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator, PokeReturnValue

from airflow_lake import allowed, given
from airflow_lake.defaults import NO_RETRY
from airflow_lake.health import VERDICTS, check_verdict, log_health, values_of
from airflow_lake.reach import lake_name, open_lake
from airflow_lake.rendering import KeepsTexts
from airflow_lake.runs import conf_of, defaults_of

if TYPE_CHECKING:
    from airflow.sdk import Context, RetryPolicy


class LakeHealthSensor(KeepsTexts, BaseSensorOperator):
    """Waits until the doctor's verdict on these pools (none: all) is `until` or better.

    It looks every five minutes (`poke_interval`), and holds no worker in between (`mode`).  If the store does
    not answer, it looks again later.
    """

    template_fields: Sequence[str] = ("lake", "pools")
    ui_color = "#d9ecf2"

    def __init__(
        self,
        *,
        pools: Sequence[str] = (),
        lake: str = "",
        until: str = "well",
        mode: str = "reschedule",
        poke_interval: float = 300.0,
        retry_policy: RetryPolicy | None = NO_RETRY,  # as a default, so that a DAG's own comes before it
        **kwargs: Any,
    ) -> None:
        super().__init__(mode=mode, poke_interval=poke_interval, retry_policy=retry_policy, **kwargs)
        self.pools = pools
        self.asked = lake  # what the DAG says, before templates are filled in
        self.defaults = defaults_of(self)
        self.lake = lake
        self.until = check_verdict(until, "until", VERDICTS[:2], who=self.task_id)

    def poke(self, context: Context) -> PokeReturnValue:
        """Whether the verdict is good enough; the result is the same as that of LakeDoctorOperator."""
        from lake_core.errors import Unavailable
        from log_lake.doctor.examine import examine

        pools = given.texts(self.pools, "pools", task=self.task_id)
        name = lake_name(given.text_or_empty(self.lake, "lake", task=self.task_id, asked=self.asked))
        allowed.check_lake_of_run(
            name,
            asked=self.asked,
            defaults=self.defaults,
            conf=conf_of(context),
            task=self.task_id,
            environ=os.environ,
        )
        try:
            health = examine(open_lake(name), pools)
        except Unavailable as error:
            if not error.may_pass:
                raise
            self.log.warning("%s; looks again", error)
            return PokeReturnValue(is_done=False)
        log_health(self.log, health)
        is_done = health.verdict <= VERDICTS.index(self.until)
        return PokeReturnValue(is_done=is_done, xcom_value=values_of(health) if is_done else None)
