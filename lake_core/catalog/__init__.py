"""The list of pools: a journal of its own, folded into names, keys and settings.

`state` is the fold, `checkpoint` writes and reads it, `pools` commits changes to it.  Settings are texts here; what
they mean, and which are refused, comes from above (`log_lake.settings`).
"""

from typing import TYPE_CHECKING

from lake_core.faces import on_demand

if TYPE_CHECKING:
    from lake_core.catalog.pools import Catalog
    from lake_core.catalog.state import PoolsState

__all__ = ["Catalog", "PoolsState"]

__getattr__ = on_demand(__name__, {"Catalog": "pools", "PoolsState": "state"})
