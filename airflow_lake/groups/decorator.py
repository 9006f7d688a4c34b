"""`@lake_task`: Airflow's `@task` for the tasks of the groups; lineage and links use the effects of such a
task."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, ClassVar

from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk.bases.decorator import DecoratedOperator, task_decorator_factory

from airflow_lake.effects import Effect
from airflow_lake.groups.tasks import planned
from airflow_lake.lineage import Tells
from airflow_lake.links import LINKS
from airflow_lake.rendering import KeepsTexts
from airflow_lake.tries import sentence_last


class LakeTaskOperator(KeepsTexts, Tells, DecoratedOperator, PythonOperator):
    """A function as a task that records its `effects`.  `agent` is the name of the agent if this is an agent's
    task `run`."""

    custom_operator_name = "@lake_task"
    operator_extra_links = LINKS
    template_fields: ClassVar[tuple[str, ...]] = ("templates_dict", "op_args", "op_kwargs")
    template_fields_renderers: ClassVar[dict[str, str]] = {
        "templates_dict": "json",
        "op_args": "py",
        "op_kwargs": "py",
    }

    def __init__(self, *, agent: str = "", **kwargs: Any) -> None:
        upstream = {name: kwargs.get(name) for name in ("python_callable", "op_args", "op_kwargs")}
        super().__init__(kwargs_to_upstream=upstream, **kwargs)
        self.agent = agent

    def execute(self, context: Any) -> Any:
        """Calls the function.  If it raises an error of the lake, the log ends with the error's sentence."""
        return sentence_last(partial(super().execute, context))

    def planned_effects(self) -> Iterable[Effect]:
        """Returns the effects that the packs of a task `run` ask for; other tasks have none."""
        if not self.agent:
            return []
        one = self.op_kwargs.get("work")
        packs = [one] if one else self.op_kwargs.get("packs") or []
        return planned(self.agent, packs, self.op_kwargs["config"], params=self.params_of_run)


def lake_task(function: Callable[..., Any] | None = None, **kwargs: Any) -> Any:
    """Makes a task from a function, as Airflow's `@task` does, which records its effects on pools."""
    return task_decorator_factory(
        python_callable=function, decorated_operator_class=LakeTaskOperator, **kwargs
    )
