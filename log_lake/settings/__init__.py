"""Settings of a pool: each has a type, a default and a meaning. Each room declares its own.

    settings        a setting; typed access to those of a pool; which changes are refused
    setting_types   which texts a setting accepts
    time_format     the codes of strptime and strftime

The list of pools (`lake_core.catalog`) stores settings as texts and knows none of them.  The lake passes it the
check of this room (`settings.check_pool`).
"""

from typing import TYPE_CHECKING

from lake_core.faces import on_demand

if TYPE_CHECKING:
    from log_lake.settings.settings import Settings

__all__ = ["Settings"]

__getattr__ = on_demand(__name__, {"Settings": "settings"})
