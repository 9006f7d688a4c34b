"""A lake for one run that looks at many pools: it reads the list of pools once.

Otherwise each look at a pool by its name, and each question about all pools, would read the list again, with
three requests.  A run of an agent needs only the list from its beginning.  The next run sees the pools that
were made since, and a pool that was dropped since has a closed journal.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy

from lake_core.catalog import Catalog
from lake_core.catalog.state import PoolsState
from lake_core.journal import LoadedState
from lake_core.records import PoolAction
from log_lake.lake.lake import Lake
from log_lake.settings.settings import check_pool


class OneList(Catalog):
    """A list of pools that is read at first, and after each change by this process."""

    _read: LoadedState[PoolsState] | None = None

    def load(self) -> LoadedState[PoolsState]:
        """The list of pools as it was when it was read first."""
        self._read = self._read or super().load()
        return self._read

    def _append(self, propose: Callable[[PoolsState], PoolAction | tuple[PoolAction, ...]]) -> int:
        try:
            return super()._append(propose)
        finally:
            self._read = None


def with_one_list(lake: Lake) -> Lake:
    """Returns this lake with a list of pools that is read once, at its first use."""
    once = copy(lake)
    once.catalog = OneList(lake.context, check=check_pool)
    return once
