"""Caches of ranges, in memory and on disk: bounded, aged, forgotten with their objects, safe beside others."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lake_core.errors import InvalidInput
from lake_core.store.planned import Range
from log_lake.stores.caches import Folder, given_cache, parse_folder, parse_room
from log_lake.stores.disk_cache import BLOCK, DiskCache, own_folder
from log_lake.stores.memory_cache import LONGEST, SECONDS, Memory
from log_lake.stores.ranges import RangeAnswer, RangeCache, Ranges, RequestSizes

DATA = os.urandom(300_000)
NAME = "p/data/o.parquet"


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Server:
    """Answers ranges of DATA, and counts."""

    def __init__(self) -> None:
        self.asked: list[Range] = []

    def of(self, asked: Range) -> Callable[[], bytes]:
        def fetch() -> bytes:
            self.asked.append(asked)
            return DATA[asked.begin : asked.end]

        return fetch

    def fetch(self, asked: Range) -> RangeAnswer:
        return RangeAnswer(self.of(asked)(), len(DATA))


def on_disk(
    folder: Path, *, room: int = 1 << 30, age: float = 3_600.0, clock: Clock | None = None
) -> DiskCache:
    return DiskCache(folder, room=room, age=age, store="s", clock=clock or Clock(), chance=lambda: 0.5)


@pytest.fixture(params=["memory", "disk", "both"])
def cache(request: pytest.FixtureRequest, tmp_path: Path) -> RangeCache:
    """A cache of each kind."""
    if request.param == "memory":
        return Memory().cache()
    disk = on_disk(tmp_path)
    return disk if request.param == "disk" else Memory(room=100_000).cache(disk)


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.parent.name != "ranges-1")


def test_a_range_that_was_fetched_is_not_asked_for_again_nor_is_a_part_of_it(cache: RangeCache) -> None:
    server = Server()
    for asked in (
        Range(1_000, 250_000),
        Range(1_000, 250_000),
        Range(70_000, 70_001),
        Range(65_536, 250_000),
    ):
        assert cache.fetched(NAME, asked, server.of(asked)) == DATA[asked.begin : asked.end]
    assert server.asked == [(1_000, 250_000)]
    assert Range(1_000, 250_000) in cache.held(NAME)
    cache.fetched("p/data/other.parquet", Range(1_000, 2_000), server.of(Range(1_000, 2_000)))
    assert len(server.asked) == 2


def test_a_plan_asks_only_for_what_no_cache_holds(cache: RangeCache, threads: ThreadPoolExecutor) -> None:
    server, reach = Server(), RequestSizes(hole=100, request=90_000)

    def opened() -> Ranges:
        return Ranges(
            server.fetch,
            name=NAME,
            size=len(DATA),
            threads=lambda: threads,
            reach=reach,
            cache=cache,
            cached_as=NAME,
        )

    for wanted in (
        [Range(0, 50_000)],
        [Range(20_000, 120_000), Range(200_000, 220_000)],
        [Range(0, len(DATA))],
    ):
        file = opened()
        file.plan(wanted, reach, keeps=False)
        for begin, end in wanted:
            assert bytes(file.read_range(begin, end)) == DATA[begin:end]
        file.close()
    asked = sorted(server.asked)
    assert asked[0] == (0, 50_000)
    assert sum(end - begin for begin, end in asked) == len(DATA)  # each byte once, in three readings
    file = opened()
    file.plan([Range(0, len(DATA))], reach, keeps=False)
    assert bytes(file.read_range(0, len(DATA))) == DATA
    assert sorted(server.asked) == asked


def test_what_is_forgotten_is_asked_again_and_what_was_under_way_is_not_kept(cache: RangeCache) -> None:
    server, asked = Server(), Range(0, 1_000)
    cache.fetched(NAME, asked, server.of(asked))
    cache.forget([NAME])
    assert not cache.held(NAME)

    def overtaken() -> bytes:
        cache.forget([NAME])  # as the one who deletes the object does
        return server.of(asked)()

    assert cache.fetched(NAME, asked, overtaken) == DATA[:1_000]
    assert not cache.held(NAME)
    cache.fetched(NAME, asked, server.of(asked))
    assert len(server.asked) == 3


def times(folder: Path) -> dict[Path, int]:
    """All files, with the times of their last changes."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def of_another_user(folder: Path) -> None:
    os.chown(folder / "ranges-1", 12_345, 12_345)


def of_all_users(folder: Path) -> None:
    (folder / "ranges-1").chmod(0o777)


def behind_a_link(folder: Path) -> None:
    (folder / "ranges-1").rename(folder / "theirs")
    (folder / "ranges-1").symlink_to(folder / "theirs")


@pytest.mark.parametrize("change", [of_another_user, of_all_users, behind_a_link])
def test_a_folder_that_another_user_may_write_to_is_not_used(
    change: Callable[[Path], None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    if change is of_another_user and os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    server, asked = Server(), Range(1_000, 2_000)
    on_disk(tmp_path).fetched(NAME, asked, server.of(asked))
    change(tmp_path)
    theirs = times(tmp_path)
    cache = on_disk(tmp_path)
    for wanted in (asked, asked, Range(5, 6)):
        assert cache.fetched(NAME, wanted, server.of(wanted)) == DATA[wanted.begin : wanted.end]
    cache.forget([NAME])
    cache.sweep()
    assert (len(server.asked), list(cache.held(NAME)), times(tmp_path)) == (4, [], theirs)
    assert caplog.text.count("another user made this folder or may write to it; name another folder") == 1


def test_an_error_of_the_store_is_raised_and_nothing_is_kept(cache: RangeCache) -> None:
    def fails() -> bytes:
        raise FileNotFoundError(NAME)

    with pytest.raises(FileNotFoundError):
        cache.fetched(NAME, Range(0, 10), fails)
    assert not cache.held(NAME)


def test_memory_is_bounded_by_use_and_by_age() -> None:
    clock, server = Clock(), Server()
    memory = Memory(room=3_000, clock=clock)
    cache, other = memory.cache(), memory.cache()
    for begin in (0, 1_000, 2_000):
        cache.fetched(NAME, Range(begin, begin + 1_000), server.of(Range(begin, begin + 1_000)))
    cache.fetched(NAME, Range(0, 1_000), server.of(Range(0, 1_000)))  # used last
    other.fetched(
        NAME, Range(5_000, 6_000), server.of(Range(5_000, 6_000))
    )  # another store's, which pushes one out
    assert sorted(cache.held(NAME)) == [(0, 1_000), (2_000, 3_000)]
    assert other.held(NAME) == [(5_000, 6_000)]
    assert memory.size == 3_000
    clock.now += SECONDS + 1
    assert (cache.held(NAME), other.held(NAME), memory.size) == ([], [], 0)
    long = b"x" * (LONGEST + 1)
    assert Memory().cache().fetched(NAME, Range(0, len(long)), lambda: long) == long


def test_disk_is_bounded_by_use_and_by_age(tmp_path: Path) -> None:
    clock, server = Clock(), Server()
    cache = on_disk(tmp_path, room=50_000, age=100.0, clock=clock)
    for begin in range(0, 100_000, 10_000):
        clock.now += 1
        cache.fetched(NAME, Range(begin, begin + 10_000), server.of(Range(begin, begin + 10_000)))
        cache.fetched(NAME, Range(0, 10_000), server.of(Range(0, 10_000)))  # used all the time
        assert sum(path.stat().st_size for path in files(tmp_path)) <= 50_000
    held = sorted(cache.held(NAME))
    assert held[0] == (0, 10_000)
    assert held[-1] == (90_000, 100_000)
    assert len(server.asked) == 10
    clock.now += 101
    asked = Range(0, 10_000)
    cache.fetched(NAME, asked, server.of(asked))
    assert len(server.asked) == 11
    cache.sweep()
    assert cache.held(NAME) == [(0, 10_000)]  # the others are gone from the disk, too
    assert len(files(tmp_path)) == 1


@pytest.mark.parametrize("change", ["flip", "flip the sum", "cut", "longer", "empty", "a folder"])
def test_a_damaged_file_is_as_none_and_is_replaced(tmp_path: Path, change: str) -> None:
    cache, server, asked = on_disk(tmp_path), Server(), Range(0, 3 * BLOCK)
    cache.fetched(NAME, asked, server.of(asked))
    (path,) = files(tmp_path)
    data = bytearray(path.read_bytes())
    if change == "flip":
        data[BLOCK + 5] ^= 1
    elif change == "flip the sum":
        data[-6] ^= 1
    changed = {"cut": data[:-1], "longer": data + b"x", "empty": b""}.get(change, data)
    if change == "a folder":
        path.unlink()
        path.mkdir()
    else:
        path.write_bytes(changed)
        os.utime(path, (1_000_000.0, 1_000_000.0))
    inside = Range(BLOCK + 1, BLOCK + 10)
    assert cache.fetched(NAME, inside, server.of(inside)) == DATA[BLOCK + 1 : BLOCK + 10]
    assert server.asked == [asked, inside]
    assert cache.fetched(NAME, asked, server.of(asked)) == DATA[: 3 * BLOCK]


def test_a_part_that_a_killed_process_left_is_never_served_and_goes_with_its_age(tmp_path: Path) -> None:
    clock = Clock()
    cache = on_disk(tmp_path, age=100.0, clock=clock)
    ready = tmp_path / "ready"
    killed = subprocess.Popen([sys.executable, "-c", _STALLS, str(tmp_path), str(ready)])
    try:
        for _ in range(60_000):
            if ready.exists():
                break
            time.sleep(0.01)
        assert ready.exists()
    finally:
        killed.send_signal(signal.SIGKILL)
        killed.wait()
    ready.unlink()
    (part,) = files(tmp_path)
    os.utime(part, (clock.now, clock.now))
    assert not cache.held(NAME)
    server, asked = Server(), Range(0, 2_000)
    assert cache.fetched(NAME, asked, server.of(asked)) == DATA[:2_000]
    assert len(files(tmp_path)) == 2
    os.utime(part, (clock.now - 101, clock.now - 101))
    cache.sweep()
    assert [path.name for path in files(tmp_path)] == ["0-2000"]


_STALLS = """
import sys, time
from pathlib import Path
from lake_core.store.planned import Range
from log_lake.stores.disk_cache import DiskCache

def stalls():
    Path(sys.argv[2]).touch()
    time.sleep(600)

cache = DiskCache(Path(sys.argv[1]), room=1 << 30, age=3600.0, store="s", clock=stalls)
cache.fetched("p/data/o.parquet", Range(0, 1000), lambda: b"x" * 1000)
"""


def test_two_processes_share_the_files(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from lake_core.store.planned import Range\n"
        "from log_lake.stores.disk_cache import DiskCache\n"
        "cache = DiskCache(Path(sys.argv[1]), room=1 << 20, age=3600.0, store='s', clock=time.time)\n"
        "for number in range(300):\n"
        "    at = number * 997 % 90 * 10_000\n"
        "    got = cache.fetched('o', Range(at, at + 10_000), lambda: at.to_bytes(4, 'big') * 2_500)\n"
        "    assert got == at.to_bytes(4, 'big') * 2_500, at\n"
        "    if number % 50 == 49: cache.forget(['o'])\n"
        "print(len(cache.held('o')))\n"
    )
    both = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path)]) for _ in range(2)]
    assert [process.wait(600) for process in both] == [0, 0]
    cache = DiskCache(tmp_path, room=1 << 20, age=3600.0, store="s", clock=time.time)
    for begin, end in cache.held("o"):
        got = cache.fetched("o", Range(begin, end), lambda: b"")
        assert got == begin.to_bytes(4, "big") * 2_500
    assert sum(path.stat().st_size for path in files(tmp_path)) <= 1 << 20


def test_a_full_disk_keeps_nothing_and_stops_nothing(tmp_path: Path) -> None:
    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, 1_000))  # as a disk with no more room

    code = (
        "import sys, time; from pathlib import Path; from lake_core.store.planned import Range\n"
        "from log_lake.stores.disk_cache import DiskCache\n"
        "cache = DiskCache(Path(sys.argv[1]), room=1 << 30, age=3600.0, store='s', clock=time.time)\n"
        "for _ in range(3):\n"
        "    assert cache.fetched('o', Range(0, 50_000), lambda: b'x' * 50_000) == b'x' * 50_000\n"
        "assert not cache.held('o')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], preexec_fn=limited, check=False, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(b"not kept") == 1
    assert not files(tmp_path)


def test_a_folder_that_cannot_be_made_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    cache, server, asked = on_disk(tmp_path / "file"), Server(), Range(0, 10)
    for _ in range(2):
        assert cache.fetched(NAME, asked, server.of(asked)) == DATA[:10]
    cache.forget([NAME])
    assert len(server.asked) == 2


def test_the_folder_is_the_users_alone(tmp_path: Path) -> None:
    cache, server, asked = on_disk(tmp_path / "new"), Server(), Range(0, 10)
    cache.fetched(NAME, asked, server.of(asked))
    assert (tmp_path / "new" / "ranges-1").stat().st_mode & 0o077 == 0


def test_a_folder_that_gets_the_name_of_the_users_own_is_not_used(tmp_path: Path) -> None:
    """Who may write to the folder above may put another one there, between the look and the use."""
    for name in ("own", "theirs"):
        (tmp_path / name).mkdir(mode=0o700)
        (tmp_path / name / "file").write_text(name)
    with own_folder(tmp_path / "own") as own:
        (tmp_path / "own").rename(tmp_path / "before")
        (tmp_path / "theirs").rename(tmp_path / "own")
        assert own is not None
        assert (own / "file").read_text() == "own"
    (tmp_path / "own").chmod(0o770)
    with own_folder(tmp_path / "own") as own:
        assert own is None


def test_threads_that_forget_and_fetch_leave_nothing_behind_the_last_forget(cache: RangeCache) -> None:
    stop = threading.Event()

    def reads() -> None:
        server = Server()
        while not stop.is_set():
            assert cache.fetched(NAME, Range(0, 100), server.of(Range(0, 100))) == DATA[:100]

    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(reads) for _ in range(2)]
        for _ in range(200):
            cache.forget([NAME])
        stop.set()
    for one in running:
        one.result()
    cache.forget([NAME])
    assert not cache.held(NAME)


def test_the_variables_are_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert parse_folder("/var/cache/lake,20GiB") == Folder(Path("/var/cache/lake"), 20 << 30, 86_400.0)
    assert parse_folder("/a,b , 500MB, 6h") == Folder(Path("/a,b"), 500_000_000, 21_600.0)
    assert (parse_room("0"), parse_room("64MiB")) == (0, 64 << 20)
    for wrong in ("/x", "x,20GiB", "/x,20", "/x,20GiB,0s", "/x,20GiB,1y", "20GiB", ",20GiB", "/x,20GiB,1d,"):
        with pytest.raises(InvalidInput, match="LAKE_CACHE="):
            parse_folder(wrong)
    for wrong in ("", "much", "-1", "64 PiB"):
        with pytest.raises(InvalidInput, match="LAKE_MEMORY_CACHE="):
            parse_room(wrong)
    monkeypatch.setenv("LAKE_CACHE", f"{tmp_path},1MiB")
    monkeypatch.setenv("LAKE_MEMORY_CACHE", "0")
    cache = given_cache("s3://b/lake", {})
    other = given_cache("s3://b/lake", {"client_kwargs": {"endpoint_url": "http://127.0.0.1:1"}})
    server, asked = Server(), Range(0, 10)
    cache.fetched(NAME, asked, server.of(asked))
    assert (len(cache.held(NAME)), len(other.held(NAME))) == (1, 0)
