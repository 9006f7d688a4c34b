"""A plan of compaction: the strategy claims references, jobs are bounded, what is gained is said.

For each region that is deep (`layout.regions`) the strategy chooses a stretch of runs that are neighbours in age.
Only what overlaps among them is worth rewriting: each island of the chosen references becomes a job.  A job that
would be too large takes the newest runs that fit; two references always fit, else what is larger than a job could
never be merged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lake_core.commits import Reference
from lake_core.keys import KeyRange, PoolKey
from lake_core.planning.compaction.depth import cheapest
from lake_core.planning.compaction.jobs import CompactionJob, CompactionPlan
from lake_core.planning.compaction.layout import Run, depth_of, islands, regions, runs
from lake_core.planning.compaction.neighbours import joinable
from lake_core.planning.compaction.policy import CompactionPolicy
from lake_core.planning.compaction.size_ratio import WIDTH, alike
from lake_core.planning.compaction.windows import by_window

Choice = tuple[Sequence[Run], str]
Choose = Callable[[Sequence[Run]], Choice]


def plan_compaction(
    references: Sequence[Reference], policy: CompactionPolicy, *, key: PoolKey, kind: str, now: float
) -> CompactionPlan:
    """The jobs that are worth it now, for references of one (sub-)pool in any order.

    `kind` is the pool's: jobs of aggregate pools take all that is between their inputs in age, since a record that
    combines several counts as written with the newest.  Raises InvalidInput for `time_window` where the leading key
    field is no time.
    """
    ordered = sorted(references, key=lambda r: r.order)
    planner = _Planner(ordered, policy, contiguous=kind == "aggregate")
    match policy.strategy:
        case "full":
            planner.claim(ordered, least=2, choose=_everything)
            planner.join(least=2)
        case "depth":
            planner.claim(ordered, least=policy.depth + 1, choose=planner.too_deep)
        case "time_window":
            windowed = by_window(ordered, key=key, seconds=policy.window, now=now)
            for held in windowed.closed:
                planner.settle(held)
            planner.claim(windowed.open, least=min(WIDTH, policy.depth + 1), choose=planner.alike_or_too_deep)
            planner.claim(ordered, least=policy.depth + 1, choose=planner.too_deep)
        case _:
            planner.claim(ordered, least=min(WIDTH, policy.depth + 1), choose=planner.alike_or_too_deep)
            planner.join(least=WIDTH)
    return planner.plan()


def _everything(found: Sequence[Run]) -> Choice:
    return found, "they overlap"


@dataclass
class _Planner:
    """Jobs so far; a reference is in at most one."""

    references: Sequence[Reference]
    policy: CompactionPolicy
    contiguous: bool
    jobs: list[CompactionJob] = field(default_factory=list)
    claimed: set[tuple[str, bytes]] = field(default_factory=set)

    def alike_or_too_deep(self, found: Sequence[Run]) -> Choice:
        """The choice of `size_ratio`."""
        if chosen := alike(found, ratio=self.policy.ratio):
            return chosen, f"{len(chosen):,} runs of like sizes"
        return self.too_deep(found)

    def too_deep(self, found: Sequence[Run]) -> Choice:
        """The choice of `depth`."""
        return cheapest(found, bound=self.policy.depth), f"deeper than {self.policy.depth:,}"

    def claim(self, references: Sequence[Reference], *, least: int, choose: Choose) -> None:
        """Jobs for the regions on which lie at least so many of the free references."""
        for region in regions(self._free(references), least=least):
            chosen, why = choose(runs(self._free(region.references)))
            for island in islands(self._fitting(chosen)):
                self._add(island, why)

    def settle(self, window: Sequence[Reference]) -> None:
        """A closed window becomes one run, and does not again before it is as deep as the policy bears."""
        settled = [r for r in window if r.oldest is not None]
        deep = depth_of(window)
        if deep > 1 and (not settled or deep > self.policy.depth):
            self.claim(window, least=2, choose=lambda found: (found, "its window has ended"))

    def join(self, *, least: int) -> None:
        """Small objects side by side."""
        alone = [island[0] for island in islands(self.references) if len(island) == 1]
        free = self._free(alone)
        stretches = joinable(free, target=self.policy.target_size, least=least, most=self.policy.most_inputs)
        for stretch in stretches:
            self._add(stretch, "small neighbours")

    def plan(self) -> CompactionPlan:
        """What has been claimed."""
        left = self._free(self.references)
        after = [(r.low, r.high) for r in left]
        after += [(job.span.low, job.span.high or b"") for job in self.jobs]
        edges = sorted(edge for low, high in after for edge in ((low, 1), (high, -1)))
        depth = deepest = 0
        for _, step in edges:
            depth += step
            deepest = max(deepest, depth)
        return CompactionPlan(
            jobs=tuple(sorted(self.jobs, key=lambda job: job.inputs[0].order)),
            references=len(self.references),
            size=sum(r.size for r in self.references),
            depth=depth_of(self.references),
            depth_after=deepest,
        )

    def _free(self, references: Sequence[Reference]) -> list[Reference]:
        return [r for r in references if (r.object, r.low) not in self.claimed]

    def _fitting(self, chosen: Sequence[Run]) -> list[Reference]:
        """The references of the newest runs that a job may take, two at least."""
        taken: list[Reference] = []
        size = 0
        for run in reversed(chosen):
            for reference in run.references:
                full = len(taken) >= self.policy.most_inputs or size + reference.size > self.policy.most_bytes
                if full and len(taken) >= 2:
                    return taken
                taken.append(reference)
                size += reference.size
        return taken

    def _add(self, island: Sequence[Reference], why: str) -> None:
        inputs = self._between(island) if self.contiguous else list(island)
        size = sum(r.size for r in inputs)
        outputs = max(1, round(size / self.policy.target_size))
        if len(inputs) < 2 or (outputs >= len(inputs) and depth_of(inputs) == 1):
            return
        self.claimed |= {(r.object, r.low) for r in inputs}
        self.jobs.append(
            CompactionJob(
                inputs=tuple(sorted(inputs, key=lambda r: r.order)),
                why=why,
                span=KeyRange(min(r.low for r in inputs), max(r.high for r in inputs)),
                size=size,
                records=sum(r.records for r in inputs),
                depth=depth_of(inputs),
                outputs=outputs,
            )
        )

    def _between(self, island: Sequence[Reference]) -> list[Reference]:
        """The island and all that overlaps it and is between its records in age; nothing where that is taken."""
        inputs = list(island)
        while True:  # it only grows, and at most to all references
            oldest, newest = min(r.first_seq for r in inputs), max(r.seq for r in inputs)
            known = {(r.object, r.low) for r in inputs}
            spans = [r.span for r in inputs]
            more = [
                r
                for r in self.references
                if (r.object, r.low) not in known
                and r.seq >= oldest
                and r.first_seq <= newest
                and any(r.span.overlaps(span) for span in spans)
            ]
            if not more:
                return inputs
            if len(self._free(more)) < len(more):
                return []
            inputs += more
