"""What a run gives its tasks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from airflow_lake.groups.bounds import Bounds
from airflow_lake.groups.config import LakeConfig
from airflow_lake.runs import check_typed, params_of, without_form
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


MARKED = frozenset({"dry_run", "confirm"})
FORM = {"lake": "l", "pools": ["people"], "key": "7", "dry_run": True, "confirm": None}
"""What the trigger form of an agent that deletes sends as it opens; the parameters of a run that it asks for."""


def asked(params: dict[str, Any], conf: dict[str, Any], marked: frozenset[str] = MARKED) -> dict[str, Any]:
    return without_form(params, conf, marked=marked)


def test_a_form_that_deletes_begins_with_a_dry_run_and_a_schedule_does_not() -> None:
    assert asked(FORM, FORM)["dry_run"] is True
    assert "dry_run" not in asked(FORM, {}), "a schedule sends nothing: the default is that of the form alone"
    for_real = {"pools": ["people"], "key": "7"}
    assert asked({**FORM, **for_real}, for_real) == {"lake": "l", **for_real}, (
        "nor does a program that says so little"
    )
    assert "confirm" not in asked(FORM, FORM), "no agent knows this parameter"


@pytest.mark.parametrize(
    ("pools", "typed", "may"),
    [
        (["people"], "people", True),
        (["people"], " people ", True),
        (["people", "guests"], "people guests", True),
        (["people", "guests"], "people", False),
        (["people"], "peeple", False),
        (["people"], None, False),
        (["people"], "", False),
        ([], "all pools", True),
        ([], "", False),
        ([], None, False),
    ],
)
def test_without_a_dry_run_the_form_wants_the_names_again(
    pools: list[str], typed: str | None, may: bool
) -> None:
    conf = {**FORM, "pools": pools, "dry_run": False, "confirm": typed}
    assert asked(conf, conf)["dry_run"] is False
    how = {"marked": MARKED, "what": "delete for good", "task": "find"}
    check_typed({}, pools, **how)  # a schedule sends no form
    if may:
        check_typed(conf, pools, **how)
        return
    with pytest.raises(InvalidInput, match=r"type '.*' in Confirm, or switch Dry run on; nothing was done"):
        check_typed(conf, pools, **how)


def test_a_dry_run_of_ones_own_dag_is_one_in_scheduled_runs_too() -> None:
    assert asked({"dry_run": True}, {}, marked=frozenset()) == {"dry_run": True}
