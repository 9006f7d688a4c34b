"""What a task group works on: what a DAG file says, and what a run asks for."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_lake.groups.config import LakeConfig, request_of
from lake_core.errors import InvalidInput


def test_a_config_is_a_request_in_plain_values() -> None:
    config = LakeConfig(lake="c", pools=["a"], branch="dev", spark="s", dry_run=True)
    assert config.plain(agent="compact", also=("branch",)) == {
        "request": {"lake": "c", "pools": ["a"], "dry_run": True, "branch": "dev"},
        "spark": "s",
        "filled": [],
    }
    assert LakeConfig().plain(agent="ingest", also=()) == {
        "request": {"lake": "", "pools": [], "dry_run": False},
        "spark": "",
        "filled": [],
    }


@pytest.mark.parametrize(
    "config", [LakeConfig(branch="dev"), LakeConfig(asked={"strategy": "full"})], ids=["branch", "asked"]
)
def test_what_an_agent_does_not_know_is_refused_when_the_file_is_parsed(config: LakeConfig) -> None:
    with pytest.raises(
        ValueError, match=r"the agent ingest has no parameter '(branch|strategy)'; it has lake,"
    ):
        config.plain(agent="ingest", also=("wait",))


def test_pools_are_a_list() -> None:
    for pools in ("flights", None, 5):
        with pytest.raises(ValueError, match="must be a list of names"):
            LakeConfig(pools=pools)  # type: ignore[arg-type]


def test_what_is_asked_has_names() -> None:
    for asked in (None, ["wait"], "wait"):
        with pytest.raises(ValueError, match="asked must be parameters by name"):
            LakeConfig(asked=asked)  # type: ignore[arg-type]


def test_a_task_takes_at_least_one_slot() -> None:
    for slots in (0, "2", 1.5, True):
        with pytest.raises(ValueError, match="pool_slots must be a whole number, at least 1"):
            LakeConfig(pool_slots=slots)  # type: ignore[arg-type]


def test_the_pool_of_airflow_is_that_of_the_dag_unless_one_is_named() -> None:
    assert (LakeConfig().pool_args, LakeConfig().slot_args) == ({}, {})
    config = LakeConfig(airflow_pool="upkeep", pool_slots=2)
    assert (config.pool_args, config.slot_args) == ({"pool": "upkeep"}, {"pool_slots": 2})


def test_pools_with_a_template_are_not_known_when_the_file_is_parsed() -> None:
    assert LakeConfig(pools=["a", "b"]).named_pools == ("a", "b")
    assert LakeConfig(pools=["a", "{{ params.pool }}"]).named_pools == ()
    assert LakeConfig(pools=["a"], lake="{{ var.value.lake }}").named_pools == ()
    assert LakeConfig().named_pools == ()


def test_parameters_of_a_run_that_are_set_take_precedence() -> None:
    config = LakeConfig(lake="c", pools=["a"]).plain(agent="compact", also=("branch",))
    assert request_of(config, None) == {"lake": "c", "pools": ["a"], "dry_run": False}
    params = {"lake": "", "pools": ["b"], "dry_run": True, "wait": False, "key": None}
    assert request_of(config, params) == {
        "lake": "c",
        "pools": ["b"],
        "dry_run": True,
        "wait": False,
        "key": None,
    }
    assert request_of(config, {"pols": ["b"]})["pols"] == ["b"], "the agent refuses what it does not know"


def test_one_config_serves_many_runs() -> None:
    config = LakeConfig(pools=["a"]).plain(agent="compact", also=())
    request_of(config, {"pools": ["b"]})
    assert request_of(config, None)["pools"] == ["a"]


@pytest.mark.parametrize("value", [None, "", "None"], ids=repr)
def test_a_parameter_that_its_template_left_empty_is_refused(value: str | None) -> None:
    asked = {"from": "{{ params.low }}", "to": "k05"}
    config = LakeConfig(pools=["people"], asked=asked).plain(agent="erasure", also=("from", "to"))
    config["request"]["from"] = value
    with pytest.raises(InvalidInput, match="the parameter 'from' is empty after its template was filled in"):
        request_of(config, None)
    config["request"]["from"] = "k01"
    assert request_of(config, None)["from"] == "k01"


@pytest.mark.parametrize("value", [None, "", "None"], ids=repr)
@pytest.mark.parametrize("name", ["lake", "spark", "pools"])
def test_a_group_does_not_turn_to_the_default_lake_spark_or_pools_if_a_template_gives_nothing(
    name: str, value: str | None
) -> None:
    template: Any = ["a", "{{ params.x }}"] if name == "pools" else "{{ params.x }}"
    config = LakeConfig(**{name: template}).plain(agent="compact", also=())
    (config if name == "spark" else config["request"])[name] = ["a", value] if name == "pools" else value
    with pytest.raises(
        InvalidInput, match=f"the parameter '{name}' is empty after its template was filled in"
    ):
        request_of(config, None)
    left_out = LakeConfig().plain(agent="compact", also=())
    assert request_of(left_out, None)["lake"] == ""
