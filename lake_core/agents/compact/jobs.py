"""What a plan is: jobs, and what they would do to the pool."""

from __future__ import annotations

from dataclasses import dataclass

from lake_core.history import Reference
from lake_core.keys import KeyRange


@dataclass(frozen=True)
class CompactionJob:
    """References to be merged into one sorted run of objects of about the target size.

    `inputs` are in order of their low bound, then of arrival; `why` is for people.  `size` (bytes) and `records`
    are those of the inputs' objects, more than what is merged where references are clipped.  `depth` is the most
    inputs on one key; `outputs` about how many objects will be made.
    """

    inputs: tuple[Reference, ...]
    why: str
    key_range: KeyRange
    size: int
    records: int
    depth: int
    outputs: int


@dataclass(frozen=True)
class CompactionPlan:
    """Jobs with disjoint inputs, by key.

    `references`, `size` (bytes) and `depth` are those of the pool as it is, `depth_after` its depth when all jobs
    are done.
    """

    jobs: tuple[CompactionJob, ...]
    references: int
    size: int
    depth: int
    depth_after: int

    @property
    def rewritten(self) -> int:
        """Bytes that the jobs read, and about write again."""
        return sum(job.size for job in self.jobs)

    @property
    def write_amplification(self) -> float:
        """Bytes rewritten for each byte of the pool."""
        return self.rewritten / self.size if self.size else 0.0
