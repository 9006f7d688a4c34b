"""The planner: a strategy claims references, and the planner turns them into bounded jobs.

For each region that is deep (`layout.regions`) the strategy chooses a stretch of runs that are neighbours in
age.  Only the overlapping part of them is worth rewriting: each island of the chosen references becomes a job.
An island that is too large for one job is cut: into stretches of fewer runs if at least WIDTH of them fit,
otherwise by key.  Two references always fit, so there is always a next step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lake_core.history import Reference
from lake_core.history.between import Ages
from lake_core.keys import KeyRange, PoolKey
from log_lake.compaction.gain import standing_of
from log_lake.compaction.jobs import CompactionJob, CompactionPlan
from log_lake.compaction.layout import Run, depth_of, islands, regions, runs
from log_lake.compaction.neighbours import SMALL, doubling, joinable
from log_lake.compaction.policy import CompactionPolicy

ChosenRuns = tuple[Sequence[Run], str]
Choose = Callable[[Sequence[Run], Sequence[KeyRange]], ChosenRuns]
"""A function that returns which of a region's runs to merge, and why, in words.

Its arguments are the runs from old to new, and the ranges that other jobs will make there.
"""

WIDTH = 4
"""Fewer runs than this are not worth merging before the depth requires it; merging two at a time rewrites more for
less."""

INLINED_INPUTS = 1_024
"""The most inlined references of one job: they need no open file, and a merge of small ones works in groups."""


@dataclass
class Planner:
    """The jobs that a strategy has made so far; each reference is in at most one job.

    `references` are those of a pool or sub-pool, by low bound; `key` is the pool's; `now` is in seconds since
    1970.  `ages` is None unless records combine (aggregate pools).
    """

    references: Sequence[Reference]
    policy: CompactionPolicy
    key: PoolKey
    now: float
    ages: Ages | None
    jobs: list[CompactionJob] = field(default_factory=list)
    claimed: dict[tuple[str, bytes], int] = field(default_factory=dict)

    def claim(self, references: Sequence[Reference], *, least: int, choose: Choose) -> None:
        """Makes jobs where at least `least` free references and outputs of other jobs overlap.

        In each such region, `choose` decides which runs to merge.
        """
        outputs = [job.key_range for job in self.jobs]
        for region in regions(self._free(references), taken=outputs, least=least):
            jobs = {number for r in region.references if (number := self.claimed.get(_name(r))) is not None}
            taken = [*region.taken, *(self.jobs[number].key_range for number in sorted(jobs))]
            free = self._free(region.references)
            if depth_of([*taken, *(r.key_range for r in free)]) >= least:
                chosen, why = choose(runs(free), taken)
                for island in islands([r for run in chosen for r in run.references]):
                    self._merge(island, why)

    def settle(self, references: Sequence[Reference], why: str) -> None:
        """Merges the free references into one run of objects of about the target size."""
        groups = islands(references)
        target = self.policy.target_size
        for stretch in joinable(groups, target=target, least=2, fits=self.policy.fits):
            self._add(stretch, why)
        for island in groups:
            self._merge(self._free(island), why)

    def join(self, references: Sequence[Reference]) -> None:
        """Joins small neighbours among those references that no job takes."""
        for stretch in self._free_stretches(references):
            self._join(stretch)

    def write_out(self, why: str) -> None:
        """Makes jobs of the free inlined references: they become objects on the store.

        They cost no request to read, so a job takes more of them than of others.
        """
        free = (r for r in self._free(self.references) if r.data)
        inlined = sorted(free, key=lambda r: (r.seq, r.ordinal, r.low))
        for start in range(0, len(inlined), INLINED_INPUTS):
            self._write_out(inlined[start : start + INLINED_INPUTS], why)

    def _write_out(self, references: Sequence[Reference], why: str) -> None:
        inputs = list(references) if self.ages is None else self._with_between(references, self.ages)
        jobs = len(self.jobs)
        if len(inputs) == len(references):
            self._claim(inputs, why)
        elif not self._add(references, why) or len(self.jobs) == jobs:  # one reference needs no other
            half = len(references) // 2
            self._write_out(references[:half], why)
            self._write_out(references[half:], why)

    def plan(self) -> CompactionPlan:
        """Returns the plan: the jobs that were added so far, and the depth that they leave."""
        left = [r.key_range for r in self._free(self.references)]
        return CompactionPlan(
            jobs=tuple(sorted(self.jobs, key=lambda job: job.inputs[0].order)),
            references=len(self.references),
            size=sum(r.size for r in self.references),
            standing=standing_of(self.references),
            depth_after=depth_of([*left, *(job.key_range for job in self.jobs)]),
            strategy=self.policy.strategy,
            allowed=self.policy.depth,
        )

    def _free(self, references: Sequence[Reference]) -> list[Reference]:
        return [r for r in references if _name(r) not in self.claimed]

    def _join(self, stretch: Sequence[Reference]) -> None:
        """Joins a stretch, or its halves if records of an aggregate pool need another reference (`between`)."""
        policy = self.policy
        for part in doubling(stretch, target=policy.target_size, least=WIDTH, fits=policy.fits):
            if self.ages is None or len(self._with_between(part, self.ages)) == len(part):
                self._add(part, "small neighbours")
            elif len(part) >= 2 * WIDTH:
                self._join(part[: len(part) // 2])
                self._join(part[len(part) // 2 :])

    def _free_stretches(self, references: Sequence[Reference]) -> list[list[Reference]]:
        """Returns stretches of the small references that no job takes yet, by key.  A stretch ends at any other
        reference of the pool."""
        small = {_name(r) for r in self._free(references) if r.size * SMALL < self.policy.target_size}
        stretches: list[list[Reference]] = [[]]
        for reference in self.references:
            if _name(reference) in small:
                stretches[-1].append(reference)
            else:
                stretches.append([])
        return stretches

    def _fits(self, inputs: Sequence[Reference]) -> bool:
        return self.policy.fits(len(inputs), sum(r.size for r in inputs))

    def _merge(self, island: Sequence[Reference], why: str) -> None:
        """Make a job for references that overlap; several if they are too much for one."""
        if len(island) < 2 or self._add(island, why):
            return
        rest = runs(island)
        while rest and (count := self._fitting(rest)) >= min(WIDTH, len(rest)):  # newest first
            self._cut([r for run in rest[-count:] for r in run.references], why)
            del rest[-count:]
        self._cut([r for run in rest for r in run.references], why)

    def _fitting(self, candidates: Sequence[Run]) -> int:
        """Returns the number of the newest runs that fit into one job."""
        inputs = size = 0
        for count, run in enumerate(reversed(candidates)):
            inputs += len(run.references)
            size += run.size
            if not self.policy.fits(inputs, size):
                return count
        return len(candidates)

    def _cut(self, references: Sequence[Reference], why: str) -> None:
        """Make jobs for one stretch of keys after the other."""
        part: list[Reference] = []
        size = 0
        for reference in sorted(references, key=lambda r: r.order):
            if not self.policy.fits(len(part) + 1, size + reference.size):
                self._part(part, why)
                part, size = [], 0
            part.append(reference)
            size += reference.size
        self._part(part, why)

    def _part(self, references: Sequence[Reference], why: str) -> None:
        """Makes a job of references that fit.  If references that must be taken with them (`between`) do not fit,
        makes jobs of the halves."""
        for island in islands(self._free(references)):
            if len(island) > 1 and not self._add(island, why) and len(island) > 2:
                half = len(island) // 2
                self._part(island[:half], why)
                self._part(self._free(island[half:]), why)

    def _add(self, references: Sequence[Reference], why: str) -> bool:
        """Makes a job, unless another job has a reference that it needs.  Returns False if the job does not fit.

        Each job gains something: its references overlap, or are small and become fewer objects.
        """
        inputs = list(references) if self.ages is None else self._with_between(references, self.ages)
        if not self._fits(inputs):
            return False
        if len(self._free(inputs)) == len(inputs):
            self._claim(inputs, why)
        return True

    def _claim(self, inputs: Sequence[Reference], why: str) -> None:
        self.claimed |= {_name(r): len(self.jobs) for r in inputs}
        outputs = max(1, round(sum(r.size for r in inputs) / self.policy.target_size))
        self.jobs.append(CompactionJob(tuple(sorted(inputs, key=lambda r: r.order)), outputs, why))

    def _with_between(self, references: Sequence[Reference], ages: Ages) -> list[Reference]:
        """Returns the references together with those that must be merged with them.  The result is incomplete if
        another job has one of the latter, or if they do not fit into a job."""
        inputs = list(references)
        most = max(2, self.policy.max_inputs)
        while more := ages.between(inputs, most=most):  # bounded: it only grows, to `most`
            inputs += more
            if len(inputs) > most or len(self._free(more)) < len(more):
                break
        return inputs


def _name(reference: Reference) -> tuple[str, bytes]:
    """Returns the identity of a reference."""
    return reference.object, reference.low
