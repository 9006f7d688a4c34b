"""The task `approve` of a group that deletes: it asks a person before `run`, by Airflow's human-in-the-loop.

    find -> approve -> run -> report

It asks only if `find` found work.  If the person refuses, or no answer comes in time, `run` is skipped, and
`report` names the deferred pools and the reason.  While it waits, it holds no slot.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator

from airflow_lake.groups.question import ANSWER, REJECT, question
from airflow_lake.groups.tasks import named_lake, work_of
from airflow_lake.rendering import KeepsTexts
from lake_core.errors import without_secrets


class LakeApproval(KeepsTexts, ApprovalOperator):
    """Asks whether an agent may do the work in `packs`; without an answer within `timeout` it may not.

    `config`: the plain values of the group that name the lake; Airflow stores them.  The answer goes to `report`
    as a separate XCom, because Airflow stores no return value of a task that was refused.
    """

    template_fields: Collection[str] = ("subject", "body", "packs", "config")

    def __init__(
        self, *, agent: str, packs: Any, config: Mapping[str, Any], timeout: timedelta, **kwargs: Any
    ) -> None:
        super().__init__(
            subject=f"May the {agent} agent delete this?",
            defaults=REJECT,
            response_timeout=timeout,
            **kwargs,
        )
        self.agent = agent
        self.packs = packs
        self.config = config

    def execute(self, context: Any) -> Any:
        """Asks the person, and waits for the answer.  Raises InvalidInput, NotFound, Corrupt, Unavailable."""
        if not self.packs:
            self.log.info("there is nothing to ask: no work was found")
            return None
        self.body = self.asked(context)
        return super().execute(context)

    def asked(self, context: Any) -> str:
        """Returns the question to the person.  Raises InvalidInput, NotFound, Corrupt, Unavailable."""
        named = named_lake(self.config, context.get("params"))
        return question(work_of(self.agent, self.packs, named=named), lake=without_secrets(named))

    def execute_complete(self, context: Any, event: dict[str, Any]) -> Any:
        """Stores the answer, and skips `run` if it is a refusal.  Raises HITLTriggerEventError."""
        if "error" not in event:
            user = event.get("responded_by_user")
            answer = {"chosen_options": event["chosen_options"], "by": user["name"] if user else ""}
            context["ti"].xcom_push(ANSWER, answer)
        return super().execute_complete(context, event)
