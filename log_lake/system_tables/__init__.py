"""Queries: `sql` runs SQL over pools, `names` resolves the names of the lake's own tables, `tables` makes
them, `callers_engine` gives them to an engine of the caller's."""

from log_lake.system_tables.callers_engine import as_dataset, register
from log_lake.system_tables.sql import query

__all__ = ["as_dataset", "query", "register"]
