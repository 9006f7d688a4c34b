"""Questions to a lake: `sql` runs SQL over pools, `names` finds the system tables, `tables` makes them."""

from lake_core.system_tables.sql import query

__all__ = ["query"]
