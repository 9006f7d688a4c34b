"""The context of an open lake: its store, its id, and what comes in from the edge (clock, randomness, author).

`Lake` makes one value and passes it to pools, branches, the catalog, the agents, the commands and the Spark
applications.  So all of them use the same clock, and a test or a simulation replaces it in one place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lake_core.naming import IdSource
from lake_core.store import Store


@dataclass(frozen=True)
class Context:
    """`ids` makes new ids and holds the clock; `author` is the name on transactions."""

    store: Store
    lake_id: str
    ids: IdSource
    author: str

    @property
    def clock(self) -> Callable[[], float]:
        """Seconds since 1970; ids are made from the same clock."""
        return self.ids.clock

    def now(self) -> float:
        """Seconds since 1970, by the lake's clock."""
        return self.clock()
