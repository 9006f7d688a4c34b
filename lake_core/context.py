"""The context of an open lake: its store, its id, and what the process adds (clock, randomness, author).

`Lake` makes one value and passes it to pools, branches, the catalog, the agents, the commands and the Spark
applications.  So all of them use the same clock, and a test or a simulation replaces it in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lake_core.ids import IdSource
from lake_core.store import Store

FORMAT_VERSION = 3
"""The newest version of what a lake stores (docs/format.md); lakes of version 1 have no branches and tags, those of
version 2 no split points and no inlined objects."""

INLINES_SINCE = 3
"""The version of a lake from which on objects may lie in the journal."""


@dataclass(frozen=True)
class Context:
    """What all work on an open lake shares.  `ids` makes new ids and holds the clock; `author` is the name on
    transactions.

    `format_version` is the lake's own: version 1 cannot hold branches, tags and metadata, and version 2 no
    split points and no inlined objects.  `metadata` goes with every transaction of a pool.
    """

    store: Store
    lake_id: str
    ids: IdSource
    author: str
    format_version: int = FORMAT_VERSION
    metadata: Mapping[str, str] = field(default_factory=dict)
    gated: bool = True
    """Whether every program that purges journals of the lake makes gates. That is not certain if programs of an
    older version may have the lake open."""

    @property
    def clock(self) -> Callable[[], float]:
        """The function that gives the time in seconds since 1970; ids are made from the same clock."""
        return self.ids.clock

    def now(self) -> float:
        """Returns the time by the lake's clock, in seconds since 1970."""
        return self.clock()
