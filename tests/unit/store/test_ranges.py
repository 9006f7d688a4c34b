"""Ranges of an object become few requests, side by side, within bounds; each byte comes once."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake_core.errors import Corrupt, InvalidInput, Unavailable
from lake_core.store.planned import Range
from log_lake.stores import open_store
from log_lake.stores.ranges import AHEAD, RangeAnswer, RangedFile, Ranges, RequestSizes, coalesced, parse_hole

DATA = bytes(range(256)) * 4_000
SMALL = RequestSizes(hole=100, request=50_000)


class Server:
    """Answers ranges of `data`, and counts what it is asked; with a gate it answers once that is open."""

    def __init__(self, data: bytes = DATA) -> None:
        self.data, self.asked = data, list[Range]()
        self.gate = threading.Event()
        self.gate.set()

    def fetch(self, asked: Range) -> RangeAnswer:
        self.asked.append(asked)
        assert self.gate.wait(600)
        return RangeAnswer(self.data[asked.begin : asked.end], len(self.data))


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def opened(
    server: Server, threads: ThreadPoolExecutor, *, reach: RequestSizes = SMALL, size: int = 0
) -> Ranges:
    return Ranges(
        server.fetch, name="a/1", size=size or len(server.data), threads=lambda: threads, reach=reach
    )


@given(
    st.lists(st.tuples(st.integers(0, 2_000), st.integers(0, 300)), max_size=20),
    st.integers(0, 200),
    st.integers(1, 800),
)
def test_requests_cover_the_ranges_in_order_and_waste_no_more_than_holes(
    given: list[tuple[int, int]], hole: int, request: int
) -> None:
    wanted = [Range(begin, begin + size) for begin, size in given]
    asked = coalesced(wanted, RequestSizes(hole=hole, request=request))
    bytes_wanted = {at for begin, end in wanted for at in range(begin, end)}
    bytes_asked = [at for begin, end in asked for at in range(begin, end)]
    assert bytes_asked == sorted(set(bytes_asked))
    assert bytes_wanted <= set(bytes_asked)
    longest = max((end - begin for begin, end in wanted), default=0)
    for begin, end in asked:
        assert end - begin <= max(request, longest)
        assert {begin, end - 1} <= bytes_wanted
        run = 0
        for at in range(begin, end):
            run = 0 if at in bytes_wanted else run + 1
            assert run <= hole


def test_near_ranges_come_in_one_request_and_far_ones_side_by_side(threads: ThreadPoolExecutor) -> None:
    server = Server()
    server.gate.clear()
    file = opened(server, threads)
    file.plan([Range(0, 1_000), Range(1_050, 2_000), Range(40_000, 41_000)], SMALL, keeps=False)
    for _ in range(60_000):  # both are under way before either is answered
        if len(server.asked) == 2:
            break
        time.sleep(0.01)
    assert len(server.asked) == 2
    server.gate.set()
    for begin, end in ((0, 1_000), (1_050, 2_000), (40_000, 41_000)):
        assert bytes(file.read_range(begin, end)) == DATA[begin:end]
    assert sorted(server.asked) == [(0, 2_000), (40_000, 41_000)]


def test_no_more_than_two_requests_of_bytes_are_fetched_before_something_is_released(
    threads: ThreadPoolExecutor,
) -> None:
    server = Server()
    file = opened(server, threads)
    step = 50_000
    file.plan([Range(at, at + step) for at in range(0, 1_000_000, step)], RequestSizes(0, step), keeps=False)
    for at in range(0, 1_000_000, step):
        file.release(at)
        assert bytes(file.read_range(at, at + step)) == DATA[at : at + step]
        assert max(asked.end for asked in server.asked) <= at + AHEAD * step
    assert len(server.asked) == 1_000_000 // step


def test_what_no_plan_names_is_fetched_when_it_is_read_and_the_rest_is_taken(
    threads: ThreadPoolExecutor,
) -> None:
    server = Server()
    file = opened(server, threads)
    file.plan([Range(1_000, 2_000)], SMALL, keeps=False)
    assert bytes(file.read_range(500, 2_500)) == DATA[500:2_500]
    assert sorted(server.asked) == [(500, 1_000), (1_000, 2_000), (2_000, 2_500)]
    assert bytes(file.read_range(1_000, 2_000)) == DATA[1_000:2_000]
    assert len(server.asked) == 3


def test_a_plan_around_what_is_there_asks_for_no_byte_again(threads: ThreadPoolExecutor) -> None:
    server = Server()
    file = opened(server, threads)
    file.plan([Range(1_000, 1_050)], SMALL, keeps=False)
    assert bytes(file.read_range(1_000, 1_050)) == DATA[1_000:1_050]
    file.plan([Range(950, 990), Range(1_010, 1_030), Range(1_060, 1_100)], SMALL, keeps=False)
    assert bytes(file.read_range(950, 1_100)) == DATA[950:1_100]
    assert sorted(server.asked) == [(950, 1_000), (1_000, 1_050), (1_050, 1_100)]


def test_a_small_object_is_fetched_whole_with_its_footer(threads: ThreadPoolExecutor) -> None:
    server = Server(DATA[:90])
    file = RangedFile(opened(server, threads))
    file.fetch_tail(10_000)
    file.plan([Range(0, 40)], share=10_000)
    assert file.read() == DATA[:90]
    assert file.size() == 90
    assert server.asked == [(0, 90)]


def test_an_object_of_another_size_is_corrupt(threads: ThreadPoolExecutor) -> None:
    for size in (len(DATA) - 1, len(DATA) + 1):
        with pytest.raises(Corrupt, match="are on record"):
            opened(Server(), threads, size=size).read_range(0, 10)


def test_a_short_answer_is_unavailable_and_asked_again(threads: ThreadPoolExecutor) -> None:
    server = Server()
    short = [True]

    def fetch(asked: Range) -> RangeAnswer:
        piece = server.fetch(asked)
        return (
            RangeAnswer(piece.data[:-1], piece.size) if asked.begin == 0 and short and short.pop() else piece
        )

    file = Ranges(fetch, name="a/1", size=len(DATA), threads=lambda: threads, reach=SMALL)
    file.plan([Range(0, 10), Range(50_000, 50_010)], SMALL, keeps=False)
    with pytest.raises(Unavailable, match="try again"):
        file.read_range(0, 10)
    assert bytes(file.read_range(0, 10)) == DATA[:10]


def test_a_hole_is_bytes_up_to_the_longest_request() -> None:
    assert [parse_hole(text) for text in ("0", 65_536, "256KiB", "8MiB")] == [0, 65_536, 256 << 10, 8 << 20]
    for text in ("", "-1", "9MiB", "1.5MiB", "fast"):
        with pytest.raises(InvalidInput, match="hole"):
            open_store("memory://holes", {"hole": text})
