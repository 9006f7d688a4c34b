"""Questions to a lake: `sql` runs SQL over pools, `meta` makes the lake's own tables."""

from lake_core.query.sql import meta_table, query

__all__ = ["meta_table", "query"]
