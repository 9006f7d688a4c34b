"""Queries: `sql` runs SQL over pools, `names` resolves the names of the lake's own tables, `tables` makes
them."""

from log_lake.system_tables.sql import query

__all__ = ["query"]
