"""What one request, and all of them together, may use."""

from __future__ import annotations

import os
from dataclasses import dataclass

from lake_core.errors import Unavailable
from log_lake.system_tables.engine import SqlLimits

QUERIES = 4
"""Queries of a lake that run at once; others wait for a thread.  With few processors, more queries only use more
memory."""
WRITES = 2
"""Loads and statements of a lake that run at once, each with `load.memory`."""
BODIES = 32
"""Bodies that are received at once; others wait, unread."""
MAX_OPEN = 300
"""Requests at once, from their first byte to the last of their answers; further ones get 503.  Each may have a
connection and a file open, and a process may often have 1,024 of these."""
MAX_SQL = 1 << 20
"""Bytes of a statement, and of a list of files."""
WAIT_SECONDS = 120.0
"""Seconds to wait for a thread, or for a place among the bodies.  A write continues after this time; its token
shows later how it ended."""
IDLE_SECONDS = 60.0
"""Seconds after which a client is disconnected that takes no part of its answer and sends no part of its
body."""
BATCH_ROWS = 8_192
"""Records that are converted to text at once, because their text is in memory several times."""
HELD = 1 << 20
"""Bytes of an answer that the server waits for before it sends the status, so that an error in them gets its own
status."""
DISK = 8 << 30
"""Bytes of all answers that wait for their clients, and of all bodies that are not yet loaded."""


@dataclass(frozen=True)
class ServiceLimits:
    """Limits of a query, of an answer and of a body.  The person who starts the server may set all but
    `transfer`."""

    seconds: float = 60.0
    rows: int = 10_000_000
    answer: int = 1 << 30
    body: int = 1 << 30
    memory: int = 0
    """Memory of all queries together; 0: half of the machine's or the container's."""
    transfer: float = 1_800.0
    """Seconds for one body, and for one answer, from its first part to the last.  Without it, a client that sends
    a byte each minute would keep its place forever."""
    write_seconds: float = 900.0
    """Seconds for a statement that changes a pool; it continues if its caller is gone."""

    def of_sql(self, lakes: int) -> SqlLimits:
        """Returns the limits of one statement, if this number of lakes is served."""
        at_once = QUERIES * max(1, lakes)
        memory = f"{self.memory // at_once}B" if self.memory else f"{max(1, 50 // at_once)}%"
        threads = max(1, (os.cpu_count() or 1) // QUERIES)
        return SqlLimits(memory=memory, threads=threads, batch_rows=BATCH_ROWS)


class OpenRequests:
    """Counts the requests that are open."""

    def __init__(self, most: int = MAX_OPEN) -> None:
        self._most, self._open = most, 0

    def __enter__(self) -> None:
        if self._open >= self._most:
            raise Unavailable(f"the server is busy: it answers {self._open} requests; ask again in a minute")
        self._open += 1

    def __exit__(self, *_: object) -> None:
        self._open -= 1
