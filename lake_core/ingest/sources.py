"""Landed files: finding them by path, glob or folder, and opening them.

A file is known by its full name, size and etag (for local files the time of modification in nanoseconds), so
that the same file is not taken twice and a changed one is seen.  Files whose names begin with `.` or `_` and
those ending in `.tmp` or `.crc` are on their way and passed by.
"""

from __future__ import annotations

import glob
import gzip
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

import fsspec

from lake_core.errors import InvalidInput, NotFound, Unavailable
from lake_core.ingest.block import Reading
from lake_core.records.landed import LandedFile

_GLOB = "*?["


def find_files(patterns: list[str]) -> list[LandedFile]:
    """The files that the paths, globs and folders name, each once, by name.

    Raises NotFound where a path names nothing (a glob or a folder may be empty).
    """
    found: dict[str, LandedFile] = {}
    for pattern in patterns:
        for file in _find_remote(pattern) if "://" in pattern else _find_local(pattern):
            found.setdefault(file.uri, file)
    return sorted(found.values(), key=lambda f: f.uri)


def _find_local(pattern: str) -> Iterator[LandedFile]:
    if os.path.isdir(pattern):
        paths = [os.path.join(root, name) for root, _, names in os.walk(pattern) for name in names]
        paths = [p for p in paths if _is_landed(os.path.relpath(p, pattern))]
    elif os.path.exists(pattern) or not any(c in pattern for c in _GLOB):
        paths = [pattern]
    else:
        found = [p for p in glob.glob(pattern, recursive=True) if os.path.isfile(p)]
        paths = [p for p in found if _is_landed(p[len(_fixed_folder(pattern)) :])]
    for path in paths:
        try:
            status = os.stat(path)
        except FileNotFoundError as error:
            raise NotFound(f"file {path!r} does not exist") from error
        yield LandedFile(
            os.path.abspath(path), status.st_size, f"{status.st_mtime_ns:x}", status.st_mtime_ns / 1e9
        )


def _find_remote(pattern: str) -> Iterator[LandedFile]:
    scheme = pattern.partition("://")[0]
    try:
        fs, path = fsspec.url_to_fs(pattern, **({"use_listings_cache": False} if scheme != "memory" else {}))
        if any(c in path for c in _GLOB):
            infos, folder = fs.glob(path, detail=True), _fixed_folder(path)
        elif fs.isdir(path):
            infos, folder = fs.find(path, detail=True), path.rstrip("/") + "/"
        else:
            infos, folder = {path: fs.info(path)}, path  # asked for by name, whatever it is
    except FileNotFoundError as error:
        raise NotFound(f"file {pattern!r} does not exist") from error
    except (ImportError, ValueError) as error:
        raise InvalidInput(f"file {pattern!r}: {error}") from error
    except OSError as error:
        raise Unavailable(f"{pattern}: {error}") from error
    for name, info in infos.items():
        if info.get("type") == "file" and _is_landed(name[len(folder) :]):
            modified = info.get("LastModified") or info.get("updated") or info.get("created")
            etag = str(info.get("ETag") or info.get("etag") or info.get("md5Hash") or modified or "").strip(
                '"'
            )
            yield LandedFile(f"{scheme}://{name.lstrip('/')}", int(info["size"]), etag, _seconds(modified))


def _fixed_folder(pattern: str) -> str:
    """What comes before the first part with a sign of a glob, with its slash."""
    parts = pattern.split("/")
    fixed = next(i for i, part in enumerate(parts) if any(c in part for c in _GLOB))
    return "".join(part + "/" for part in parts[:fixed])


def _is_landed(name: str) -> bool:
    parts = name.split("/")
    return not any(p.startswith((".", "_")) for p in parts) and not name.endswith((".tmp", ".crc"))


def _seconds(moment: Any) -> float:
    return float(moment.timestamp()) if hasattr(moment, "timestamp") else 0.0


@contextmanager
def open_source(uri: str) -> Iterator[BinaryIO]:
    """The bytes of a landed file as they are; raises NotFound, Unavailable."""
    try:
        file = fsspec.open(uri, "rb").open() if "://" in uri else open(uri, "rb")  # noqa: SIM115 - closed below
    except FileNotFoundError as error:
        raise NotFound(f"file {uri!r} does not exist") from error
    except OSError as error:
        raise Unavailable(f"{uri}: {error}") from error
    with file:
        yield cast(BinaryIO, file)


@contextmanager
def open_text(uri: str) -> Iterator[BinaryIO]:
    """The bytes of a landed file, unpacked where it is gzip (told by its first bytes)."""
    with open_source(uri) as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        if packed:
            with gzip.open(file, "rb") as unpacked:
                yield cast(BinaryIO, unpacked)
        else:
            yield file


@contextmanager
def open_seekable(uri: str) -> Iterator[BinaryIO]:
    """The bytes of a landed file, to be read in any order: where it is gzip, unpacked to a temporary file.

    Raises InvalidInput where a gzip file is truncated or damaged.
    """
    with open_source(uri) as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        if not packed:
            yield file
            return
        with tempfile.TemporaryFile() as unpacked:
            try:
                with gzip.open(file, "rb") as stream:
                    shutil.copyfileobj(stream, unpacked, 1 << 20)
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise InvalidInput(f"{uri}: the gzip file is damaged or truncated: {error}") from error
            unpacked.seek(0)
            yield cast(BinaryIO, unpacked)


def line_blocks(file: BinaryIO, reading: Reading) -> Iterator[tuple[int, bytes]]:
    """Blocks of whole lines, each with the number of its first line.

    Raises InvalidInput where a gzip file is truncated or damaged.
    """
    line = 1
    while True:  # bounded by the file
        try:
            block = file.read(reading.block_bytes)
            if block and not block.endswith(b"\n"):
                block += file.readline()
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            reading.unreadable(0, f"the gzip file is damaged or truncated in or after line {line}: {error}")
        if not block:
            return
        yield line, block
        line += block.count(b"\n")
