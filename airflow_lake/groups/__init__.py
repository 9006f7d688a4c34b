"""Task groups: the agents, to be put into any DAG.

`LakeUpkeep` keeps pools in order; each agent is a group of its own too.  `LakeConfig` says on which lake and pools.

    config     what a group works on            agent      find, run, report
    agents     the seven agents                 upkeep     four of them together
    pack       at most 64 mapped tasks          tasks      what the tasks do
    form       an agent as a DAG of its own     approval, question   a person is asked before an agent deletes

Names are imported when they are first used, so that the pure modules load without Airflow.
"""

from typing import TYPE_CHECKING

from lake_core.faces import on_demand

if TYPE_CHECKING:
    from airflow_lake.groups.agents import (
        CheckpointGroup,
        CompactGroup,
        ErasureGroup,
        IngestGroup,
        IntervalsGroup,
        RetentionGroup,
        TombstonesGroup,
    )
    from airflow_lake.groups.config import LakeConfig
    from airflow_lake.groups.form import agent_config, agent_dag
    from airflow_lake.groups.upkeep import LakeUpkeep

__all__ = [
    "CheckpointGroup",
    "CompactGroup",
    "ErasureGroup",
    "IngestGroup",
    "IntervalsGroup",
    "LakeConfig",
    "LakeUpkeep",
    "RetentionGroup",
    "TombstonesGroup",
    "agent_config",
    "agent_dag",
]

__getattr__ = on_demand(
    __name__,
    {
        "CheckpointGroup": "agents",
        "CompactGroup": "agents",
        "ErasureGroup": "agents",
        "IngestGroup": "agents",
        "IntervalsGroup": "agents",
        "LakeConfig": "config",
        "LakeUpkeep": "upkeep",
        "RetentionGroup": "agents",
        "TombstonesGroup": "agents",
        "agent_config": "form",
        "agent_dag": "form",
    },
)
