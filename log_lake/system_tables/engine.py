"""The one place that makes connections to DuckDB, each restricted before its first statement.

Statements come from forms, templates and DAG parameters, and run with the rights of the process.  So a
connection reads no address, and no file except those that its caller names.  It loads no extension, cannot read
variables of the environment, and cannot change its settings.  DuckDB itself refuses these while it binds, plans
and runs.  Data that does not fit in memory is written to a folder of the connection.

Called by `sql`; a test checks that no other module makes a connection.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import duckdb


@dataclass(frozen=True)
class SqlLimits:
    """Limits for one statement: memory, threads, and the size of the parts of its answer."""

    memory: str = "25%"
    """Memory for one statement: a share of the machine or of the container, or bytes such as `2GiB`.  More goes to
    disk."""

    threads: int = min(8, os.cpu_count() or 1)
    """Threads of one statement.  With more than eight, memory per thread is scarcer than processors."""

    batch_rows: int = 65_536
    """Records in one batch of an answer."""


SQL_LIMITS = SqlLimits()
"""The default limits."""

_LOCKED: dict[str, str | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "allow_extension_repositories": "forbidden",
    "allow_persistent_secrets": False,
    "python_enable_replacements": False,
}


@contextmanager
def connected(
    limits: SqlLimits = SQL_LIMITS, *, files: Sequence[str] = ()
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Opens a restricted connection to an empty database in memory, and closes it when the block ends. Its time
    zone is UTC.

    The connection can read the local files that `files` names, and those in the folders that it names; no
    others.
    """
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="lake-sql-"))
        except OSError:
            folder = ""  # without a disk for temporary files, what fits into memory still works
        connection = duckdb.connect(
            config={
                **_LOCKED,
                "temp_directory": folder,
                "memory_limit": limits.memory,
                "threads": limits.threads,
            }
        )
        stack.callback(connection.close)
        connection.execute("SET TimeZone = 'UTC'")  # an answer does not depend on where it is asked
        # DuckDB takes the list only before it is closed; no statement of a caller has run yet
        folders = [os.path.join(name, "") for name in files if os.path.isdir(name)]
        connection.execute("SET allowed_directories = $1", [folders])
        connection.execute("SET allowed_paths = $1", [[name for name in files if not os.path.isdir(name)]])
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        yield connection
