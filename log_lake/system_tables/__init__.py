"""Questions to a lake: `sql` runs SQL over pools, `names` finds the system tables, `tables` makes them."""

from log_lake.system_tables.sql import query

__all__ = ["query"]
