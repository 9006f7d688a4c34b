"""How the processes of the local Airflow use its database, if that is SQLite.  Airflow imports this module by
name.

A savepoint in Python's sqlite3 begins a transaction that only reads.  If another process writes before this
transaction does, SQLite refuses the transaction's first write at once ("database is locked"), however long the
timeout is.  Airflow makes the runs of a backfill in savepoints.  So a transaction that begins with a savepoint
takes SQLite's write lock first; it waits for the lock as every other writer does.
"""

from __future__ import annotations

from sqlalchemy import Connection, event
from sqlalchemy.engine import Engine

__all__: list[str] = []  # nothing here replaces a setting of Airflow's own


@event.listens_for(Engine, "savepoint")
def take_the_write_lock(connection: Connection, _name: str) -> None:
    """Begins the transaction as a writer, unless there is one already."""
    if connection.dialect.name != "sqlite":
        return
    driver = connection.connection.driver_connection
    if driver is not None and not driver.in_transaction:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
