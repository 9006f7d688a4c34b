"""Scans a key range in parts, several at the same time, in the order of the keys.

A part is one key range of the plan, so a scan yields the records of its parts one after another.  Threads read
the next parts while the first one is passed on.  Each holds a bounded number of bytes ahead, and then waits for
its turn.  If the reader stops early, the threads stop after their next table, even if the condition leaves it
empty.

Called by `lake.view`.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from threading import Condition, Thread

import pyarrow as pa

from lake_core.keys import KeyRange
from log_lake.columns.owned import owned
from log_lake.reading.plan import ScanPlan

PART_BYTES = 16 << 20
"""About how many stored bytes a part has: smaller parts cost a footer and a merge each, larger ones wait for their
turn."""

MOST_PARTS = 1_024
"""The most parts into which a scan is divided."""


PartRead = Callable[[Callable[[], None]], Iterator[pa.Table]]
"""A function that yields the tables of a part.  Its argument is a function that it calls after each read; that
function raises if the part is not wanted any more."""


def parts_of_plan(
    plan: ScanPlan, points: Sequence[bytes], jobs: int, divide: Callable[[int], Sequence[KeyRange]]
) -> list[ScanPlan]:
    """Divides the plan into parts that follow each other: at the split points of the pool, or by equal bytes if
    there are too few points for `jobs`.

    If there are very many points, a part has several ranges.  `divide` cuts the plan's key range into at most
    the given number of pieces with about equal bytes.
    """
    inside = [p for p in points if plan.key_range.contains(p) and p != plan.key_range.low]
    if jobs <= len(inside) + 1:
        step = -(-(len(inside) + 1) // MOST_PARTS)
        return plan.parts(inside[step - 1 :: step])
    if not plan.references:
        return []
    size = sum(r.size for r in plan.references)
    pieces = divide(min(MOST_PARTS, max(jobs, size // PART_BYTES)))
    return plan.parts([piece.low for piece in pieces[1:]])


@dataclass
class _Part:
    """The tables of a part that were read but not passed on yet. `ended`: whether the part is complete, or the
    error that ended it."""

    tables: deque[pa.Table] = field(default_factory=deque)
    size: int = 0
    ended: bool | BaseException = False


def side_by_side(reads: Sequence[PartRead], *, at_once: int, most_bytes: int) -> Generator[pa.Table]:
    """Yields the tables of all reads one after another, while `at_once` of the reads run at the same time.

    A read waits once it holds `most_bytes` that are not passed on, so it exceeds them by at most one table.
    Raises what the first failing read raises.
    """
    reading = _SideBySide(reads, most_bytes)
    threads: list[Thread] = []
    try:
        for number in range(len(reads)):
            for next_one in range(len(threads), min(number + at_once, len(reads))):
                # a daemon: a process whose program leaves the scan where it is ends anyway
                threads.append(Thread(target=reading.read, args=[next_one], name="scan", daemon=True))
                threads[-1].start()
            yield from reading.taken(number)
    finally:
        if not sys.is_finalizing():  # threads do not run any more then, and may hold the lock
            reading.stop()
            for thread in threads:
                thread.join()


class _Stopped(Exception):
    """Raised in a thread when the tables of its part are not wanted any more."""


class _SideBySide:
    def __init__(self, reads: Sequence[PartRead], most_bytes: int) -> None:
        self._reads, self._most = reads, most_bytes
        self._parts = [_Part() for _ in reads]
        self._changed = Condition()
        self._stopped = False

    def stop(self) -> None:
        """Makes every thread end at its next table."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def check(self) -> None:
        """Raises _Stopped if no table is wanted any more."""
        if self._stopped:
            raise _Stopped

    def read(self, number: int) -> None:
        """Runs in a thread: reads a part, and waits whenever it holds enough."""
        part = self._parts[number]
        ended: bool | BaseException = True
        try:
            with closing(_generated(self._reads[number], self.check)) as tables:
                for decoded in tables:
                    table = owned(decoded)
                    with self._changed:
                        part.tables.append(table)
                        part.size += table.nbytes
                        self._changed.notify_all()
                        self._changed.wait_for(lambda: self._stopped or part.size < self._most)
                        if self._stopped:
                            return
        except BaseException as error:  # the reader of the scan gets it
            ended = error
        finally:
            with self._changed:
                part.ended = ended
                self._changed.notify_all()

    def taken(self, number: int) -> Iterator[pa.Table]:
        """Yields the tables of a part.  Raises what its read raised."""
        part = self._parts[number]
        while True:  # every turn takes a table, or ends with the part
            with self._changed:
                self._changed.wait_for(lambda: part.tables or part.ended)
                if not part.tables:
                    if isinstance(part.ended, BaseException):
                        raise part.ended
                    return
                table = part.tables.popleft()
                part.size -= table.nbytes
                self._changed.notify_all()
            yield table


def _generated(read: PartRead, check: Callable[[], None]) -> Generator[pa.Table]:
    yield from read(check)
