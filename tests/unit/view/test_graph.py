"""The history as a graph: every transaction is a node, and what it rests on is a link."""

from __future__ import annotations

import pyarrow as pa
import pytest

from log_lake.lake import Lake
from log_lake.stores.memory import MemoryStore
from log_lake.view.graph import MAX_TEXT, Graph, Link, graph


@pytest.fixture
def lake() -> Lake:
    lake = Lake.create_on(MemoryStore(), author="ada")
    lake.create_pool("logs", key="k").branch().append(pa.table({"k": [1]}), message="first")
    return lake


def drawn(lake: Lake, *, after: int = 0, until: int | None = None) -> Graph:
    pool = lake.pool("logs")
    history = pool.history
    loaded = history.load()
    entries = list(history.journal.between(after, loaded.version if until is None else until))
    return graph("logs", entries, loaded.state, key=pool.config.key, newest=loaded.version, first=1)


def test_a_transaction_says_who_did_what_when_and_why(lake: Lake) -> None:
    (node,) = drawn(lake).nodes
    assert (node.version, node.branch, node.author, node.message) == (1, "main", "ada", "first")
    assert node.actions == {"set_schema": 1, "add_object": 1}
    assert node.says == "loaded 1 record"
    assert node.links == []


def test_a_merge_and_a_beginning_link_two_branches(lake: Lake) -> None:
    pool = lake.pool("logs")
    pool.create_branch("dev")
    pool.branch("dev").append(pa.table({"k": [2]}))
    pool.branch("main").append(pa.table({"k": [3]}))
    pool.branch("main").merge("dev")
    links = {(node.branch, node.version): node.links for node in drawn(lake).nodes}
    assert links[("dev", 2)] == [Link(1, "main", "branch")]
    assert links[("dev", 3)] == [Link(2, "dev", "parent")]
    assert links[("main", 4)] == [Link(1, "main", "parent")]
    assert links[("main", 5)] == [Link(4, "main", "parent"), Link(3, "dev", "merge")]


def test_lanes_are_main_then_branches_by_age_then_deleted_ones(lake: Lake) -> None:
    pool = lake.pool("logs")
    for name in ("b", "a", "c"):
        pool.create_branch(name)
    pool.delete_branch("b")
    lanes = drawn(lake).lanes
    assert [(lane.name, lane.lane, lane.live) for lane in lanes] == [
        ("main", 0, True),
        ("a", 1, True),
        ("c", 2, True),
        ("b", 3, False),
    ]


def test_tags_are_labels_and_those_of_deleted_branches_say_so(lake: Lake) -> None:
    pool = lake.pool("logs")
    pool.tag("v1")
    pool.create_branch("dev")
    pool.delete_branch("dev")
    tags = {tag.name: (tag.version, tag.branch, tag.deleted) for tag in drawn(lake).tags}
    assert tags.pop("v1") == (1, "main", False)
    ((_, branch, deleted),) = tags.values()
    assert (branch, deleted) == ("dev", True)


def test_a_part_of_the_history_says_how_far_it_goes(lake: Lake) -> None:
    for key in range(5):
        lake.pool("logs").branch().append(pa.table({"k": [key]}))
    part = drawn(lake, after=2, until=4)
    assert [node.version for node in part.nodes] == [4, 3]
    assert (part.oldest, part.newest, part.first) == (3, 6, 1)


def test_long_texts_are_cut() -> None:
    store = MemoryStore()
    Lake.create_on(store)
    lake = Lake.open_on(store, metadata={"why": "y" * 900})
    lake.create_pool("logs", key="k").branch().append(pa.table({"k": [1]}), message="x" * 900)
    (node,) = drawn(lake).nodes
    assert (len(node.message), len(node.metadata["why"])) == (MAX_TEXT, MAX_TEXT)
