"""Links from a task to the view."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from airflow_lake.effects import Effect
from airflow_lake.links import PoolLink, TransactionLink


@pytest.mark.parametrize("link", [PoolLink(), TransactionLink()], ids=["pool", "transaction"])
def test_a_task_whose_templates_could_not_be_filled_in_has_no_link(link: Any) -> None:
    """Then its pool is still what the DAG says, such as the result of another task."""
    planned = [Effect(lake="lake_default", pool=object())]  # type: ignore[arg-type]
    task = SimpleNamespace(effects=(), planned_effects=lambda: planned)
    assert link.get_link(task, ti_key=None) == ""
