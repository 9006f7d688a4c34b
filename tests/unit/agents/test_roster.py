"""The table of the agents: every agent is in it, and its facts are those that the agents go by."""

from __future__ import annotations

import pytest

from log_lake.agents.request import COMMON, Request
from log_lake.agents.roster import AGENTS, KINDS, PARAMETERS, Purpose, names_of
from tests.support.repository import ROOT


def test_every_folder_of_an_agent_is_in_the_table() -> None:
    assert sorted(AGENTS) == sorted(
        path.parent.name for path in (ROOT / "log_lake/agents").glob("*/__init__.py")
    )


def test_upkeep_is_what_hours_bind_and_what_takes_away_is_told() -> None:
    assert names_of(Purpose.UPKEEP) == ("compact", "split", "tombstones", "index", "checkpoint", "retention")
    assert names_of(Purpose.LOADING) == ("ingest", "intervals", "derive")
    assert [agent.name for agent in AGENTS.values() if agent.deletes] == ["retention", "erasure"]


@pytest.mark.parametrize("agent", AGENTS)
def test_every_parameter_of_an_agent_is_one_that_a_request_can_read(agent: str) -> None:
    parameters = AGENTS[agent].parameters
    asked = Request.read({"lake": "x"} | dict.fromkeys(parameters), also=parameters)
    assert asked.lake == "x"
    assert not set(parameters) & set(COMMON)


def test_every_parameter_is_of_an_agent_and_says_what_it_does_as_an_instruction() -> None:
    assert set(PARAMETERS) == {name for agent in AGENTS.values() for name in agent.parameters}
    assert set(KINDS) == set(PARAMETERS) | set(COMMON)
    for parameter in PARAMETERS.values():
        assert parameter.title[0].isupper()
        assert parameter.says[0].islower()
        assert not parameter.says.endswith(".")
