"""Statements of SQL that change a pool: `statement` reads them, `run` runs them."""

from log_lake.sql_writes.run import StatementResult, execute
from log_lake.sql_writes.statement import is_write

__all__ = ["StatementResult", "execute", "is_write"]
