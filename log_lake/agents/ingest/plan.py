"""Decides which source files are ingested together, and how tasks share them; pure.

A batch is full at `max_files` files or `max_bytes` bytes; a larger file is a batch by itself.  A batch that is
not full waits until its oldest file is `age` seconds old, so that small files are gathered; if `age` is 0,
nothing waits.  Files keep the order of their names.  The same files, policy and time give the same batches with
the same tokens.  A token is the hash of a batch's files, so a batch that runs twice is committed once.

A unit is what one task reads, sorts and writes: neighbouring parts, so that the numbers of units keep the order
of arrival.  A part is a file, or some row groups of a large Parquet file.  No unit is made smaller than
`smallest` bytes for more parallelism, because each task has a cost.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from log_lake.agents.ingest.policy import BatchPolicy
from log_lake.loading.source_files import SourceFile


@dataclass(frozen=True)
class IngestBatch:
    """The files that one transaction commits."""

    files: tuple[SourceFile, ...]

    @property
    def size(self) -> int:
        """The bytes of its files together."""
        return sum(f.size for f in self.files)

    def token(self, branch: str) -> str:
        """Returns a token made from the batch's files, under which the batch is committed only once."""
        digest = hashlib.sha256(msgspec.msgpack.encode([(f.uri, f.size, f.etag) for f in self.files]))
        return f"ingest:{branch}:{digest.hexdigest()[:32]}"


def plan_batches(files: Iterable[SourceFile], policy: BatchPolicy, *, now: float) -> list[IngestBatch]:
    """Returns batches of the files that are not ingested yet; files that must still wait are left out."""
    batches: list[IngestBatch] = []
    gathered: list[SourceFile] = []
    size = 0
    for file in sorted(files, key=lambda f: f.uri):
        if gathered and (len(gathered) >= policy.max_files or size + file.size > policy.max_bytes):
            batches.append(IngestBatch(tuple(gathered)))
            gathered, size = [], 0
        gathered.append(file)
        size += file.size
    if gathered and _may_go(gathered, size, policy, now):
        batches.append(IngestBatch(tuple(gathered)))
    return batches


def _may_go(files: list[SourceFile], size: int, policy: BatchPolicy, now: float) -> bool:
    full = len(files) >= policy.max_files or size >= policy.max_bytes
    waited = now - min(f.modified for f in files)  # negative if the store's clock is ahead
    return full or policy.age <= 0 or waited >= policy.age


@dataclass(frozen=True)
class FilePart:
    """A file, or its row groups from `first` (inclusive) to `last` (exclusive); `size` is in bytes."""

    file: str
    size: int
    row_groups: tuple[int, int] | None = None


@dataclass(frozen=True)
class Unit:
    """The files and parts of files that one task reads; `number` orders the units by arrival."""

    number: int
    parts: tuple[FilePart, ...]

    @property
    def size(self) -> int:
        """The bytes of its parts together."""
        return sum(p.size for p in self.parts)


def plan_units(parts: Sequence[FilePart], *, parallelism: int, smallest: int) -> list[Unit]:
    """Divides the parts into at most `parallelism` units of about equal size, each of neighbouring parts.  No unit
    is made smaller than `smallest` bytes to get more of them."""
    left = sum(p.size for p in parts)
    units: list[Unit] = []
    gathered: list[FilePart] = []
    size = 0
    for part in parts:
        # a part goes to the unit that has room for more than half of it; `left`: bytes not yet in a finished unit
        target = left / max(1, parallelism - len(units))
        may_end = size >= smallest and left - size >= smallest
        if gathered and may_end and size + part.size / 2 > target:
            units.append(Unit(len(units), tuple(gathered)))
            left -= size
            gathered, size = [], 0
        gathered.append(part)
        size += part.size
    if gathered:
        units.append(Unit(len(units), tuple(gathered)))
    return units


def split_row_groups(file: str, sizes: Sequence[int], *, target: int) -> list[FilePart]:
    """Cuts a Parquet file between its row groups, and returns parts of about `target` bytes.  `sizes` are the
    bytes of its row groups."""
    parts: list[FilePart] = []
    first = size = 0
    for number, group in enumerate(sizes):
        if number > first and size + group / 2 > target:
            parts.append(FilePart(file, size, (first, number)))
            first, size = number, 0
        size += group
    if first < len(sizes):
        parts.append(FilePart(file, size, (first, len(sizes))))
    return parts
