"""A bulk import by many workers has the answers of an ordinary load; its objects share no key, and cross no point.

The cases are those of loads on disk: keys of every type and direction, blocks with fields of their own, all kinds
and formats.  Workers of this process give each other pieces, as Spark tasks do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake_core.errors import InvalidInput
from lake_core.keys import PoolKey
from log_lake.lake import Lake
from log_lake.lake.bulk import MOST_PARTS, Built, Bulk, Divider, divided, whole
from log_lake.lake.pool import Pool
from log_lake.lake.results import PendingLoad
from log_lake.loading import pieces
from log_lake.loading.block import Block
from log_lake.stores.memory import MemoryStore
from log_lake.workers import Here, SortedPiece, Worker, exchange
from tests.properties.test_loads_on_disk import AGGREGATES, Case, cases, loaded, points_of
from tests.support.workers import Shuffling


@dataclass(frozen=True)
class TableBulk(Bulk):
    """A bulk import of tables."""

    def give(
        self, worker: Worker, number: int, unit: list[pa.Table], bounds: tuple[bytes, ...]
    ) -> Iterator[SortedPiece | Built]:
        for one in self.pieces(worker, map(Block, unit), bounds):
            yield one if isinstance(one, SortedPiece) else Built(one)


def imported(
    case: Case,
    *,
    units: int,
    points: tuple[bytes, ...] = (),
    ranges: int | None = None,
    alone: bool = False,
    memory: str = "1000",
    **sets: str,
) -> Pool:
    pool = Lake.create_on(MemoryStore()).create_pool(
        "p",
        key=case.key,
        kind=case.kind,
        aggregates=AGGREGATES if case.kind == "aggregate" else None,
        settings={
            "format": case.format,
            "load.memory": memory,
            **{name.replace("_", "."): text for name, text in sets.items()},
        },
    )
    branch = pool.branch()
    pending = branch.begin_load(bulk=True)
    assert isinstance(pending, PendingLoad)
    pending = replace(pending, points=points)
    here = Here.of(pool.context)
    workers = here if alone else Shuffling(here.worker)
    divider = Divider(branch, pending, workers=len(points) + 1 if ranges is None else 3, ranges=ranges)
    shares = [case.blocks[unit * len(case.blocks) // units :] for unit in range(units)]
    shares = [
        share[: len(share) - len(after)] for share, after in zip(shares, [*shares[1:], []], strict=True)
    ]
    built = exchange(workers, TableBulk(pool.config, pending), shares, divide=divider, bounds=divider.known)
    written = whole(built)
    divider.split()
    branch.commit(pending, objects=[w.action for w in written], schemas=[w.schema for w in written])
    return pool


def answers(pool: Pool) -> list[list[tuple[str, object]]]:
    """The records; their fields by name, since objects of other keys may name a new field first."""
    return [sorted(row.items()) for row in pool.at().to_table().to_pylist()]


def check_apart(pool: Pool, points: tuple[bytes, ...]) -> None:
    held = sorted(pool.at().references, key=lambda r: r.low)
    for one, other in pairwise(held):
        assert one.high <= other.low
    for reference in held:
        assert not [point for point in points if reference.low < point < reference.high[:-1]]


@settings(max_examples=30, deadline=None)
@given(cases(), st.integers(1, 3))
def test_an_import_by_points_has_the_answers_of_a_load(case: Case, units: int) -> None:
    points = points_of(case)
    found, expected = imported(case, units=units, points=points), loaded(case)
    assert repr(answers(found)) == repr(answers(expected))
    check_apart(found, points)


@settings(max_examples=20, deadline=None)
@given(cases(), st.integers(1, 3), st.integers(1, 4), st.booleans())
def test_an_import_into_an_empty_pool_sets_its_points(
    case: Case, units: int, ranges: int, alone: bool
) -> None:
    found, expected = imported(case, units=units, ranges=ranges, alone=alone), loaded(case)
    assert repr(answers(found)) == repr(answers(expected))
    points = found.at().points
    assert len(points) < ranges
    check_apart(found, points)
    if not alone and ranges > 1 and len({reference.low for reference in found.at().references}) > 1:
        assert points


def test_pieces_that_are_cut_again_keep_the_order_of_arrival() -> None:
    """The wide records of a piece are more than a piece may hold, if only these are looked at."""
    columns = {
        "k": pa.array([row // 6 for row in range(240)], pa.int64()),
        "n": pa.array(range(240), pa.int64()),
        "x": pa.array(["x" * (pieces.PIECE_BYTES // 4 if row > 120 else 1) for row in range(240)]),
    }
    case = Case("k", "upsert", "parquet", [pa.table(columns)], [])
    found = imported(case, units=1, ranges=7, memory="256MiB")
    assert repr(answers(found)) == repr(answers(loaded(case)))


@pytest.mark.parametrize("ranges", [1_200, 1_999, 5_000])
def test_every_point_is_a_bound(ranges: int) -> None:
    key = PoolKey.parse("k")
    given = [
        pieces.piece_of(pa.table({"k": range(at, at + 9)}), key, part=0, number=at)
        for at in range(0, 36_000, 9)
    ]
    heavy = [replace(piece, size=1 << 30) for piece in given]
    bounds, points = divided(heavy, (), key, ranges=ranges, workers=3)
    assert points
    assert set(points) <= set(bounds)
    assert len(bounds) < MOST_PARTS


def test_points_are_only_for_an_empty_pool() -> None:
    pool = Lake.create_on(MemoryStore()).create_pool("p", key="k", settings={"load.memory": "1000"})
    branch, workers = pool.branch(), Shuffling(Here.of(pool.context).worker)
    begun = []
    for ranges in (3, 4):
        job = branch.begin_load(bulk=True, token="t")
        assert isinstance(job, PendingLoad)
        begun.append((job, Divider(branch, job, workers=3, ranges=ranges)))
    tables = [[pa.table({"k": range(at, at + 9)})] for at in range(0, 900, 9)]
    for number, (job, divider) in enumerate(begun):
        written = whole(exchange(workers, TableBulk(pool.config, job), tables, divide=divider))
        divider.split()
        done = branch.commit(job, objects=[w.action for w in written], schemas=[w.schema for w in written])
        assert done.repeated == bool(number)
        assert len(pool.at().points) == 2


def test_ranges_that_cannot_be_made_are_refused() -> None:
    branch = Lake.create_on(MemoryStore()).create_pool("p", key="k").branch()
    job = branch.begin_load(bulk=True)
    assert isinstance(job, PendingLoad)
    with pytest.raises(InvalidInput, match="name 1 to 2,000 ranges"):
        Divider(branch, job, workers=3, ranges=2_001)
    with pytest.raises(InvalidInput, match="one process alone makes no ranges"):
        Divider(branch, job, workers=1, ranges=3, alone=True)
    Divider(branch, job, workers=1, ranges=1, alone=True)
