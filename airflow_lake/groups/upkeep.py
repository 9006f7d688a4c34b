"""All upkeep of pools as one group in a DAG of your own:

    with DAG("upkeep", schedule="@hourly"):
        LakeUpkeep(LakeConfig(lake="lake_default"))

The agents run in parallel: none conflicts with another, nor with a load.  Each looks at a pool before it starts
Spark.  Only the tombstones agent waits for the compact agent, which removes deleted records when it merges.  In
parallel both would rewrite the same objects, and one of them would lose its work.

If the config names pools, the group also works on the lake's own pools, because each of its runs adds to
`$jobs`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from airflow.sdk import TaskGroup

from airflow_lake import given
from airflow_lake.groups.agent import AgentGroup
from airflow_lake.groups.agents import GROUPS
from airflow_lake.groups.config import LakeConfig, checked
from lake_core.naming import MAIN
from log_lake.agents.roster import AGENTS, ParameterKind, Purpose, names_of


class LakeUpkeep(TaskGroup):
    """A group with the compact, split, tombstones, checkpoint and retention agents; `agents` chooses some of them
    by name."""

    def __init__(
        self,
        config: LakeConfig | None = None,
        *,
        group_id: str = "lake_upkeep",
        agents: Sequence[str] | str | None = None,
        default_args: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        names = names_of(Purpose.UPKEEP)
        chosen = names
        if agents is not None:
            chosen = given.declared(agents, "agents", ParameterKind.TEXTS, who="LakeUpkeep", fixed=True)
        if not chosen:
            raise ValueError(f"LakeUpkeep: agents is empty; the agents are {', '.join(names)}")
        if unknown := sorted(set(chosen) - set(names)):
            raise ValueError(f"LakeUpkeep: no agent {unknown[0]!r}; the agents are {', '.join(names)}")
        config = checked(config, who="LakeUpkeep")
        if config.approval and not any(AGENTS[name].deletes for name in chosen):
            raise ValueError(f"LakeUpkeep: approval has no meaning here: none of {', '.join(chosen)} deletes")
        super().__init__(group_id=group_id, default_args=dict(default_args or {}), **kwargs)
        self.config = config
        groups: dict[str, AgentGroup] = {}
        with self:
            for name in names:
                if name in chosen:
                    facts = AGENTS[name]
                    fits = self.config if "branch" in facts.parameters else replace(self.config, branch=MAIN)
                    fits = fits if facts.deletes else replace(fits, approval=False)
                    # a person who is asked about a few pools is not asked about the lake's own
                    own_pools = not fits.approval
                    # Airflow hands this group's default_args on
                    groups[name] = GROUPS[name](fits, after=groups.get(facts.after), own_pools=own_pools)
