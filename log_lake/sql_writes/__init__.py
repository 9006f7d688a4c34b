"""Statements of SQL that change a pool: `statement` reads them, `run` runs them."""

from log_lake.sql_writes.run import execute
from log_lake.sql_writes.statement import creates, is_write
from log_lake.sql_writes.work import StatementResult

__all__ = ["StatementResult", "creates", "execute", "is_write"]
