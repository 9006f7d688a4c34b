"""What a task group works on: what a DAG file says, and what a run asks for."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from airflow_lake.groups.config import LONGEST_WAIT, LakeConfig, in_dag, request_of
from lake_core.errors import InvalidInput
from log_lake.agents.packs import KEPT

CONF = {"spark.executor.memory": "8g"}


def test_a_config_is_a_request_in_plain_values() -> None:
    config = LakeConfig(lake="c", pools=["a"], branch="dev", spark="s", spark_conf=CONF, dry_run=True)
    assert config.plain(agent="compact", also=("branch",)) == {
        "request": {"lake": "c", "pools": ["a"], "dry_run": True, "branch": "dev"},
        "spark": "s",
        "spark_conf": {"spark.executor.memory": "8g"},
        "filled": [],
    }
    assert LakeConfig().plain(agent="ingest", also=()) == {
        "request": {"lake": "", "pools": [], "dry_run": False},
        "spark": "",
        "spark_conf": {},
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


def test_a_lake_and_a_spark_that_a_config_leaves_out_are_those_of_the_dag() -> None:
    args = {"lake": "two", "spark": "s", "branch": "dev", "retries": 0}
    own, named = LakeConfig(pools=["a"]), LakeConfig(lake="one", spark="t")
    assert in_dag(own, args) == LakeConfig(pools=["a"], lake="two", spark="s")
    assert in_dag(named, args) is named
    assert in_dag(own, {"retries": 0}) is own


def test_pools_are_a_list_or_one_name() -> None:
    assert LakeConfig(pools="flights").pools == ("flights",)
    for pools in (None, 5, [1], [""], {"a": 1}):
        with pytest.raises(ValueError, match="LakeConfig: pools must be a list of texts"):
            LakeConfig(pools=pools)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("field", "value"),
    [("lake", 5), ("branch", None), ("spark", []), ("dry_run", "perhaps"), ("approval", 1)],
)
def test_a_field_of_another_kind_is_refused_when_the_file_is_parsed(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"LakeConfig: {field} must be (a text|true or false)"):
        LakeConfig(**{field: value})


def test_a_flag_and_a_number_may_be_texts_as_templates_give_them() -> None:
    config = LakeConfig(dry_run="False", asked={"limit": "5", "wait": "true"}).plain(
        agent="ingest", also=("wait", "limit")
    )
    assert request_of(config, None) == {"lake": "", "pools": [], "dry_run": False, "limit": 5, "wait": True}
    late = LakeConfig(dry_run="{{ params.dry }}").plain(agent="ingest", also=())
    late["request"]["dry_run"] = "True"
    assert request_of(late, None)["dry_run"] is True
    for wrong in ("", "None", "perhaps"):
        late["request"]["dry_run"] = wrong
        with pytest.raises(InvalidInput, match="LakeConfig: dry_run must be true or false"):
            request_of(late, None)
    untyped = LakeConfig().plain(agent="ingest", also=())  # the parameter of a DAG of one's own
    assert request_of(untyped, {"dry_run": ""})["dry_run"] == "", "the agent refuses it"


def test_none_among_the_parameters_of_an_agent_is_refused() -> None:
    with pytest.raises(ValueError, match=r"LakeConfig: asked\['to'\] is None: give a value, or leave it out"):
        LakeConfig(asked={"from": "3", "to": None})


def test_an_empty_branch_is_main_and_a_template_is_no_asset_yet() -> None:
    assert LakeConfig(branch="").branch == "main"
    for branch in ("{{ params.b }}", "{% if x %}dev{% endif %}"):
        assert LakeConfig(pools=["a"], branch=branch).named_pools == ()


def test_what_is_asked_has_names() -> None:
    for asked in (None, ["wait"], "wait"):
        with pytest.raises(ValueError, match="asked must be parameters by name"):
            LakeConfig(asked=asked)  # type: ignore[arg-type]


@pytest.mark.parametrize("conf", [None, "8g", {"spark.executor.cores": 2}, {1: "x"}])
def test_settings_of_spark_are_texts_by_name(conf: Any) -> None:
    with pytest.raises(ValueError, match="spark_conf must be texts by the names of settings"):
        LakeConfig(spark_conf=conf)


@pytest.mark.parametrize("spark", ["", "{{ params.spark }}"])
def test_work_is_submitted_by_a_connection_that_is_known_when_the_file_is_parsed(spark: str) -> None:
    with pytest.raises(ValueError, match="submit needs spark, the id of a connection of type spark"):
        LakeConfig(spark=spark, submit={})
    with pytest.raises(ValueError, match="submit must be arguments of SparkSubmitOperator"):
        LakeConfig(spark="yarn", submit="cluster")  # type: ignore[arg-type]
    assert LakeConfig(spark="yarn", submit={"deploy_mode": "cluster"}).submit


def test_a_task_takes_at_least_one_slot() -> None:
    assert LakeConfig(pool_slots="2").pool_slots == 2  # type: ignore[arg-type]
    for slots in (0, "two", 1.5, True):
        with pytest.raises(ValueError, match="pool_slots must be a whole number of at least 1"):
            LakeConfig(pool_slots=slots)  # type: ignore[arg-type]


def test_the_pool_of_airflow_is_that_of_the_dag_unless_one_is_named() -> None:
    assert (LakeConfig().pool_args, LakeConfig().slot_args) == ({}, {})
    config = LakeConfig(airflow_pool="upkeep", pool_slots=2)
    assert (config.pool_args, config.slot_args) == ({"pool": "upkeep"}, {"pool_slots": 2})


def test_pools_with_a_template_are_not_known_when_the_file_is_parsed() -> None:
    assert LakeConfig(pools=["a", "b"]).named_pools == ("a", "b")
    assert LakeConfig(pools=["a", "{{ params.pool }}"]).named_pools == ()
    assert LakeConfig(pools=["a"], lake="{{ var.value.lake }}").named_pools == ()
    assert LakeConfig(pools=["a"], branch="{{ params.branch }}").named_pools == ()
    assert LakeConfig(pools=["a{% if x %}b{% endif %}"]).named_pools == ()
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
    with pytest.raises(InvalidInput, match="LakeConfig: from is empty after its template was filled in"):
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
    with pytest.raises(InvalidInput, match=f"LakeConfig: {name} is empty after its template was filled in"):
        request_of(config, None)
    left_out = LakeConfig().plain(agent="compact", also=())
    assert request_of(left_out, None)["lake"] == ""


def test_a_run_turns_a_dry_run_on_and_never_off() -> None:
    dry = LakeConfig(dry_run=True).plain(agent="compact", also=())
    real = LakeConfig().plain(agent="compact", also=())
    asked = [
        request_of(config, {"dry_run": said})["dry_run"] for config in (dry, real) for said in (True, False)
    ]
    assert asked == [True, True, True, False]


@pytest.mark.parametrize("timeout", [timedelta(0), timedelta(days=30), 7, None])
def test_an_approval_is_waited_for_no_longer_than_its_work_is_kept(timeout: Any) -> None:
    assert timedelta(seconds=KEPT) > LONGEST_WAIT
    with pytest.raises(ValueError, match="approval_timeout must be a timedelta above 0, at most 29 days"):
        LakeConfig(approval=True, approval_timeout=timeout)
