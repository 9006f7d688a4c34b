"""The history of a pool as a graph: transactions are nodes, each branch has a lane; pure.

A transaction is linked to the one before it on its branch.  The first transaction of a branch is linked to the
version of the parent on which the branch began.  A merge is also linked to the newest version of the branch
that it brings.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from lake_core.history import PoolState
from lake_core.keys import PoolKey
from lake_core.naming import MAIN
from lake_core.records import CreateBranch, Entry, Merge, Transaction
from log_lake.fields.names import FieldNames, names_at
from log_lake.view.sayings import says

MAX_TEXT = 500
"""The most characters that are shown of a message, or of a value of metadata."""


class Link(msgspec.Struct, frozen=True):
    """A link to an older transaction: the newest one of a branch at or below a version. `how` is parent, branch or
    merge."""

    version: int
    branch: str
    how: str


class GraphNode(msgspec.Struct, frozen=True):
    """A transaction in the graph; `time` is in seconds since 1970, `actions` counts its actions by kind, `says`
    describes it in words."""

    version: int
    id: str
    branch: str
    time: float
    author: str
    message: str
    says: str
    metadata: dict[str, str]
    actions: dict[str, int]
    links: list[Link]


class TagLabel(msgspec.Struct, frozen=True):
    """A tag in the graph; `deleted`: it keeps a deleted branch."""

    name: str
    version: int
    branch: str
    deleted: bool


class BranchLane(msgspec.Struct, frozen=True):
    """A branch and its lane, from 0; `live` is False if it is deleted."""

    name: str
    lane: int
    tip: int
    live: bool


class Graph(msgspec.Struct, frozen=True):
    """The nodes, newest first. Transactions below the version `oldest` are left out; `first` is the oldest version
    that is kept in the journal."""

    pool: str
    newest: int
    oldest: int
    first: int
    nodes: list[GraphNode]
    lanes: list[BranchLane]
    tags: list[TagLabel]


def graph(
    pool: str,
    entries: Sequence[tuple[int, Entry]],
    state: PoolState,
    *,
    key: PoolKey,
    newest: int,
    first: int,
) -> Graph:
    """Returns the graph of entries, oldest first, and of the branches and tags of the newest state."""
    names = names_at(state)
    nodes = [
        _node(version, transaction, key, names)
        for version, entry in reversed(entries)
        for transaction in reversed(entry.transactions)
    ]
    return Graph(
        pool,
        newest,
        entries[0][0] if entries else newest,
        first,
        nodes,
        lanes(state, (node.branch for node in nodes)),
        [
            TagLabel(name, tag.version, tag.branch, tag.deleted)
            for name, tag in sorted(state.tags.items())
            if not tag.expires or tag.is_live(state.time)
        ],
    )


def lanes(state: PoolState, named: Iterable[str]) -> list[BranchLane]:
    """Returns a lane for `main`, then one for each branch by the version it began in, then the deleted ones."""
    live = sorted(state.branches, key=lambda name: (name != MAIN, _began(state, name), name))
    deleted = sorted({name for name in named if name and name not in state.branches})
    return [
        BranchLane(
            name, lane, state.branches[name].tip if name in state.branches else 0, name in state.branches
        )
        for lane, name in enumerate([*live, *deleted])
    ]


def _began(state: PoolState, branch: str) -> int:
    fork = state.branches[branch].fork
    return 0 if fork is None else fork.created


def _node(version: int, transaction: Transaction, key: PoolKey, names: FieldNames) -> GraphNode:
    links = []
    for action in transaction.actions:
        if isinstance(action, CreateBranch) and action.at:
            links.append(Link(action.at, action.parent, "branch"))
        elif isinstance(action, Merge):
            links.append(Link(action.upto, action.branch, "merge"))
    if transaction.parent and not any(link.how == "branch" for link in links):
        links.insert(0, Link(transaction.parent, transaction.branch, "parent"))
    return GraphNode(
        version,
        transaction.id,
        transaction.branch,
        transaction.time / 1e6,
        transaction.author,
        transaction.message[:MAX_TEXT],
        says(transaction, key, names)[:MAX_TEXT],
        {name: value[:MAX_TEXT] for name, value in transaction.metadata.items()},
        transaction.action_counts,
        links,
    )
