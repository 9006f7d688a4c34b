"""Where a pool's source files are and how they are gathered: its settings `ingest.*` as one value."""

from __future__ import annotations

from dataclasses import dataclass

from log_lake.settings import Settings


@dataclass(frozen=True)
class BatchPolicy:
    """When a batch is full (files, bytes), and how many seconds a batch that is not full may wait."""

    max_files: int
    max_bytes: int
    age: float


def policy_of(settings: Settings, *, wait: bool = True) -> BatchPolicy:
    """The policy from the settings `ingest.batch_*`; without `wait`, no batch waits to fill."""
    return BatchPolicy(
        max_files=settings["ingest.batch_files"],
        max_bytes=settings["ingest.batch_bytes"],
        age=settings["ingest.batch_age"] if wait else 0.0,
    )
