"""A compaction strategy is one function, found by its name; a new one touches no other file."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from lake_core.errors import InvalidInput
from lake_core.keys import KeyRange
from lake_core.phrases import choices
from log_lake.agents.compact.run import compact_pool, plan_pool
from log_lake.compaction import strategies
from log_lake.compaction.layout import Run
from log_lake.compaction.planner import ChosenRuns, Planner
from log_lake.lake import Lake
from log_lake.lake.pool import Pool
from log_lake.stores.memory import MemoryStore
from tests.support.repository import ROOT


def newest_two(planner: Planner) -> None:
    """Merge the two newest runs where the pool is too deep."""

    def choose(runs: Sequence[Run], taken: Sequence[KeyRange]) -> ChosenRuns:
        return runs[-2:], "the two newest"

    planner.claim(planner.references, least=planner.policy.depth + 1, choose=choose)


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """`newest_two` is a strategy for the length of a test."""
    monkeypatch.setattr(strategies, "_registered", {})
    strategies.register("newest_two", newest_two)


def deep(lake: Lake) -> Pool:
    pool = lake.create_pool("p", key="k", settings={"compact.depth": "2"})
    for n in range(4):
        pool.branch().append(pa.table({"k": [1, 2], "n": [n, n]}))
    return pool


@pytest.mark.usefixtures("registered")
def test_a_strategy_of_a_program_is_registered_chosen_and_carried_out() -> None:
    lake = Lake.create_on(MemoryStore(), author="test")
    pool = deep(lake)
    lake.catalog.configure("p", {"compact.strategy": "newest_two"})
    plan = plan_pool(lake, "p", now=lake.context.now())
    (job,) = plan.jobs
    assert (job.why, len(job.inputs)) == ("the two newest", 2)
    assert {r.seq for r in job.inputs} == set(sorted(r.seq for r in pool.at().references)[2:])
    compact_pool(lake, "p", plan)
    assert (pool.at().depth, pool.at().records) == (3, 8)


@pytest.mark.usefixtures("registered")
def test_a_name_that_is_taken_is_refused() -> None:
    for name in ("newest_two", "full"):
        with pytest.raises(InvalidInput, match=f"strategy '{name}' exists already"):
            strategies.register(name, newest_two)


def test_an_unknown_strategy_is_refused_with_the_list_of_those_that_exist() -> None:
    lake = Lake.create_on(MemoryStore(), author="test")
    deep(lake)
    listed = re.escape(f"use {choices(strategies.names())}")
    with pytest.raises(InvalidInput, match=listed):
        lake.catalog.configure("p", {"compact.strategy": "newest_two"})
    with pytest.raises(InvalidInput, match=listed):
        plan_pool(lake, "p", strategy="newest_two", now=0.0)


def test_every_module_of_the_folder_defines_the_strategy_of_its_name() -> None:
    for name in strategies.names():
        module = importlib.import_module(f"{strategies.__name__}.{name}")
        assert strategies.find_strategy(name) is getattr(module, name)


def test_the_strategy_of_the_documentation_can_be_chosen_as_a_file_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "docs/compaction.md").read_text()
    (code,) = re.findall(r'^```python\n("""Oldest.*?)^```', page, re.MULTILINE | re.DOTALL)
    (tmp_path / "oldest.py").write_text(code)
    monkeypatch.setattr(strategies, "__path__", [*strategies.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, f"{strategies.__name__}.oldest", raising=False)
    lake = Lake.create_on(MemoryStore(), author="test")
    deep(lake)
    lake.catalog.configure("p", {"compact.strategy": "oldest"})
    plan = plan_pool(lake, "p", now=lake.context.now())
    assert [(job.why, len(job.inputs)) for job in plan.jobs] == [("the oldest runs", 3)]
    assert plan.depth_after == 2


def test_the_names_are_known_without_the_engine() -> None:
    code = (
        "import sys; from log_lake.compaction import strategies; print(*strategies.names());"
        "assert not {'pyarrow', 'numpy'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=600, check=True
    )
    assert done.stdout.split() == list(strategies.names())
