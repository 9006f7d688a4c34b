"""Two tables: the agents, with the facts in which they differ, and the parameters of their runs; pure.

Every list of agents comes from the first table: which agents the hours limit, which parameters a run may have,
which tasks go first, which agents may ask a person, and which ones a group or a page combines.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from typing import Any

from log_lake.compaction.strategies import names


class Purpose(Enum):
    """What an agent is for (to load data, or to keep it in order); this decides how long its work may wait."""

    LOADING = "loads files that readers wait for"
    DUE = "does work that is due by a date"
    UPKEEP = "keeps stored data in order, only within the pool's upkeep.window"


@dataclass(frozen=True, kw_only=True)
class AgentRow:
    """The row of one agent; `agent.Agent` does its work.

    `says`: its work, in a line.  `parameters`: the names that a run may set in addition to `request.COMMON`.

    `deletes`: its deletions are final, so a person may be asked first.  `by_pool`: a run needs to name nothing
    except a pool.  `together`: one Spark application does all its work at once.  `remembers`: if it found
    nothing to do in a pool and nothing was written since, it skips the pool for this many seconds (`quiet`); 0
    means that it skips none.  `after`: the agent that must run first if both work in one run, because that
    agent does a part of this one's work.  `schedule`: when its own DAG runs, unless a variable says otherwise.
    `by_interval`: the schedule divides time into intervals, and each run works on one of them.
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
    schedule: str = "@daily"
    by_interval: bool = False

    def load(self) -> Any:
        """Imports and returns the agent itself (`agent.Agent`): a list of agents need not import all of
        them."""
        return import_module(f"log_lake.agents.{self.name}.run").AGENT


class ParameterKind(Enum):
    """The type of a parameter of a run; the value of each member is its name in words."""

    TEXT = "a text"
    FLAG = "true or false"
    TEXTS = "a list of texts"
    COUNT = "a whole number of at least 1"


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A parameter of an agent's runs: an option of `lake-agent`, and a field of Airflow's trigger form.

    `says` is its help, as an instruction; `title` names the field.  `default` is the value of a run that does
    not give it.  `examples`: values that the form offers.  `choices`: the texts that are allowed; None: any
    text.
    """

    kind: ParameterKind = ParameterKind.TEXT
    title: str
    says: str
    default: str | bool | None = None
    examples: tuple[str, ...] = ()
    choices: Callable[[], tuple[str, ...]] | None = None


PARAMETERS = {
    "branch": Parameter(
        title="Branch", says="work on this branch; default: main", default="", examples=("main",)
    ),
    "limit": Parameter(
        kind=ParameterKind.COUNT,
        title="Limit",
        says="work on at most so many batches of files, or pools; the rest waits for the next run",
    ),
    "strategy": Parameter(
        title="Strategy", says="use this instead of each pool's compact.strategy", choices=names
    ),
    "at_once": Parameter(
        kind=ParameterKind.FLAG,
        title="At once",
        says="apply all deletes now, ignoring each pool's tombstones.apply",
        default=False,
    ),
    "wait": Parameter(
        kind=ParameterKind.FLAG,
        title="Wait for batches to fill",
        says="let a batch that is not full wait for the pool's ingest.batch_age; default: it waits",
        default=True,
    ),
    "bulk": Parameter(
        kind=ParameterKind.FLAG,
        title="Bulk import",
        says="sort each batch as a whole, by ranges of keys, so that no two of its objects share a key",
        default=False,
    ),
    "files": Parameter(
        kind=ParameterKind.TEXTS, title="Files", says="append these files, without an interval"
    ),
    "where": Parameter(
        title="Where", says="erase records that fulfil this condition, in the pools that are named"
    ),
    "key": Parameter(
        title="Key",
        says="erase records of this key: the value as text; a JSON list of values if the key has several fields",
    ),
    "from": Parameter(title="From key", says="erase records from this key on (inclusive)"),
    "to": Parameter(title="To key", says="erase records up to this key (exclusive)"),
    "grace": Parameter(
        title="Grace",
        says="take uncommitted objects for those of a load for so long; default: vacuum.grace",
        examples=("1h", "1d", "7d"),
    ),
    "keep_history": Parameter(
        kind=ParameterKind.FLAG,
        title="Keep the history",
        says="do not purge the journal, whose entries may hold keys and bounds of the records",
        default=False,
    ),
}
"""The parameters of single agents; the row of an agent says which it has."""

KINDS = {
    "lake": ParameterKind.TEXT,
    "pools": ParameterKind.TEXTS,
    "dry_run": ParameterKind.FLAG,
    **{name: parameter.kind for name, parameter in PARAMETERS.items()},
}
"""The types of all parameters of all agents, including those that every agent has."""

DAY, WEEK = 86_400.0, 604_800.0
"""In seconds.  An agent that runs once a day must remember for longer than a day; otherwise its memory has no
effect."""

_TABLE = (
    AgentRow(
        name="ingest",
        says="Loads new files, each once",
        purpose=Purpose.LOADING,
        parameters=("wait", "bulk", "limit"),
        remembers=DAY,
        schedule="*/5 * * * *",
    ),
    AgentRow(
        name="intervals",
        says="A run replaces exactly its interval of time",
        purpose=Purpose.LOADING,
        parameters=("branch", "files"),
        by_pool=False,
        by_interval=True,
    ),
    AgentRow(
        name="derive",
        says="Keeps derived pools, which hold the answer of a query",
        purpose=Purpose.LOADING,
        parameters=("limit",),
        schedule="*/10 * * * *",
    ),
    AgentRow(
        name="compact",
        says="Merges pools in which many loads overlap",
        purpose=Purpose.UPKEEP,
        parameters=("branch", "limit", "strategy"),
        remembers=DAY,
        schedule="15 * * * *",
    ),
    AgentRow(
        name="split",
        says="Splits large ranges of keys, joins small ones",
        purpose=Purpose.UPKEEP,
        parameters=("limit",),
        remembers=DAY,
        schedule="5 * * * *",
    ),
    AgentRow(
        name="tombstones",
        says="Removes deleted records from the objects",
        purpose=Purpose.UPKEEP,
        parameters=("branch", "limit", "at_once"),
        remembers=DAY,
        after="compact",
        schedule="45 * * * *",
    ),
    AgentRow(
        name="index",
        says="Makes the indexes that objects lack",
        purpose=Purpose.UPKEEP,
        parameters=("limit",),
        remembers=WEEK,
        after="compact",
        schedule="35 2 * * *",
    ),
    AgentRow(
        name="checkpoint",
        says="Saves states, so that pools open quickly; purges old entries",
        purpose=Purpose.UPKEEP,
        parameters=("limit",),
        together=True,
        remembers=DAY,
        schedule="@hourly",
    ),
    AgentRow(
        name="retention",
        says="Expires old records; deletes objects that nothing needs",
        purpose=Purpose.UPKEEP,
        deletes=True,
        remembers=WEEK,
        schedule="15 3 * * *",
    ),
    AgentRow(
        name="erasure",
        says="Erases records from every object; resumes pending erasures",
        purpose=Purpose.DUE,
        parameters=("where", "key", "from", "to", "grace", "keep_history"),
        deletes=True,
        by_pool=False,
        remembers=WEEK,
        schedule="30 4 * * *",
    ),
)

AGENTS = {agent.name: agent for agent in _TABLE}
"""The agents by name."""


def group_name(agent: str) -> str:
    """Returns the name of the agent's task group in Airflow, such as CompactGroup."""
    return f"{agent.title()}Group"


def names_of(purpose: Purpose) -> tuple[str, ...]:
    """Returns the names of the agents with that purpose, in the order of the table."""
    return tuple(agent.name for agent in _TABLE if agent.purpose is purpose)
