"""The commands that do an agent's work are jobs too, in a lake that keeps jobs."""

from __future__ import annotations

from typing import Any

import pytest

from log_lake.agents.jobs import recorded
from log_lake.cli.jobs import figures_text
from log_lake.lake import Lake
from tests.support.command import Command

COMMANDS = {
    "compact": ("compact", ("compact", "p")),
    "tombstones": ("tombstones", ("tombstones", "p", "--at-once")),
    "checkpoint": ("checkpoint", ("checkpoint", "p")),
    "purge": ("checkpoint", ("purge", "p", "--keep", "0s")),
    "expire": ("retention", ("expire", "p")),
    "vacuum": ("retention", ("vacuum", "p", "--grace", "0s")),
}


@pytest.fixture
def kept(lake: Command) -> Lake:
    """A lake that keeps jobs, with a pool in which each command finds work."""
    lake("create", "p", "--key", "k", "--set", "expire.records=20")
    for _ in range(12):
        lake.load_records("p", [{"k": 1}, {"k": 2}])
    lake("delete", "p", "--where", "k = 1")
    opened = Lake.open(lake.uri)
    with recorded(opened, agent="ingest", pool_name="p"):
        pass
    return opened


def jobs(lake: Command) -> list[dict[str, Any]]:
    return [job for job in lake("jobs", "--json").records if job["agent"] != "ingest"]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_a_job_of_the_agent_whose_work_it_does(lake: Command, kept: Lake, command: str) -> None:
    agent, arguments = COMMANDS[command]
    lake(*arguments)
    (job,) = jobs(lake)
    assert (job["agent"], job["pool"], job["state"], job["run"]) == (agent, "p", "done", {})


def test_a_dry_run_is_no_job(lake: Command, kept: Lake) -> None:
    for _, arguments in COMMANDS.values():
        lake(*arguments, "--dry-run")
    assert jobs(lake) == []


def test_the_figures_of_a_command_are_those_of_its_result(lake: Command, kept: Lake) -> None:
    lake("compact", "p")
    (job,) = jobs(lake)
    assert (job["figures"]["depth_before"], job["figures"]["depth_after"], job["figures"]["jobs"]) == (
        12,
        1,
        1,
    )


def test_a_lake_without_agents_gets_no_pool_of_jobs(lake: Command) -> None:
    lake("create", "p", "--key", "k")
    lake("compact", "p", "--json")
    assert [pool["pool"] for pool in lake("ls", "--json").records] == ["p"]


def test_jobs_of_an_agent_that_there_is_not_are_refused(lake: Command) -> None:
    refused = lake.fails(2, "jobs", "--agent", "compakt")
    assert "unknown --agent 'compakt': did you mean 'compact'?" in refused


def test_bytes_have_a_unit_and_counts_have_none() -> None:
    figures = {"inputs": 1200, "size_in": 1_234_567, "expired_size": 0, "freed": 999}
    assert figures_text(figures) == "inputs 1,200, size_in 1.2 MB, freed 999 B"


def test_what_a_job_gained_stands_before_what_it_did() -> None:
    figures = {
        "depth_before": 12,
        "depth_after": 1,
        "jobs": 2,
        "size_before": 2_000_000,
        "size_after": 1_000_000,
    }
    same = {"objects_before": 3, "objects_after": 3}
    assert figures_text(figures | same) == "depth 12 -> 1, size 2.0 MB -> 1.0 MB, jobs 2"


def test_what_upkeep_cost_is_in_the_job_and_in_sql(lake: Command, kept: Lake) -> None:
    lake("compact", "p")
    (job,) = jobs(lake)
    cost = job["cost"]
    assert (cost["commits"], cost["races_lost"]) == (1, 0)
    assert min(cost["reads"], cost["writes"], cost["received"], cost["sent"]) > 0
    assert {"rewriting.plan", "rewriting.write", "rewriting.commit"} <= cost["seconds"].keys()
    sql = """SELECT agent, sum(cost.reads + cost.lists) AS reads, sum(cost.sent) AS sent
             FROM "$jobs" WHERE agent = 'compact' GROUP BY agent"""
    (row,) = lake("query", sql, "--json").records
    assert row == {"agent": "compact", "reads": cost["reads"] + cost["lists"], "sent": cost["sent"]}
    assert (
        f"{sum(cost[kind] for kind in ('reads', 'lists', 'writes', 'deletes'))} requests" in lake("jobs").out
    )
