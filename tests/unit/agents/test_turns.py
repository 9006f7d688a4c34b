"""Jobs of a pool by ranges in turn."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake_core.errors import InvalidInput
from lake_core.history import Reference
from lake_core.keys import PoolKey
from log_lake.agents.compact.plan import PIECE, pieces_of
from log_lake.agents.compact.policy import SETTINGS
from log_lake.compaction.jobs import CompactionJob
from log_lake.settings.settings import check_settings

POINTS = [bytes([10 * n]) for n in range(1, 10)]


def job(number: int, low: int) -> CompactionJob:
    reference = Reference(f"o{number}", bytes([low]), bytes([low + 1]), 1, 0, 1, 1, "s")
    return CompactionJob((reference,), 1, "test")


def names(pieces: list[tuple[object, ...]]) -> list[str]:
    return [one.inputs[0][0] for piece in pieces for one in piece]  # type: ignore[attr-defined]


@settings(max_examples=50)
@given(st.lists(st.integers(0, 98), max_size=200).map(sorted), st.floats(0, 1e10))
def test_every_job_is_in_one_piece_and_ranges_take_turns(lows: list[int], now: float) -> None:
    jobs = [job(number, low) for number, low in enumerate(lows)]
    pieces = pieces_of(jobs, POINTS, now=now)
    assert all(len(piece) == PIECE for piece in pieces[:-1])
    ordered = names(list(pieces))
    assert sorted(ordered) == sorted(f"o{number}" for number in range(len(lows)))
    seen = Counter[int]()
    left = Counter(low // 10 for low in lows)
    for name in ordered:
        of = lows[int(name[1:])] // 10
        assert all(seen[of] <= seen[other] for other in left if seen[other] < left[other]), (
            "it waits for others"
        )
        seen[of] += 1


def test_no_range_is_first_in_every_run() -> None:
    jobs = [job(number, 10 * number) for number in range(10)]
    first = Counter(names(list(pieces_of(jobs, POINTS, now=3600.0 * hour)))[0] for hour in range(300))
    assert len(first) == 10
    assert pieces_of(jobs, POINTS, now=1.0) == pieces_of(jobs, POINTS, now=1.0)


def test_without_points_jobs_keep_their_order_and_without_jobs_there_is_one_piece() -> None:
    jobs = [job(number, number) for number in range(90)]
    assert names(list(pieces_of(jobs, [], now=7.0))) == [f"o{number}" for number in range(90)]
    assert pieces_of([], POINTS, now=0.0) == [()]


@pytest.mark.parametrize("text", ["0", "-1", "1001", "half"])
def test_a_share_is_a_number_of_pieces(text: str) -> None:
    assert SETTINGS["compact.share"].parse("7") == 7
    with pytest.raises(InvalidInput, match=r"compact\.share"):
        check_settings({"compact.share": text}, kind="append", key=PoolKey.parse("k"))
