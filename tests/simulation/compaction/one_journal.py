"""The journal and the bill of a simulated pool: how commits wait for each other, how many requests, and dollars.

Latencies are round figures of S3 within one region; prices are those of docs/costs.md.  Requests for an object were
counted on an S3 server (objects of 4.5, 9 and 90 MB: 3, 4 and 14 GET; 37 and 180 MB: 1 and 6 PUT).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache

from lake_core.history.group_commit.requests import MAX_REQUEST_BYTES, MAX_REQUESTS
from lake_core.ids import IdSource
from lake_core.keys.encoding import encode_value
from lake_core.records import Action, AddObject, Column, Entry, RemoveReference, Transaction
from lake_core.records.codec import Codec

GET, PUT = 0.03, 0.06
"""Seconds until S3 answers a small request."""

ENTRY = PUT + 3 * GET
"""Seconds of a commit: look for the end of the journal, put the entry, look for a fence and for what follows."""

LOOKS = 7
"""GETs of the journal for a compaction that commits, as counted."""

GET_BYTES, PUT_BYTES = 7_500_000, 50 << 20
DOLLARS_PUT, DOLLARS_GET, DOLLARS_BYTE_DAY = 5e-6, 0.4e-6, 0.023 / 30 / 1e9

REFERENCE_BYTES = 75
"""Bytes of a reference in a checkpoint, with random keys and statistics of three columns: 7.4 MB for 100,000."""


@dataclass
class Bill:
    """Requests, bytes that were read and written, and bytes held times the days that they were held."""

    puts: int = 0
    gets: int = 0
    read: int = 0
    written: int = 0
    byte_days: float = 0.0

    @property
    def dollars(self) -> float:
        """For requests."""
        return self.puts * DOLLARS_PUT + self.gets * DOLLARS_GET

    def read_object(self, size: int) -> None:
        """An object that a compaction reads."""
        self.gets += 2 + math.ceil(size / GET_BYTES)
        self.read += size

    def write_object(self, size: int) -> None:
        """An object, in one request or as an upload of parts."""
        self.puts += 1 if size <= PUT_BYTES else 2 + math.ceil(size / PUT_BYTES)
        self.written += size


@dataclass
class OneJournal:
    """Commits in order of time.  Those that come while an entry is written are in the next one together."""

    bill: Bill
    entries: int = 0
    commits: int = 0
    size: int = 0
    longest: float = 0.0
    """Seconds from a commit's request to its entry, at most."""
    fullest: int = 0
    """Commits of one entry, at most."""
    _begins: float = -math.inf
    _ends: float = -math.inf
    _filled: list[int] = field(default_factory=list)

    def commit(self, at: float, size: int) -> float:
        """When the commit of so many bytes is in an entry."""
        self.commits += 1
        self.size += size
        self.bill.gets += LOOKS
        is_full = len(self._filled) >= MAX_REQUESTS or sum(self._filled) + size > MAX_REQUEST_BYTES
        if at > self._begins or is_full:
            self._begins = max(at, self._ends)
            self._ends = self._begins + ENTRY
            self._filled = []
            self.entries += 1
            self.bill.puts += 1
        if self._begins > at:  # a request, which the writer of the entry reads
            self.bill.puts += 1
            self.bill.gets += 1
        self._filled.append(size)
        self.fullest = max(self.fullest, len(self._filled))
        self.longest = max(self.longest, self._ends - at)
        return self._ends


@cache
def bytes_of_change() -> tuple[int, int, int]:
    """Bytes of a transaction without actions, for each reference that it removes, and for each object that it adds.

    An object has statistics of four columns.
    """
    ids = IdSource(lambda: 1.75e9, lambda n: b"7" * n)
    low, high = encode_value("a key of text"), encode_value("a key of text, and more")
    number = encode_value(1_234_567.0)
    columns = tuple(Column(name, 0, number, number) for name in ("time", "price", "place", "count"))

    def measured(removed: int, added: int) -> int:
        actions: list[Action] = [RemoveReference(ids.new(), low) for _ in range(removed)]
        actions += [
            AddObject(
                ids.new(), 100_000, 10_000_000, "s" * 32, low, high, columns=columns, seqs=(1 << 40, 1 << 41)
            )
            for _ in range(added)
        ]
        made = Transaction(
            ids.new(), "main", 9, 9, 1_750_000_000_000_000, "compact", tuple(actions), "compaction"
        )
        return len(Codec(Entry).encode(Entry(ids.new(), (made,), 1 << 31)))

    alone, removes, adds = measured(0, 1), measured(100, 1), measured(0, 101)
    return alone - (adds - alone) // 100, (removes - alone) // 100, (adds - alone) // 100


def bytes_of(*, removed: int, added: int) -> int:
    """Bytes of an entry that removes so many references and adds so many objects."""
    alone, remove, add = bytes_of_change()
    return alone + removed * remove + added * add
