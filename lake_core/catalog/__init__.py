"""The list of pools: a journal of its own, folded into names, keys and settings.

`pools` is the fold and what lands on it; `settings` the policies that a pool may carry.
"""

from lake_core.catalog.pools import Catalog, PoolsState
from lake_core.catalog.settings import Settings

__all__ = ["Catalog", "PoolsState", "Settings"]
