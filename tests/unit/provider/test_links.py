"""Links from a task to the view."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from airflow.sdk import DAG, BaseOperator
from airflow.sdk.definitions.xcom_arg import XComArg

from airflow_lake.effects import Effect
from airflow_lake.lineage import Tells
from airflow_lake.links import LINKS
from airflow_lake.operators.compact import LakeCompactOperator
from airflow_lake.operators.load import LakeLoadOperator

both = pytest.mark.parametrize("link", LINKS, ids=lambda link: str(link.name))


class Planning(Tells):
    """A task that has done nothing yet."""

    def __init__(self, effect: Effect) -> None:
        self.effect = effect

    def planned_effects(self) -> Iterable[Effect]:
        return [self.effect]


@both
@pytest.mark.parametrize("name", ["lake", "pool", "branch"])
def test_a_task_whose_templates_could_not_be_filled_in_has_no_link(link: Any, name: str) -> None:
    """Then its lake, its pool or its branch is still what the DAG says, such as the result of another task."""
    effect = Effect(lake="lake_default", pool="flights")
    with DAG("d", schedule=None):
        result = XComArg(BaseOperator(task_id="other"))
    assert "/lake_default" in link.get_link(Planning(effect), ti_key=None)
    assert link.get_link(Planning(replace(effect, **{name: result})), ti_key=None) == ""


@both
@pytest.mark.parametrize("operator", [LakeLoadOperator, LakeCompactOperator])
def test_an_operator_of_a_lake_that_another_task_names_has_no_link_before_it_is_named(
    link: Any, operator: Any
) -> None:
    files = {"files": "in.csv"} if operator is LakeLoadOperator else {}
    with DAG("d", schedule=None):
        named = XComArg(BaseOperator(task_id="other"))
        task = operator(task_id="t", pool_name="flights", lake=named, **files)
    assert link.get_link(task, ti_key=None) == ""


@both
def test_a_mapped_task_that_airflow_could_not_expand_has_no_link(link: Any) -> None:
    with DAG("d", schedule=None):
        mapped = LakeCompactOperator.partial(task_id="t").expand(pool_name=["a", "b"])
    assert link.get_link(mapped, ti_key=None) == ""
