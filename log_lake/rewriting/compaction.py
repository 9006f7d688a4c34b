"""Carries out compactions: some references of a branch become one sorted run of new objects.

    begin_compaction    turns a job of the planner into work: pieces of its key range, one object each
    compact             a job from begin to commit, under a lease, on any workers
    run_jobs            several jobs at a time; each is committed as it finishes

If a job fails, the others still commit.  If another writer removed an input of a job, the job is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from lake_core import naming
from lake_core.errors import Conflict, LakeError
from lake_core.history import Reference
from lake_core.history.between import Ages
from lake_core.history.rebase import check_held
from lake_core.history.snapshot.reference import span_of
from lake_core.keys import KeyRange
from lake_core.phrases import counted
from log_lake.combine.newest import emptied, without_markers
from log_lake.compaction.jobs import CompactionJob, CompactionResult
from log_lake.compaction.ranges import cuts, ranges_of
from log_lake.indexes.cluster import NO_BUCKET, bucket_by
from log_lake.indexes.cluster_rule import ClusterRule
from log_lake.lake.branch import Branch
from log_lake.measuring import measured
from log_lake.presence.absence import planning_again
from log_lake.reading.ranges import WeightedSample, split_range
from log_lake.reading.revision import Revision
from log_lake.reading.split import sample_of
from log_lake.rewriting.exchange import LostRace, commit
from log_lake.rewriting.pieces import objects_of
from log_lake.rewriting.rewriting import Rewriting
from log_lake.rewriting.work import begin_rewriting, lease_of, write
from log_lake.workers import Here, Workers

SMALLEST_PIECE = 16 << 20
"""Bytes.  A job is not cut into smaller outputs only to keep more workers busy."""

_COMPACTED = {naming.PARQUET: naming.PARQUET, naming.ZNG: naming.ZST, naming.ZST: naming.ZST}
"""The format that a compaction writes in a pool of a given format: a format of rows is replaced by one of
columns."""

JobProgress = Callable[[CompactionJob, CompactionResult], None]


def begin_compaction(branch: Branch, inputs: Sequence[Reference], *, outputs: int, message: str) -> Rewriting:
    """Returns the work of a job on references of the branch, cut into about `outputs` pieces, and at the split
    points of the pool.  Any process may rewrite a piece.

    Reads the samples in the inputs' footers.  Raises Conflict if another compaction took an input before this
    began, or if the inputs leave out a reference that an aggregate pool must combine with them.  Raises
    NotFound, InvalidInput (`Branch.revision_to_rewrite`), ObjectMissing, Corrupt, Unavailable.
    """
    branch.check_writable()
    ordered = tuple(sorted(inputs, key=lambda r: r.order))
    sub_pool = ordered[0].sub_pool
    revision = branch.revision_to_rewrite().of_sub_pool(sub_pool)
    tip, rule = revision.held, revision.rule
    for reference in ordered:
        check_held(tip, reference.object, reference.low)
    if len({tip.is_unmerged(reference) for reference in ordered}) > 1:
        raise Conflict(
            f"branch {branch.name!r}: a compaction takes what a merge will bring to the parent, or the rest, never "
            "both; plan again"
        )
    format = _COMPACTED[naming.format_in(sub_pool, str(revision.settings["format"]))]
    hiding = [*revision.tombstones, *revision.filters]
    work = begin_rewriting(branch, revision, ordered, hiding=hiding, format=format, message=message)
    if rule.kind == "aggregate":
        _check_neighbours(revision.references_in(span_of(ordered)), work)
    # the first and the last part are open, since clips bound the records anyway
    of = work.cluster.of if work.cluster is not None and divides(ordered, work.cluster) else 1
    outputs = max(1, round(outputs / of))
    parts = ranges_of(cuts(revision.points, span_of(ordered), size=work.size, of=of))
    if outputs > 1:
        with planning_again(branch.history):
            samples = [
                sample_of(r, branch.store, pool_id=work.config.id, weight=float(r.size)) for r in ordered
            ]
        parts = _pieces(samples, parts, outputs=outputs)
    work = replace(work, pieces=tuple(parts), divides=of > 1)
    if rule.kind != "upsert":
        return work
    # what the markers of unmerged records hide may be on the parent
    if tip.is_unmerged(ordered[0]) or _hides_older(revision, ordered):
        return replace(work, keeps=partial(emptied, key=work.key.names))
    # what the markers hid may be put back by a revert while the job runs
    return replace(work, keeps=without_markers, oldest_only=True)


def divides(inputs: Sequence[Reference], rule: ClusterRule) -> bool:
    """Whether a job on these references divides records by the rule: if they are large enough, and of several
    buckets."""
    buckets = {bucket_by(rule, reference.columns) for reference in inputs}
    is_one = len(buckets) == 1 and NO_BUCKET not in buckets
    return not is_one and rule.divides(sum(reference.size for reference in inputs))


def _pieces(samples: Sequence[WeightedSample], parts: Sequence[KeyRange], *, outputs: int) -> list[KeyRange]:
    """Cuts `parts` of a key range further: of about `outputs` pieces in total, each part gets a share that fits
    its weight in the samples, and at least one."""
    weights = [sum(sum(sample.within(part).weights) for sample in samples) for part in parts]
    total = sum(weights) or 1.0
    return [
        piece
        for part, weight in zip(parts, weights, strict=True)
        for piece in split_range(samples, part, pieces=max(1, round(outputs * weight / total)))
    ]


def _check_neighbours(near: Sequence[Reference], work: Rewriting) -> None:
    """Raises Conflict if a reference that is no input lies between two inputs in age, and shares keys with both.

    An aggregate pool must combine such a reference with the inputs, so the planner adds it to them
    (`history.between` says why).  But another compaction may have made one since the plan.  Inputs whose
    records are all deleted do not count.
    """
    covering = work.covering()
    left = [r for r in work.inputs if not covering.of(r).whole]
    if len(left) < 2:
        return
    taken = {(r.object, r.low) for r in work.inputs}
    between = Ages(near).between(left, most=len(work.inputs))
    if others := [r for r in between if (r.object, r.low) not in taken]:
        raise Conflict(
            f"object {others[0].object} lies between the inputs of this compaction in age, and shares keys with "
            "two of them: an aggregate pool must combine it with them; plan the compaction again, or add it to "
            "the inputs"
        )


def _hides_older(revision: Revision, inputs: Sequence[Reference]) -> bool:
    """Whether a reference that is no input, and overlaps one, may have older records.

    It stops at the first such reference, so the answer is mostly quick, however many references the pool has.
    """
    chosen = {(r.object, r.low) for r in inputs}
    newest, span = max(r.seq for r in inputs), span_of(inputs)
    older = revision.snapshot.reaching(newest, span, sub_pool=revision.sub_pool)
    return any(
        other.key_range.overlaps(one.key_range)
        for other in older
        if (other.object, other.low) not in chosen
        for one in inputs
    )


def compact(
    branch: Branch,
    inputs: Sequence[Reference],
    *,
    outputs: int = 1,
    message: str = "",
    workers: Workers | None = None,
) -> CompactionResult:
    """Rewrites references as one sorted run of about `outputs` objects, on these workers (default: in this
    process).

    Raises OutcomeUnknown, and what `begin_compaction` raises, except Conflict: that is returned as a result.
    """
    size = sum(r.size for r in inputs)
    try:
        with measured(branch.store, "rewriting", pool=branch.config.name, branch=branch.name) as measuring:
            with measuring.phase("plan"):
                work = begin_compaction(branch, inputs, outputs=outputs, message=message)
            with planning_again(branch.history), lease_of(branch, work, why="compaction"):
                pieces = write(work, workers or Here.of(branch.context), branch.store)
                written = objects_of(pieces)
                does = f"merges {counted(len(inputs), 'object')} into {counted(len(written), 'object')}"
                committed = commit(branch, work, pieces, does=does)
    except Conflict as error:
        committed = LostRace(error)
    if isinstance(committed, LostRace):
        return CompactionResult(None, len(inputs), 0, 0, size, 0, lost=str(committed.error))
    return CompactionResult(
        committed.version,
        inputs=len(inputs),
        objects=len(written),
        records=sum(w.action.records for w in written),
        size_in=size,
        size_out=sum(w.action.size for w in written),
    )


def run_jobs(
    branch: Branch,
    jobs: Sequence[CompactionJob],
    workers: Workers,
    *,
    progress: JobProgress = lambda job, result: None,
) -> list[CompactionResult]:
    """Carries out jobs, several at a time if there are many workers; each is committed as it finishes.

    After it has tried all jobs, it raises the first failure.
    """
    size = workers.size if jobs else 1  # once: Spark Connect is asked for it

    def run(job: CompactionJob) -> CompactionResult | LakeError:
        pieces = pieces_for(job.outputs, size=job.size, parallelism=size)
        try:
            result = compact(
                branch, job.inputs, outputs=pieces, message=f"compaction: {job.why}", workers=workers
            )
        except LakeError as error:
            return error
        progress(job, result)
        return result

    if workers.at_once == 1:
        outcomes = [run(job) for job in jobs]
    else:
        with ThreadPoolExecutor(max_workers=workers.at_once) as threads:
            outcomes = list(threads.map(run, jobs))
    for outcome in outcomes:
        if isinstance(outcome, LakeError):
            raise outcome
    return [outcome for outcome in outcomes if isinstance(outcome, CompactionResult)]


def pieces_for(outputs: int, *, size: int, parallelism: int) -> int:
    """Returns into how many pieces a job of `size` bytes is cut: about `outputs`, and at least enough to keep
    every core busy."""
    pieces = -(-outputs // parallelism) * parallelism if outputs < 4 * parallelism else outputs
    return max(1, min(pieces, max(outputs, size // SMALLEST_PIECE)))
