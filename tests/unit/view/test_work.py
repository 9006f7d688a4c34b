"""Reading lakes in threads of their own, of which there are few."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from functools import partial

import pytest

from lake_core.errors import NotFound, Unavailable
from log_lake.view.work import LakeThreads


def test_the_answer_and_the_error_are_those_of_the_call() -> None:
    def fail() -> None:
        raise NotFound("no such pool")

    work = LakeThreads()
    assert asyncio.run(work.run(lambda: 7)) == 7
    with pytest.raises(NotFound, match="no such pool"):
        asyncio.run(work.run(fail))


def test_a_store_that_does_not_answer_holds_the_threads_of_the_view_and_then_refuses() -> None:
    answered = threading.Event()

    async def ask() -> list[object]:
        work = LakeThreads(threads=2, max_pending=3)
        waiting = [asyncio.create_task(work.run(answered.wait)) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(Unavailable, match="3 requests wait"):
            await work.run(lambda: None)
        answered.set()
        return [*await asyncio.gather(*waiting), await work.run(lambda: "again")]

    assert asyncio.run(ask()) == [True, True, True, "again"]


def test_a_page_that_goes_away_is_counted_until_its_reading_has_ended() -> None:
    answered, reading = threading.Event(), threading.Event()

    def read() -> None:
        reading.set()
        answered.wait()

    async def ask() -> str:
        work = LakeThreads(threads=1, max_pending=1)
        page = asyncio.create_task(work.run(read))
        await asyncio.to_thread(reading.wait)
        page.cancel()
        with pytest.raises(Unavailable):
            await work.run(lambda: "too early")
        answered.set()
        for _ in range(60_000):
            try:
                return await work.run(lambda: "again")
            except Unavailable:
                await asyncio.sleep(0.01)
        raise AssertionError("still counted")

    assert asyncio.run(ask()) == "again"


def test_a_lake_that_hangs_is_said_to_hang_and_what_waits_behind_it_is_not_begun() -> None:
    answered = threading.Event()
    begun: list[int] = []

    def hang(number: int) -> None:
        begun.append(number)
        answered.wait(600)

    async def ask() -> list[str]:
        work = LakeThreads(threads=1, max_pending=3, max_seconds=0.2)
        waiting = [asyncio.create_task(work.run(partial(hang, number))) for number in range(3)]
        said = [str(error) for error in await asyncio.gather(*waiting, return_exceptions=True)]
        answered.set()
        for _ in range(600):  # there is room again; a slow machine may need more than one try
            with contextlib.suppress(Unavailable):
                await work.run(lambda: None)
                return said
        raise AssertionError("there is no room")

    said = asyncio.run(ask())
    assert said == ["the lake did not answer within 0.2 s; ask again in a minute"] * 3
    assert len(begun) <= 1, "none, if the thread takes so long to start"


def test_a_store_that_never_answers_has_no_more_threads_than_its_own_however_many_pages_ask() -> None:
    answered = threading.Event()
    before = threading.active_count()

    async def ask() -> None:
        work = LakeThreads(threads=2, max_pending=4, max_seconds=0.01)
        for _ in range(20):
            pages = (work.run(answered.wait) for _ in range(4))
            said = await asyncio.gather(*pages, return_exceptions=True)
            assert all(isinstance(error, Unavailable) for error in said)
            assert threading.active_count() <= before + 2

    asyncio.run(ask())
    answered.set()


def test_a_page_that_goes_away_before_its_reading_begins_is_not_read() -> None:
    answered, reading = threading.Event(), threading.Event()
    begun: list[str] = []

    def read() -> None:
        reading.set()
        answered.wait()

    async def ask() -> None:
        work = LakeThreads(threads=1, max_pending=2)
        first = asyncio.create_task(work.run(read))
        await asyncio.to_thread(reading.wait)
        page = asyncio.create_task(work.run(lambda: begun.append("gone")))
        await asyncio.sleep(0)
        page.cancel()
        await asyncio.gather(page, return_exceptions=True)
        later = asyncio.create_task(work.run(lambda: begun.append("later")))  # there is room for it
        await asyncio.sleep(0)
        answered.set()
        await asyncio.gather(first, later)

    asyncio.run(ask())
    assert begun == ["later"]
