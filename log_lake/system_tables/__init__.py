"""Queries over the lake.  `sql` runs SQL over pools; `names` finds the tables that a statement names; `tables`
makes the lake's own tables; `callers_engine` offers pools to an engine that the caller runs."""

from log_lake.system_tables.callers_engine import as_dataset, register
from log_lake.system_tables.sql import query

__all__ = ["as_dataset", "query", "register"]
