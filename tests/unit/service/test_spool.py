"""Answers on their way: what is held, what is given back, and who is told."""

from __future__ import annotations

import asyncio
import errno
import os
import tempfile

import pytest

from lake_core.errors import InvalidInput, Unavailable
from log_lake.service.problems import ClientGone
from log_lake.service.spool import IN_MEMORY, AnswerSpool, SpoolDisk


def test_an_answer_is_read_as_it_was_written_in_memory_or_on_disk() -> None:
    async def work(size: int) -> None:
        disk = SpoolDisk(1 << 30)
        spool, data = AnswerSpool(disk, most=1 << 30), os.urandom(size)
        for at in range(0, size, 10_000):
            spool.write(data[at : at + 10_000])
        spool.end()
        await spool.wait_for(size + 1)  # it is whole, so nobody waits
        assert b"".join(spool.part(at, 4_096) for at in range(0, size + 1, 4_096)) == data
        assert disk.used == size
        spool.release()
        spool.release()
        assert disk.used == 0

    for size in (0, 1, IN_MEMORY, IN_MEMORY + 1, 300_000):
        asyncio.run(work(size))


def test_a_reader_waits_for_what_a_thread_writes() -> None:
    async def work() -> None:
        spool = AnswerSpool(SpoolDisk(1 << 20), most=1 << 20)
        waiting = asyncio.ensure_future(spool.wait_for(3))
        await asyncio.sleep(0)
        await asyncio.to_thread(spool.write, b"ab")
        await asyncio.to_thread(spool.write, memoryview(b"c"))
        await waiting
        assert spool.part(1, 9) == b"bc"

    asyncio.run(work())


def test_limits_of_one_answer_and_of_all() -> None:
    async def work() -> None:
        disk = SpoolDisk(100)
        first, second = AnswerSpool(disk, most=60), AnswerSpool(disk, most=60)
        first.write(b"x" * 60)
        with pytest.raises(InvalidInput, match="more than the 60 B that this server allows"):
            first.write(b"x")
        second.write(b"x" * 40)
        with pytest.raises(Unavailable, match="other answers and bodies take"):
            second.write(b"x")
        first.release()
        second.write(b"x" * 20)
        assert disk.used == 60
        second.release()
        second = AnswerSpool(disk, most=60)
        second.release()
        with pytest.raises(ClientGone):
            second.write(b"x")
        assert disk.used == 0

    asyncio.run(work())


def test_a_part_that_the_disk_does_not_take_holds_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    async def work() -> None:
        disk = SpoolDisk(1 << 20)
        spool = AnswerSpool(disk, most=1 << 20)
        with pytest.raises(Unavailable, match="No space left"):
            spool.write(b"x" * (IN_MEMORY + 1))
        assert disk.used == 0

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    asyncio.run(work())
