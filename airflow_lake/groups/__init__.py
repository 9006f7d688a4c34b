"""Task groups: the agents, for any DAG.

`LakeUpkeep` keeps pools in order; each agent is also a group of its own.  `LakeConfig` names the lake and the
pools.

    config        what a group works on
    agent         the tasks of one agent: find, run, report
    agents        a group for each agent
    upkeep        the agents of upkeep as one group
    pack          at most 64 mapped tasks
    tasks         what the tasks do
    transaction   a group of tasks that commits in all pools or in none
    form          an agent as a DAG of its own
    approval, question   ask a person before an agent deletes

Names are imported when they are first used, so that the pure modules load without Airflow.
"""

from typing import TYPE_CHECKING

from lake_core.faces import on_demand
from log_lake.agents.roster import AGENTS, group_name

_FROM = dict.fromkeys(map(group_name, AGENTS), "agents") | {
    "LakeConfig": "config",
    "LakeTransaction": "transaction",
    "LakeUpkeep": "upkeep",
    "agent_config": "form",
    "agent_dag": "form",
}

if TYPE_CHECKING:
    from airflow_lake.groups.agent import AgentGroup
    from airflow_lake.groups.agents import ErasureGroup as ErasureGroup
    from airflow_lake.groups.agents import IntervalsGroup as IntervalsGroup
    from airflow_lake.groups.config import LakeConfig as LakeConfig
    from airflow_lake.groups.form import agent_config as agent_config
    from airflow_lake.groups.form import agent_dag as agent_dag
    from airflow_lake.groups.transaction import LakeTransaction as LakeTransaction
    from airflow_lake.groups.upkeep import LakeUpkeep as LakeUpkeep

    def __getattr__(name: str) -> type[AgentGroup]:
        """`CompactGroup`, and so on."""
else:
    __getattr__ = on_demand(__name__, _FROM)

__all__ = sorted(_FROM)  # noqa: PLE0605
