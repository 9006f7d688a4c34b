"""The one place that makes connections to DuckDB, each locked before its first statement.

Statements come from forms, templates and DAG parameters, and run with the rights of the process.  So a
connection reads no address, and no file but those that its caller names; it loads no extension, sees no variable
of the program, and keeps its settings.  DuckDB itself refuses these while it binds, plans and runs.  Data that does
not fit in memory goes to a folder of its own.

Called by `sql`; a test holds that no other module connects.
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
    """Limits of the machine's memory and threads for one statement, and of the parts of its answer."""

    memory: str = "25%"
    """Memory for one statement, of the machine or of the container; more goes to disk.  Or bytes, as `2GiB`."""

    threads: int = min(8, os.cpu_count() or 1)
    """Threads of one statement.  Beyond eight, memory a thread is scarcer than processors."""

    batch_rows: int = 65_536
    """Records of an answer that are made at once."""


SQL_LIMITS = SqlLimits()
"""The defaults."""

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
    """A locked connection to an empty database in memory, closed when the block ends; times are in UTC.

    It reads the local files, and those in the folders, that `files` names, and no others.
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
