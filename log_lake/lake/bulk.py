"""Bulk imports by many workers: how an import is divided, and what each worker does (docs/loading.md).

Workers read units of the input, and give each other sorted pieces (`loading.pieces`).  Each then builds the run
of its part of the keys.  If the pool has at least as many ranges as there are workers, its split points are the
bounds of the parts.  Otherwise the bounds are chosen from the pieces, after everything is read.  A pool without
records and points gets points at that time, if the import is large enough for several ranges.  They are
committed in a transaction before that of the records, because points belong to the pool and records to a branch
(decision 331).  So an import that is refused after that may leave points.

Called by `agents.load_files` and `spark_apps.frames.bulk`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import msgspec

from lake_core.context import INLINES_SINCE
from lake_core.errors import InvalidInput
from lake_core.history import Draft, PoolState
from lake_core.keys import PoolKey
from lake_core.keys.ranges import EVERYTHING
from lake_core.phrases import counted
from lake_core.records import Split
from lake_core.records.pools import PoolConfig
from log_lake.lake.line import Line
from log_lake.lake.loads import builder
from log_lake.lake.results import PendingLoad
from log_lake.loading.block import Block
from log_lake.loading.builder import ObjectBuilder
from log_lake.loading.contract import LostValues
from log_lake.loading.pieces import PieceBuilder, cut_again, pieces_of, run_of
from log_lake.objects.write import WrittenObject
from log_lake.reading.ranges import WeightedSample, even_cuts
from log_lake.reading.split import whole_keys
from log_lake.settings import Settings
from log_lake.workers import SortedPiece, Worker

MOST_PARTS = 2_000
"""The most parts of one import: each is a task, and its objects cost requests."""

LEAST_BYTES, MOST_BYTES = 32 << 20, 512 << 20
"""Stored bytes of a part: the least, so that its objects are not small; and the most, unless split points
decide."""


@dataclass(frozen=True)
class Built:
    """The objects that a worker built.  `lost` is as in `WrittenObject`.  `read` is how many records the worker
    read, if it counted them."""

    written: list[WrittenObject]
    lost: dict[str, int] = field(default_factory=dict)
    read: int = 0


@dataclass(frozen=True)
class Bulk:
    """What workers need to know of an import besides its input: plain values that can be sent to them."""

    config: PoolConfig
    job: PendingLoad

    def pieces(
        self, worker: Worker, blocks: Iterable[Block], bounds: tuple[bytes, ...]
    ) -> Iterator[SortedPiece | list[WrittenObject]]:
        """Yields the pieces of the blocks, then the objects of sub-pools, which the worker has written."""
        kind = partial(PieceBuilder, bounds=bounds)
        return pieces_of(builder(kind, worker.store, self.config, self.job, worker.new_id), blocks)

    def cut_again(self, piece: SortedPiece, bounds: tuple[bytes, ...]) -> Iterator[SortedPiece]:
        """Cuts a piece, which was made without bounds, at these bounds."""
        return cut_again(piece, bounds, self.config.key)

    def take(self, worker: Worker, pieces: Iterator[bytes]) -> Built:
        """Builds the objects of one part from its pieces."""
        building = builder(ObjectBuilder, worker.store, self.config, self.job, worker.new_id)
        return Built(run_of(building, pieces))


class Divider:
    """Divides an import into a branch among workers.  `points`: the split points that the pool gets, if it gets
    any.

    `ranges`: how many ranges a pool without records and points gets; None: the number that its settings give.
    `alone`: one process does the import, so there are no pieces to choose points from.
    """

    def __init__(
        self, branch: Line, job: PendingLoad, *, workers: int, ranges: int | None = None, alone: bool = False
    ) -> None:
        self.points: tuple[bytes, ...] = ()
        self._branch, self._job, self._old, self._workers = branch, job, job.points, workers
        self._ranges = ranges if may_get_points(branch, ranges) else 1
        if alone and self._ranges not in (None, 1):
            raise InvalidInput(
                f"ranges={ranges}: one process alone makes no ranges; import by Spark, or use lake split afterwards"
            )

    @property
    def known(self) -> tuple[bytes, ...] | None:
        """The bounds of the parts, if the pool's points alone determine them; otherwise None."""
        return few(self._old) if len(self._old) + 1 >= self._workers else None

    def __call__(self, pieces: Sequence[SortedPiece]) -> tuple[bytes, ...]:
        """Returns the bounds of the parts, from the keys and sizes of all pieces."""
        ranges = self._ranges or ranges_of(pieces, self._branch.settings)
        bounds, self.points = divided(
            pieces, self._old, self._branch.config.key, ranges=ranges, workers=self._workers
        )
        return bounds

    def split(self) -> None:
        """Adds the new points to the pool, unless something was written to it meanwhile."""
        if not self.points:
            return
        context, history = self._branch.context, self._branch.history
        loaded = history.load_open()
        used = history.first_use(loaded.state, self._job.token, branch=self._branch.name)
        if used is not None or loaded.state.points or has_records(loaded.state):
            return
        message = f"split at {counted(len(self.points), 'key')}, by a bulk import"
        history.commit(
            Draft(
                context.ids.new(), "", loaded.version, context.author, (Split(self.points),), message=message
            )
        )


def has_records(state: PoolState) -> bool:
    """Whether a branch of the pool has objects."""
    return any(there.snapshot.totals().references for _, there in state.branches.items())


def may_get_points(branch: Line, ranges: int | None) -> bool:
    """Whether an import sets split points: the pool has no points, and no branch of it has records.

    Raises InvalidInput if `ranges` is given, and the pool cannot get points.
    """
    if ranges is not None and not 1 <= ranges <= MOST_PARTS:
        raise InvalidInput(
            f"ranges={ranges}: name 1 to {MOST_PARTS:,} ranges (inclusive); lake split makes more of them later"
        )
    state = branch.revision().state
    is_empty = not has_records(state)
    if is_empty and not state.points and branch.context.format_version >= INLINES_SINCE:
        return True
    if ranges is not None and ranges != len(state.points) + 1:
        why = (
            f"it has {len(state.points)} split points"
            if state.points
            else "it has records; lake split divides them"
            if not is_empty
            else "the lake needs lake upgrade first"
        )
        raise InvalidInput(f"ranges={ranges}: pool {branch.config.name!r} gets no ranges by an import: {why}")
    return False


def ranges_of(pieces: Sequence[SortedPiece], settings: Settings) -> int:
    """Returns how many ranges an import makes, so that none exceeds `range.bytes` and `range.records`, or, without
    these settings, `compact.max_bytes`."""
    size, records = sum(p.size for p in pieces), sum(p.records for p in pieces)
    by_records = settings["range.records"]
    by_size = settings["range.bytes"] or (0 if by_records else settings["compact.max_bytes"])
    return max(
        1,
        size // by_size if by_size else 1,
        records // by_records if by_records else 1,
    )


def divided(
    pieces: Sequence[SortedPiece], points: tuple[bytes, ...], key: PoolKey, *, ranges: int, workers: int
) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """Returns the bounds of the parts, and the split points that the pool gets.

    The new points divide the bytes into `ranges` ranges of about equal size.  The pool gets no new points if it
    has `points`, or if `ranges` is 1.
    """
    size = sum(piece.size for piece in pieces)
    samples = [_sample(piece) for piece in pieces]
    shares = max(ranges, min(workers, size // LEAST_BYTES), -(-size // MOST_BYTES))
    ranges = min(ranges, MOST_PARTS)
    parts = (
        min(-(-shares // ranges), MOST_PARTS // ranges) * ranges
    )  # so that cuts of ranges are cuts of parts
    cuts = whole_keys(even_cuts(samples, EVERYTHING, pieces=parts), key)
    new: tuple[bytes, ...] = ()
    if not points and ranges > 1:
        new = whole_keys(even_cuts(samples, EVERYTHING, pieces=ranges), key)
    bounds = tuple(sorted({*points, *new, *cuts}))
    if new and len(bounds) >= MOST_PARTS:
        return new, new  # `few` may leave out a point, which an object would cross then
    return few(bounds), new


def _sample(piece: SortedPiece) -> WeightedSample:
    *keys, last = piece.keys
    return WeightedSample((*keys, last + b"\0"), (piece.size / len(keys),) * len(keys))


def few(bounds: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Returns bounds of at most `MOST_PARTS` parts: all of the bounds, or every second of them, every third, and
    so on."""
    each = -(-(len(bounds) + 1) // MOST_PARTS)
    return bounds[each - 1 :: each]


def whole(built: Iterable[Built]) -> list[WrittenObject]:
    """Returns the objects of all workers, numbered in order: first those of sub-pools, then those of the parts by
    key."""
    lost, written = LostValues(), list[WrittenObject]()
    for one in built:
        lost.update(one.lost)
        written += one.written
    numbered = [
        replace(one, action=msgspec.structs.replace(one.action, ordinal=ordinal))
        for ordinal, one in enumerate(written)
    ]
    return [replace(one, lost=dict(lost)) for one in numbered[:1]] + numbered[1:]
