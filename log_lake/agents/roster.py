"""The table of all agents, with the facts in which they differ; pure.

Every list of agents comes from this table: which agents the hours bind, which parameters a run may have, which
tasks go first, which agents may ask a person, and which ones a group or a page puts together.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from typing import Any


class Purpose(Enum):
    """Why an agent works; this decides how long its work may wait."""

    LOADING = "loads files that readers wait for"
    DUE = "does work that is due by a date"
    UPKEEP = "merges, saves or removes stored data, only within the pool's upkeep.window"


@dataclass(frozen=True, kw_only=True)
class AgentRow:
    """The row of one agent; `agent.Agent` does its work.

    `says`: its work, in a line.  `parameters`: the names that a run may set in addition to `request.COMMON`.

    `deletes`: its deletions are final, so a person may be asked first.  `by_pool`: a run needs to name nothing
    but a pool. `together`: one application of Spark does all its work at once.  `remembers`: if it found nothing
    to do in a pool and nothing was written since, it skips the pool for this many seconds (`quiet`); 0: it skips
    none.  `after`: the agent that must run first if both work in one run, because it does a part of this one's
    work.
    """

    name: str
    says: str
    purpose: Purpose
    parameters: tuple[str, ...] = ("branch", "limit")
    deletes: bool = False
    by_pool: bool = True
    together: bool = False
    remembers: float = 0.0
    after: str = ""

    def load(self) -> Any:
        """The agent itself (`agent.Agent`), imported now: a list of agents need not import all of them."""
        return import_module(f"log_lake.agents.{self.name}.run").AGENT


class ParameterKind(Enum):
    """The type of a parameter, in words."""

    TEXT = "a text"
    FLAG = "true or false"
    TEXTS = "a list of texts"
    COUNT = "a whole number of at least 1"


PARAMETERS = {
    "lake": ParameterKind.TEXT,
    "pools": ParameterKind.TEXTS,
    "dry_run": ParameterKind.FLAG,
    "branch": ParameterKind.TEXT,
    "limit": ParameterKind.COUNT,
    "strategy": ParameterKind.TEXT,
    "wait": ParameterKind.FLAG,
    "files": ParameterKind.TEXTS,
    "where": ParameterKind.TEXT,
    "key": ParameterKind.TEXT,
    "from": ParameterKind.TEXT,
    "to": ParameterKind.TEXT,
    "grace": ParameterKind.TEXT,
    "keep_history": ParameterKind.FLAG,
}
"""All parameters of all agents."""

DAY, WEEK = 86_400.0, 604_800.0
"""In seconds.  What runs once a day must remember for longer than a day, otherwise it remembers nothing."""

_TABLE = (
    AgentRow(
        name="ingest",
        says="Loads new files, each once",
        purpose=Purpose.LOADING,
        parameters=("wait", "limit"),
        remembers=DAY,
    ),
    AgentRow(
        name="intervals",
        says="A run replaces exactly its interval of time",
        purpose=Purpose.LOADING,
        parameters=("branch", "files"),
        by_pool=False,
    ),
    AgentRow(
        name="compact",
        says="Merges pools in which many loads overlap",
        purpose=Purpose.UPKEEP,
        parameters=("branch", "limit", "strategy"),
        remembers=DAY,
    ),
    AgentRow(
        name="tombstones",
        says="Removes deleted records from the objects",
        purpose=Purpose.UPKEEP,
        remembers=DAY,
        after="compact",
    ),
    AgentRow(
        name="checkpoint",
        says="Saves states, so that pools open quickly; purges old entries",
        purpose=Purpose.UPKEEP,
        parameters=("limit",),
        together=True,
        remembers=DAY,
    ),
    AgentRow(
        name="retention",
        says="Expires old records; deletes objects that nothing needs",
        purpose=Purpose.UPKEEP,
        deletes=True,
        remembers=WEEK,
    ),
    AgentRow(
        name="erasure",
        says="Erases records from every object; resumes pending erasures",
        purpose=Purpose.DUE,
        parameters=("where", "key", "from", "to", "grace", "keep_history"),
        deletes=True,
        by_pool=False,
        remembers=WEEK,
    ),
)

AGENTS = {agent.name: agent for agent in _TABLE}
"""By name."""


def group_name(agent: str) -> str:
    """The name of the agent's task group in Airflow: CompactGroup."""
    return f"{agent.title()}Group"


def names_of(purpose: Purpose) -> tuple[str, ...]:
    """The names of the agents with that purpose, in the order of the table."""
    return tuple(agent.name for agent in _TABLE if agent.purpose is purpose)
