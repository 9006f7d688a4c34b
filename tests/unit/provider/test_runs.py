"""What a run gives its tasks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from airflow_lake.groups.bounds import Bounds
from airflow_lake.groups.config import LakeConfig
from airflow_lake.runs import params_of
from lake_core.errors import InvalidInput


def context(params: dict[str, Any], conf: dict[str, Any] | None) -> dict[str, Any]:
    return {"params": params, "dag_run": SimpleNamespace(conf=conf)}


def test_a_conf_that_does_not_count_is_refused_since_it_may_say_dry_run() -> None:
    """With dag_run_conf_overrides_params=False Airflow leaves it out of the parameters."""
    for conf in ({"dry_run": True}, {"dryrun": True}):
        with pytest.raises(InvalidInput, match="dag_run_conf_overrides_params is False"):
            params_of(context({"dry_run": False}, conf), task="find")
    for params, right in (({"dry_run": True}, {"dry_run": True}), ({"dry_run": False}, {}), ({}, None)):
        assert params_of(context(params, right), task="find") == params


@pytest.mark.parametrize(
    ("config", "reads"),
    [
        (LakeConfig(), False),
        (LakeConfig(pools=["{{ ds }}"]), False),
        (LakeConfig(dry_run="{{ params.dry_run }}"), True),
        (LakeConfig(pools=["{{ dag_run.conf.pool }}"]), True),
        (LakeConfig(asked={"files": ["{{ params.file }}"]}), True),
    ],
)
def test_a_group_reads_parameters_if_it_takes_them_or_a_template_does(
    config: LakeConfig, reads: bool
) -> None:
    assert Bounds.of(config, params=None, takes_params=False).reads_params is reads
    assert Bounds.of(config, params=None, takes_params=True).reads_params
