"""How the last queries ended.  An answer may break off after its status was sent; then its client can ask here for
the cause."""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from log_lake.service.problems import Problem

KEPT = 1_000
"""Queries that are remembered, the newest."""


class QueryEnding(msgspec.Struct, frozen=True):
    """A query: `state` is running, done or failed; `bytes` are those of the answer so far; `detail` is the
    error."""

    id: str
    state: str
    bytes: int = 0
    detail: str = ""


class Endings:
    """The last queries by their ids, each only for the caller that asked it; used only in the event loop."""

    def __init__(self) -> None:
        self._by_id: OrderedDict[str, tuple[str, QueryEnding]] = OrderedDict()

    def note(self, caller: str, ending: QueryEnding) -> None:
        """Remembers the query of this caller."""
        self._by_id[ending.id] = caller, ending
        self._by_id.move_to_end(ending.id)
        while len(self._by_id) > KEPT:
            self._by_id.popitem(last=False)

    def of(self, caller: str, id: str) -> QueryEnding:
        """Returns how the query with this id ended.  Raises Problem if this caller asked no such query."""
        name, ending = self._by_id.get(id, ("", None))
        if ending is None or name != caller:
            raise Problem(404, f"there is no query {id[:64]!r} of yours; the last {KEPT:,} are remembered")
        return ending
