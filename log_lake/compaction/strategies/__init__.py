"""Compaction strategies: which references are worth merging.

A strategy is a function that claims references for jobs; `Planner` makes jobs of the claims, and limits them.
Each module of this folder defines one: module, function and `compact.strategy` have the same name.  To add a
strategy, add its module and its test; docs/compaction.md shows how.  A program may also `register` its own.

`names` reads the folder and imports no strategy, so `lake --help` does not load the engine.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING, Protocol, cast

from lake_core.errors import InvalidInput
from lake_core.phrases import choices

if TYPE_CHECKING:
    from log_lake.compaction.planner import Planner


class Strategy(Protocol):
    """Chooses the references that a plan merges; pure."""

    def __call__(self, planner: Planner, /) -> None:
        """Claims references.  It must decide only by what the planner has: its references, policy, key and time.

        `planner.claim` merges runs where they are deep, `settle` makes one run, `join` joins small neighbours.
        """


_registered: dict[str, Strategy] = {}


def names() -> tuple[str, ...]:
    """Returns the names of the strategies that a pool can choose, in alphabetical order."""
    return tuple(sorted({*(module.name for module in pkgutil.iter_modules(__path__)), *_registered}))


def register(name: str, strategy: Strategy) -> None:
    """Adds a strategy under a free name, in this process.  Raises InvalidInput."""
    if name in names():
        raise InvalidInput(f"compaction strategy {name!r} exists already: use another name")
    _registered[name] = strategy


def check_name(name: str) -> str:
    """Returns the name.  Raises InvalidInput if there is no strategy with it."""
    if name not in names():
        raise InvalidInput(f"unknown compact.strategy {name!r}: use {choices(names())}")
    return name


def find_strategy(name: str) -> Strategy:
    """Returns the strategy of that name.  Raises InvalidInput."""
    if check_name(name) in _registered:
        return _registered[name]
    return cast(Strategy, getattr(importlib.import_module(f"{__name__}.{name}"), name))
