"""Plans of compaction: bounded, disjoint, the same for the same references, and at rest in the end."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from lake_core.history import Reference
from lake_core.history.branch_state import BranchState
from lake_core.ids import IdSource
from lake_core.keys import KeyRange, PoolKey
from lake_core.keys.encoding import encode_value
from log_lake.agents.compact import plan_compaction
from log_lake.agents.compact.plan import plan_branch
from log_lake.compaction import CompactionJob, CompactionPlan, CompactionPolicy
from log_lake.compaction.ranges import apart, cuts, places
from log_lake.compaction.strategies import names

KEY = PoolKey.parse("k")
BEGIN = 1_700_000_040  # where a window begins
NOW = 1_800_000_000.0
WINDOW = 60.0
TARGET = 100
ROUNDS = 40
"""More than any example needs to come to rest."""


def encoded(n: int) -> bytes:
    return encode_value(BEGIN + n)


def new_id(n: int, at: float) -> str:
    return IdSource(lambda: at, lambda length: n.to_bytes(length, "big")).new()


@st.composite
def pools(draw: st.DrawFn) -> list[Reference]:
    """Loads and outputs of earlier jobs, their keys in five windows long closed, in an order that says nothing."""
    shapes = st.tuples(st.integers(0, 270), st.integers(1, 60), st.integers(1, 300), st.integers(0, 20))
    found = []
    for n, (low, width, size, span) in enumerate(draw(st.lists(shapes, max_size=24)), 1):
        oldest = max(1, 10 * n - span) if span % 3 == 1 else None
        found.append(
            Reference(
                object=new_id(n, BEGIN),
                low=encoded(low),
                high=encoded(low + width),
                seq=10 * n,
                ordinal=0,
                records=size,
                size=size,
                schema="s",
                oldest=oldest,
            )
        )
    return draw(st.permutations(found))


Points = tuple[bytes, ...]
POINTS = st.sets(st.integers(-20, 350), min_size=1, max_size=6).map(
    lambda p: tuple(encoded(n) for n in sorted(p))
)
STRATEGIES = st.sampled_from(names())
KINDS = st.sampled_from(["append", "aggregate"])
TIGHT = st.builds(
    CompactionPolicy,
    strategy=STRATEGIES,
    target_size=st.just(TARGET),
    max_inputs=st.integers(2, 8),
    max_bytes=st.integers(1, 1500),
    depth=st.integers(1, 5),
    ratio=st.sampled_from([1.5, 2.0, 4.0]),
    window=st.just(WINDOW),
)
ROOMY = TIGHT.map(lambda policy: replace(policy, max_inputs=10_000, max_bytes=1 << 60))


def plan(
    references: list[Reference], policy: CompactionPolicy, kind: str = "append", *, points: Points = ()
) -> CompactionPlan:
    if points:
        return plan_branch(BranchState(), references, policy, key=KEY, kind=kind, now=NOW, points=points)
    return plan_compaction(references, policy, key=KEY, kind=kind, now=NOW)


def done(
    references: list[Reference], jobs: tuple[CompactionJob, ...], *, count: int, points: Points = ()
) -> list[Reference]:
    """The references when the jobs are: for each job one run over its range, of as many objects as it said.

    The run is also cut at the split points.
    """
    taken = {(r.object, r.low) for job in jobs for r in job.inputs}
    left = [r for r in references if (r.object, r.low) not in taken]
    for job in jobs:
        bounds = sorted({bound for r in job.inputs for bound in (r.low, r.high)})
        pieces = min(job.outputs, len(bounds) - 1)
        ends = {bounds[n * (len(bounds) - 1) // pieces] for n in range(pieces + 1)}
        ends |= set(cuts(points, job.key_range, size=job.size))
        for piece, (low, high) in enumerate(pairwise(sorted(ends))):
            count += 1
            left.append(
                Reference(
                    object=new_id(count, NOW),
                    low=low,
                    high=high,
                    seq=max(r.seq for r in job.inputs),
                    ordinal=piece,
                    records=1,
                    size=max(1, job.size // (len(ends) - 1)),
                    schema="s",
                    oldest=min(r.first_seq for r in job.inputs),
                )
            )
    return left


def settled(
    references: list[Reference], policy: CompactionPolicy, kind: str = "append", *, points: Points = ()
) -> list[Reference]:
    """The pool when nothing more is planned."""
    for n in range(ROUNDS):
        jobs = plan(references, policy, kind, points=points).jobs
        if not jobs:
            return references
        references = done(references, jobs, count=1000 * (n + 1), points=points)
    raise AssertionError(f"still {len(jobs)} jobs after {ROUNDS} plans")


def deepest(references: list[Reference]) -> int:
    return max((sum(r.key_range.contains(at.low) for r in references) for at in references), default=0)


def between(reference: Reference, inputs: list[Reference]) -> bool:
    """Whether the reference's age is between those of the inputs, where some records may be older than others."""
    first = min((r.first_seq, r.ordinal if r.oldest is None else -1) for r in inputs)
    last = max((r.seq, r.ordinal if r.oldest is None else 1 << 60) for r in inputs)
    own = (reference.first_seq, reference.ordinal), (reference.seq, reference.ordinal)
    return own[1] > first and own[0] < last


@given(pools(), TIGHT, KINDS, st.randoms(use_true_random=False))
def test_a_plan_does_not_depend_on_the_order_of_the_references(
    references: list[Reference], policy: CompactionPolicy, kind: str, random: object
) -> None:
    other = sorted(references, key=lambda r: random.random())  # type: ignore[attr-defined]
    assert plan(references, policy, kind) == plan(other, policy, kind)


@given(pools(), TIGHT, KINDS)
def test_jobs_share_no_input_keep_their_bounds_and_gain_something(
    references: list[Reference], policy: CompactionPolicy, kind: str
) -> None:
    found = plan(references, policy, kind)
    inputs = [(r.object, r.low) for job in found.jobs for r in job.inputs]
    assert len(set(inputs)) == len(inputs)
    assert set(inputs) <= {(r.object, r.low) for r in references}
    for job in found.jobs:
        assert len(job.inputs) >= 2
        assert job.size == sum(r.size for r in job.inputs)
        assert len(job.inputs) == 2 or (len(job.inputs) <= policy.max_inputs and job.size <= policy.max_bytes)
        assert job.depth == deepest(list(job.inputs))
        assert job.depth > 1 or job.outputs < len(job.inputs)
        assert job.key_range == KeyRange(min(r.low for r in job.inputs), max(r.high for r in job.inputs))
    assert found.depth == deepest(references)


@given(pools(), st.one_of(TIGHT, ROOMY), KINDS)
def test_plans_of_what_their_jobs_leave_come_to_an_end(
    references: list[Reference], policy: CompactionPolicy, kind: str
) -> None:
    at_rest = settled(references, policy, kind)
    assert plan(at_rest, policy, kind).jobs == ()
    assert plan(at_rest, policy, kind).depth_after == plan(at_rest, policy, kind).depth


@given(pools(), ROOMY, KINDS)
def test_a_pool_at_rest_is_not_deeper_than_the_policy(
    references: list[Reference], policy: CompactionPolicy, kind: str
) -> None:
    assert deepest(settled(references, policy, kind)) <= policy.depth


@given(pools(), ROOMY, KINDS)
def test_joining_neighbours_makes_no_pool_deeper(
    references: list[Reference], policy: CompactionPolicy, kind: str
) -> None:
    found = plan(references, replace(policy, strategy="size_ratio", depth=100, target_size=1000), kind)
    joined = tuple(job for job in found.jobs if job.why == "small neighbours")
    assert deepest(done(references, joined, count=1000)) <= found.depth


@given(pools(), ROOMY)
def test_neighbours_are_joined_into_something_at_least_twice_as_large(
    references: list[Reference], policy: CompactionPolicy
) -> None:
    for job in plan(references, replace(policy, strategy="size_ratio", target_size=1000)).jobs:
        if job.why == "small neighbours":
            assert job.size >= 2 * max(r.size for r in job.inputs)


@given(pools(), TIGHT)
def test_bounds_of_jobs_do_not_keep_a_pool_deep(
    references: list[Reference], policy: CompactionPolicy
) -> None:
    assert deepest(settled(references, policy)) <= policy.depth + (policy.strategy == "full") * 24


@given(pools(), ROOMY)
def test_one_plan_of_depth_brings_the_pool_below_the_bound(
    references: list[Reference], policy: CompactionPolicy
) -> None:
    found = plan(references, replace(policy, strategy="depth"))
    assert found.depth_after <= max(policy.depth, 1)
    assert bool(found.jobs) == (found.depth > policy.depth)


@given(pools(), ROOMY, KINDS)
def test_full_leaves_one_run_and_then_has_nothing_to_do(
    references: list[Reference], policy: CompactionPolicy, kind: str
) -> None:
    full = replace(policy, strategy="full")
    found = plan(references, full, kind)
    assert found.depth_after <= 1
    assert plan(done(references, found.jobs, count=1000), full, kind).jobs == ()


@given(pools(), TIGHT)
@settings(max_examples=300)
def test_jobs_of_an_aggregate_pool_leave_out_nothing_between_their_inputs(
    references: list[Reference], policy: CompactionPolicy
) -> None:
    for job in plan(references, policy, "aggregate").jobs:
        taken = {(r.object, r.low) for r in job.inputs}
        for at in references:  # depths change at low bounds
            there = [r for r in references if r.key_range.contains(at.low)]
            inputs = [r for r in there if (r.object, r.low) in taken]
            if len(inputs) > 1:
                assert not any(between(r, inputs) for r in there if (r.object, r.low) not in taken)


@given(pools(), ROOMY)
def test_a_closed_window_is_rewritten_once(references: list[Reference], policy: CompactionPolicy) -> None:
    policy = replace(policy, strategy="time_window", depth=100)
    first = plan(references, policy)
    after = done(references, first.jobs, count=1000)
    rewritten = {r.object for r in after} - {r.object for r in references}
    ended = [job for job in plan(after, policy).jobs if job.why == "its window has ended"]
    assert not any(r.object in rewritten for job in ended for r in job.inputs)


def cut_at(references: list[Reference], points: Points) -> list[Reference]:
    """References of which none straddles a point: what straddled one is several objects."""
    found = []
    for n, r in enumerate(references):
        ends = [r.low, *(p for p in points if r.low < p < r.high), r.high]
        for piece, (low, high) in enumerate(pairwise(ends)):
            found.append(
                msgspec.structs.replace(r, object=new_id(1000 * n + piece, BEGIN), low=low, high=high)
            )
    return found


@given(pools(), TIGHT, KINDS, POINTS)
def test_no_job_crosses_a_split_point_but_within_an_input(
    references: list[Reference], policy: CompactionPolicy, kind: str, points: Points
) -> None:
    for job in plan(references, policy, kind, points=points).jobs:
        assert len(apart(job.inputs, points)) == 1
        crossed = {p for p in points if job.key_range.low < p < (job.key_range.high or b"")}
        assert crossed == {p for p in points if any(r.low < p < r.high for r in job.inputs)}


@given(pools(), TIGHT, KINDS, POINTS)
def test_ranges_are_planned_one_by_one_unless_something_straddles_a_point(
    references: list[Reference], policy: CompactionPolicy, kind: str, points: Points
) -> None:
    references = cut_at(references, points)
    found = plan(references, policy, kind, points=points)
    ranges = [[r for r in references if places(r, points)[0] == n] for n in range(len(points) + 1)]
    alone = [plan(one, policy, kind) for one in ranges]
    assert sorted(job.inputs[0].order for job in found.jobs) == sorted(
        j.inputs[0].order for p in alone for j in p.jobs
    )
    assert {job.inputs for job in found.jobs} == {job.inputs for one in alone for job in one.jobs}
    assert (found.depth, found.references) == (deepest(references), len(references))
    assert found.depth_after == max(one.depth_after for one in alone)


@given(pools(), st.one_of(TIGHT, ROOMY), KINDS, POINTS)
def test_plans_of_a_split_pool_come_to_an_end(
    references: list[Reference], policy: CompactionPolicy, kind: str, points: Points
) -> None:
    at_rest = settled(references, policy, kind, points=points)
    assert plan(at_rest, policy, kind, points=points).jobs == ()


@given(pools(), ROOMY, KINDS, POINTS)
def test_a_split_pool_at_rest_is_not_deeper_than_the_policy(
    references: list[Reference], policy: CompactionPolicy, kind: str, points: Points
) -> None:
    assert deepest(settled(references, policy, kind, points=points)) <= policy.depth


@given(pools(), ROOMY, KINDS, POINTS)
def test_what_a_job_rewrote_straddles_no_point(
    references: list[Reference], policy: CompactionPolicy, kind: str, points: Points
) -> None:
    kept = {r.object for r in references}
    for r in settled(references, replace(policy, strategy="full"), kind, points=points):
        assert r.object in kept or len(places(r, points)) == 1


@given(pools(), TIGHT)
@settings(max_examples=300)
def test_jobs_of_a_split_aggregate_pool_leave_out_nothing_between_their_inputs(
    references: list[Reference], policy: CompactionPolicy
) -> None:
    points = tuple(encoded(n) for n in (60, 120, 180, 240))
    for job in plan(references, policy, "aggregate", points=points).jobs:
        taken = {(r.object, r.low) for r in job.inputs}
        for at in references:
            there = [r for r in references if r.key_range.contains(at.low)]
            inputs = [r for r in there if (r.object, r.low) in taken]
            if len(inputs) > 1:
                assert not any(between(r, inputs) for r in there if (r.object, r.low) not in taken)
