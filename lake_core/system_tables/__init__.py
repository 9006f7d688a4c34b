"""Questions to a lake: `sql` runs SQL over pools, `tables` gives the lake's own tables, which `meta` makes."""

from lake_core.system_tables.sql import query

__all__ = ["query"]
