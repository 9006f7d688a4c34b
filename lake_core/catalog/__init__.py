"""The list of pools: a journal of its own, folded into names, keys and settings.

`state` is the fold, `checkpoint` writes and reads it, `pools` commits changes to it.  Settings are plain
texts here; `log_lake.settings` defines and checks them.
"""

from typing import TYPE_CHECKING

from lake_core.faces import on_demand

if TYPE_CHECKING:
    from lake_core.catalog.pools import Catalog
    from lake_core.catalog.state import PoolsState

__all__ = ["Catalog", "PoolsState"]

__getattr__ = on_demand(__name__, {"Catalog": "pools", "PoolsState": "state"})
