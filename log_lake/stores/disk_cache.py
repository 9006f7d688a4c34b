"""Caches ranges of immutable objects in a folder of this machine, shared by its processes:
`LAKE_CACHE=/path,20GiB,1d`.

    <folder>/ranges-1/<digest of store and object>/<begin>-<end>    the bytes, then a checksum of each block
    <folder>/ranges-1/forgotten    an empty file: its time is that of the last forgetting of objects
    <folder>/ranges-1/swept        an empty file: its time is that of the last sweep of all files

A file is written under another name and then renamed, so a killed process leaves none that is half written.  A
file that is damaged, cut or unreadable counts as missing: the store is asked.  A full disk is treated likewise,
and costs one line of the log.  The files hold records, so only the user may read their folder.  A folder that
another user made, or may write to, is not used: files in it could be forged, with right checksums.

- *Bounded.*  A process that wrote files sometimes sweeps all files, and deletes those that were not used for
  the longest time.  How often depends on chance and on how much it wrote, so no process has to count for all.
- *Aged.*  A file older than `age` is not used: another machine may have erased its object.
- *Forgotten.*  A process that deletes an object also removes it from the cache.  Bytes that were being fetched
  at that time are not kept: `forgotten` has changed since they were requested, and a removed folder takes no
  file.

Called by `opening`.  Decision 293.
"""

from __future__ import annotations

import contextlib
import logging
import os
import random
import re
import shutil
import zlib
from collections.abc import Callable, Iterator, Sequence
from errno import EPERM
from hashlib import sha256
from pathlib import Path
from stat import S_IWGRP, S_IWOTH
from typing import NamedTuple

from lake_core.store.planned import Range

log = logging.getLogger(__name__)

BLOCK = 64 << 10
"""How many bytes one checksum covers; a read takes at least one block."""

SWEEPS = 32
"""How often, on average, all files are swept while a process writes as many bytes as the folder may have."""

FULL = 0.9
"""A sweep deletes files until they take at most this share of the folder's size."""

FORGETS = 8
"""How often deleting the folder of an object is tried: another process may just move a file into it."""

SWEPT = 3_600.0
"""Seconds after which the next process sweeps all files, to find those that are too old."""

_NAME = re.compile(r"(\d{1,19})-(\d{1,19})")
_SUM = 4


class _File(NamedTuple):
    path: Path
    size: int
    used: float
    since: float


class DiskCache:
    """The cached ranges of one store's objects.  Safe to use from several threads and processes."""

    def __init__(
        self,
        folder: Path,
        *,
        room: int,
        age: float,
        store: str,
        clock: Callable[[], float],
        chance: Callable[[], float] = random.random,
    ) -> None:
        """`room`: bytes of all files; `age`: seconds for which a file is used; `store` distinguishes stores.

        `clock` returns seconds since 1970 by the clock of this machine's file system, `chance` a number from 0
        to 1.
        """
        self._folder, self._room, self._age, self._store = folder / "ranges-1", room, age, store
        self._clock, self._chance = clock, chance
        self._warned = False

    def held(self, name: str) -> Sequence[Range]:
        """Returns the ranges of the object that have files."""
        with own_folder(self._folder) as own:
            return _ranges(own / self._of(name)) if own is not None else ()

    def fetched(self, name: str, asked: Range, fetch: Callable[[], bytes]) -> bytes:
        """Returns the bytes of a range from a file; otherwise calls `fetch` and stores the bytes in a file."""
        with own_folder(self._folder) as own:
            data = None if own is None else self._data(own / self._of(name), asked)
            before = _forgotten(own)
        if data is not None:
            return data
        data = fetch()
        try:
            self._keep(name, asked, data, before)
        except OSError as error:
            if not self._warned:
                log.warning(
                    "%s: not kept, the store is asked again: %s", self._folder, error.strerror or error
                )
            self._warned = True
        return data

    def forget(self, names: Sequence[str]) -> None:
        """Deletes the files of these objects, and discards their bytes that are still being fetched."""
        with contextlib.suppress(OSError), self._made() as own:
            _touch(own / "forgotten", random.getrandbits(60))
            for name in names:
                folder = own / self._of(name)
                for _ in range(FORGETS):
                    shutil.rmtree(folder, ignore_errors=True)
                    if not folder.exists():
                        break

    @contextlib.contextmanager
    def _made(self) -> Iterator[Path]:
        """Yields the folder; makes it if it does not exist.  Raises OSError, also if other users may write
        to it."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with own_folder(self._folder) as own:
            if own is None:
                raise PermissionError(
                    EPERM, "another user made this folder or may write to it; name another folder"
                )
            yield own

    def _of(self, name: str) -> str:
        digest = sha256(f"{self._store}\0{name}".encode(errors="surrogatepass")).hexdigest()
        return digest[:40]

    def _data(self, folder: Path, asked: Range) -> bytes | None:
        """Returns the bytes of a range from the files in the folder of its object; None if they do not have
        it."""
        for one in _ranges(folder):
            if one.begin <= asked.begin and asked.end <= one.end:
                data = self._read(folder / f"{one.begin}-{one.end}", one, asked)
                if data is not None:
                    return data
        return None

    def _read(self, path: Path, kept: Range, asked: Range) -> bytes | None:
        """Returns the bytes of a range from a file; None if the file is too old, damaged or gone."""
        blocks = -(-(kept.end - kept.begin) // BLOCK)
        first, last = (asked.begin - kept.begin) // BLOCK, -(-(asked.end - kept.begin) // BLOCK)
        try:
            with path.open("rb") as file:
                stat = os.fstat(file.fileno())
                is_old = not 0 <= self._clock() - stat.st_mtime <= self._age
                if is_old or stat.st_size != kept.end - kept.begin + _SUM * blocks:
                    path.unlink(missing_ok=True)
                    return None
                file.seek(first * BLOCK)
                data = file.read(min(kept.end - kept.begin, last * BLOCK) - first * BLOCK)
                file.seek(kept.end - kept.begin + _SUM * first)
                sums = file.read(_SUM * (last - first))
                os.utime(file.fileno(), ns=(int(self._clock() * 1e9), stat.st_mtime_ns))
        except OSError:
            return None
        if sums != b"".join(_sums(data)):
            place = self._folder / path.parent.name / path.name
            log.warning("%s: this file of the cache is damaged; the store is asked", place)
            path.unlink(missing_ok=True)
            return None
        begin = asked.begin - kept.begin - first * BLOCK
        return data[begin : begin + asked.end - asked.begin]

    def _keep(self, name: str, asked: Range, data: bytes, before: int) -> None:
        """Writes the bytes to a file, unless an object was forgotten since `before`.  Raises OSError."""
        if len(data) > self._room:
            return
        with self._made() as own:
            self._write(own, own / self._of(name), asked, data, before)
            is_due = self._is_due(own, len(data))
        if is_due:
            self.sweep()

    def _write(self, own: Path, folder: Path, asked: Range, data: bytes, before: int) -> None:
        folder.mkdir(exist_ok=True)
        part = folder / f"part-{os.getpid()}-{random.getrandbits(48):012x}"
        try:
            with part.open("xb") as file:
                file.write(data)
                file.writelines(_sums(data))
            now = int(self._clock() * 1e9)
            os.utime(part, ns=(now, now))
            if _forgotten(own) == before:
                part.rename(folder / f"{asked.begin}-{asked.end}")
        except FileNotFoundError:  # the object was forgotten, or a look deleted its folder
            return
        finally:
            part.unlink(missing_ok=True)

    def _is_due(self, own: Path, written: int) -> bool:
        """Whether to sweep all files now, after this process has written `written` bytes."""
        try:
            swept = (own / "swept").stat().st_mtime
        except OSError:
            swept = 0.0
        return self._chance() < written * SWEEPS / self._room or not 0 <= self._clock() - swept < SWEPT

    def sweep(self) -> None:
        """Deletes files that are too old, then those whose last use was longest ago, until all files fit."""
        with own_folder(self._folder) as own:
            if own is not None:
                self._sweep(own)

    def _sweep(self, own: Path) -> None:
        with contextlib.suppress(OSError):
            _touch(own / "swept", int(self._clock() * 1e9))
        now, kept = self._clock(), list[_File]()
        for file in _files(own):
            if 0 <= now - file.since <= self._age:
                kept.append(file)
            else:
                _unlink(file.path)
        total = sum(file.size for file in kept)
        if total <= self._room:
            return
        for file in sorted(kept, key=lambda one: one.used):  # bounded by the files there are
            _unlink(file.path)
            total -= file.size
            if total <= FULL * self._room:
                return


def _files(own: Path) -> Iterator[_File]:
    """Yields all files of all stores, including partial ones that a killed process left."""
    for folder in _entries(own):
        if folder.is_dir(follow_symlinks=False):
            for entry in _entries(folder.path):
                with contextlib.suppress(OSError):
                    stat = entry.stat(follow_symlinks=False)
                    yield _File(Path(entry.path), stat.st_size, stat.st_atime, stat.st_mtime)


@contextlib.contextmanager
def own_folder(path: Path) -> Iterator[Path | None]:
    """Yields a path that leads to this folder while the block runs, even if its name is given to another folder
    meanwhile.

    Yields None if there is no such folder, or if another user made it or may write to it.  A user who may write
    to the parent folder can replace it at any time, so the folder that was checked must be the one that is used
    (decision 424).
    """
    try:
        handle = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        yield None
        return
    try:
        stat = os.fstat(handle)
        is_own = stat.st_uid == os.geteuid() and not stat.st_mode & (S_IWGRP | S_IWOTH)
        yield Path(f"/proc/self/fd/{handle}") if is_own else None
    finally:
        os.close(handle)


def _ranges(folder: Path) -> list[Range]:
    """Returns the ranges for which the folder of an object has files."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return [Range(int(match[1]), int(match[2])) for match in map(_NAME.fullmatch, names) if match]


def _forgotten(own: Path | None) -> int:
    """Returns when objects were last forgotten; 0 if this never happened."""
    try:
        return 0 if own is None else (own / "forgotten").stat().st_mtime_ns
    except OSError:
        return 0


def _entries(folder: str | Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _unlink(path: Path) -> None:
    """Deletes a file, and its folder if it is empty then."""
    with contextlib.suppress(OSError):
        path.unlink()
        path.parent.rmdir()


def _touch(path: Path, time_ns: int) -> None:
    path.touch()
    os.utime(path, ns=(time_ns, time_ns))


def _sums(data: bytes) -> Iterator[bytes]:
    """Yields the checksum of each block."""
    view = memoryview(data)
    for at in range(0, len(data), BLOCK):
        yield zlib.crc32(view[at : at + BLOCK]).to_bytes(_SUM, "little")
