"""Which landed files are taken in together: pure.

A batch is full at `most_files` files or `max_bytes` bytes; a file larger than that is a batch alone.  A
batch that is not full waits until its oldest file is `age` seconds old, so that small files are gathered; a
run that somebody asked for waits for nothing (`age` 0).  Files keep the order of their names.  The same
files, policy and time give the same batches with the same tokens: a token is the hash of what the batch
holds, so a batch that is run twice is committed once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from lake_core.records.source_files import SourceFile


@dataclass(frozen=True)
class BatchPolicy:
    """When a batch is full, and how long one that is not may wait."""

    max_files: int
    max_bytes: int
    age: float


@dataclass(frozen=True)
class Batch:
    """Files to be committed together."""

    files: tuple[SourceFile, ...]

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return sum(f.size for f in self.files)

    def token(self, branch: str) -> str:
        """The name under which the batch is committed once."""
        digest = hashlib.sha256(msgspec.msgpack.encode([(f.uri, f.size, f.etag) for f in self.files]))
        return f"ingest:{branch}:{digest.hexdigest()[:32]}"


def plan_batches(files: Iterable[SourceFile], policy: BatchPolicy, *, now: float) -> list[Batch]:
    """Batches of the files that were not taken yet; what must still wait is left out."""
    batches: list[Batch] = []
    gathered: list[SourceFile] = []
    size = 0
    for file in sorted(files, key=lambda f: f.uri):
        if gathered and (len(gathered) >= policy.max_files or size + file.size > policy.max_bytes):
            batches.append(Batch(tuple(gathered)))
            gathered, size = [], 0
        gathered.append(file)
        size += file.size
    if gathered and _may_go(gathered, size, policy, now):
        batches.append(Batch(tuple(gathered)))
    return batches


def _may_go(files: list[SourceFile], size: int, policy: BatchPolicy, now: float) -> bool:
    full = len(files) >= policy.max_files or size >= policy.max_bytes
    waited = now - min(f.modified for f in files)  # may be negative: the store's clock is another one
    return full or policy.age <= 0 or waited >= policy.age
