"""The values of compaction: a job, the plan that holds jobs, the result of a job.

A job is the same value from the plan to the report, whether the planner or the tombstones agent made it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec

from lake_core.history import Reference
from lake_core.history.snapshot.reference import span_of
from lake_core.keys import KeyRange
from log_lake.compaction.gain import Standing
from log_lake.compaction.layout import depth_of
from log_lake.compaction.ranges import apart


@dataclass(frozen=True)
class CompactionJob:
    """References to merge into one sorted run of about `outputs` objects; `why` is for people.

    `size` (bytes) and `records` are those of the inputs' objects; if references are clipped, less than that is
    merged.
    """

    inputs: tuple[Reference, ...]
    outputs: int
    why: str

    @cached_property
    def key_range(self) -> KeyRange:
        """The range from the lowest bound of the inputs to the highest."""
        return span_of(self.inputs)

    @cached_property
    def depth(self) -> int:
        """How many inputs overlap at the key where most of them do."""
        return depth_of(r.key_range for r in self.inputs)

    @property
    def size(self) -> int:
        """The bytes of the inputs' objects."""
        return sum(r.size for r in self.inputs)

    @property
    def records(self) -> int:
        """The number of records in the inputs' objects."""
        return sum(r.records for r in self.inputs)

    def apart(self, points: Sequence[bytes]) -> list[CompactionJob]:
        """Returns the job as jobs that cross no split point, except inside an input that straddles it."""
        groups = apart(self.inputs, points)
        if len(groups) < 2:
            return [self]
        sizes = [sum(r.size for r in group) for group in groups]
        return [
            CompactionJob(tuple(group), max(1, round(self.outputs * size / self.size)), self.why)
            for group, size in zip(groups, sizes, strict=True)
            if len(group) > 1 or group[0].data  # a single object gains nothing, but a place on the store
        ]

    @property
    def named(self) -> NamedJob:
        """The job in the form in which one task passes it to another."""
        return NamedJob(tuple((r.object, r.records) for r in self.inputs), self.outputs, self.why)


class NamedJob(msgspec.Struct, frozen=True):
    """A job that names its inputs by their objects and the records that they show.

    It is stored for weeks, so it must not contain keys.
    """

    inputs: tuple[tuple[str, int], ...]
    outputs: int
    why: str


def jobs_still_there(references: Iterable[Reference], jobs: Iterable[NamedJob]) -> list[CompactionJob]:
    """Returns the jobs with these names whose inputs all still exist.

    If a branch has two references to an object with equally many records, a job cannot tell them apart, so it
    counts as gone.
    """
    by_name: dict[tuple[object, object], list[Reference]] = {}
    for reference in references:
        by_name.setdefault((reference.object, reference.records), []).append(reference)
    remaining = []
    for job in jobs:
        named = [by_name.get((object_id, records), []) for object_id, records in job.inputs]
        if all(len(one) == 1 for one in named):
            inputs = tuple(one[0] for one in named)
            remaining.append(CompactionJob(inputs, job.outputs, job.why))
    return remaining


@dataclass(frozen=True)
class CompactionPlan:
    """The jobs of a compaction, by key; no reference is an input of two jobs.

    `references`, `size` (bytes) and `standing` describe the current pool; `depth_after` is its depth once all
    jobs are done. `strategy`, and `allowed`, the depth that the policy allows, give the reason.
    """

    jobs: tuple[CompactionJob, ...]
    references: int
    size: int
    standing: Standing
    depth_after: int
    strategy: str = ""
    allowed: int = 0

    @property
    def depth(self) -> int:
        """How many references overlap at the key where most of them do."""
        return self.standing.depth

    @property
    def rewritten(self) -> int:
        """How many bytes the jobs read; they write about as many."""
        return sum(job.size for job in self.jobs)

    @property
    def write_amplification(self) -> float:
        """The bytes that are rewritten per byte of the pool."""
        return self.rewritten / self.size if self.size else 0.0


@dataclass(frozen=True)
class CompactionResult:
    """The result of a job: `inputs` references of `size_in` bytes became `objects` of `size_out`.

    `version` is None if the job was dropped because another writer removed an input first; `lost` names that
    input.
    """

    version: int | None
    inputs: int
    objects: int
    records: int
    size_in: int
    size_out: int
    lost: str = ""
