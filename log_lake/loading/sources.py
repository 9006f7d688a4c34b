"""Finds source files by path, glob or folder.

Full name, size and etag identify a file, so that no file is loaded twice and a changed one is noticed.  The
etag of a local file is its modification time in nanoseconds.  Files whose names begin with `.` or `_`, or end
in `.tmp` or `.crc`, are skipped, because writers use such names for incomplete files.

A user with write rights in a local folder may put links and pipes there.  So reading a folder or a glob skips
everything that is not a file, and refuses files outside the folder, because it would read them with the rights
of the process.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, NoReturn

from fsspec.utils import glob_translate

from lake_core.errors import InvalidInput, NotFound, Unavailable
from lake_core.store import Address
from log_lake.loading.failures import unopened
from log_lake.loading.opening import CLOUDS, is_stream, remote, waiting
from log_lake.loading.source_files import SourceFile, check_list
from log_lake.settings import Settings

_GLOB = "*?["


def find_files(
    patterns: list[str],
    *,
    include: tuple[str, ...] = (),
    exclude: tuple[str, ...] = (),
    may_be_empty: bool = False,
    access: Address | None = None,
) -> list[SourceFile]:
    """Returns the files that the paths, globs and folders name, each once, sorted by URI.

    `include` and `exclude` are globs; they choose among the files of globs and folders, by name or by path
    below the folder. `access` is as in `opening.remote`.

    Raises NotFound if a path names no file, and, unless `may_be_empty`, if a glob or folder has none.  (S3 and
    Google have no folders: there a path without objects is an empty folder.)  Raises InvalidInput for a name
    that is not UTF-8 or cannot name a file, for a bucket that does not exist, and for a link that leads out of
    a local folder.  Raises Unavailable if a folder cannot be listed.
    """
    check_list(patterns)
    by_uri: dict[str, SourceFile] = {}
    for pattern in patterns:
        files = _find_remote(pattern, access, may_be_empty) if "://" in pattern else _find_local(pattern)
        chosen = [f for name, f in files if not name or _chosen(name, include, exclude)]
        if not chosen and not may_be_empty:
            where = "" if "://" in pattern or os.path.isabs(pattern) else f" in {os.getcwd()}"
            raise NotFound(
                f"no file matches {pattern!r}{where}{_but_not(include, exclude)}; name files, a glob or a folder"
            )
        for file in chosen:
            _check_name(file.uri)
            by_uri.setdefault(file.uri, file)
    return sorted(by_uri.values(), key=lambda f: f.uri)


def files_to_read(
    patterns: list[str],
    pool: Mapping[str, str],
    options: Mapping[str, str],
    *,
    access: Address | None = None,
) -> list[SourceFile]:
    """Returns the files that the patterns name and that the settings choose; `options` take precedence over those
    of the pool.

    `access` is the address of the lake.
    """
    settings = Settings({**pool, **options})
    return find_files(patterns, include=settings["include"], exclude=settings["exclude"], access=access)


def _check_name(name: str) -> None:
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"the name of the file {os.fsencode(name)!r} is not UTF-8; rename it, or exclude it"
        ) from error


def _chosen(name: str, include: tuple[str, ...], exclude: tuple[str, ...]) -> bool:
    def matches(patterns: tuple[str, ...]) -> bool:
        return any(fnmatchcase(name, p) or fnmatchcase(name.rpartition("/")[2], p) for p in patterns)

    return (not include or matches(include)) and not matches(exclude)


def _but_not(include: tuple[str, ...], exclude: tuple[str, ...]) -> str:
    parts = [
        f"{word} {','.join(globs)}" for word, globs in (("include", include), ("exclude", exclude)) if globs
    ]
    return f" ({'; '.join(parts)})" if parts else ""


def _find_local(pattern: str) -> Iterator[tuple[str, SourceFile]]:
    """Yields files, each with its path below the folder that was searched; this path is "" for a file that the
    caller named itself."""
    if is_stream(pattern):
        yield "", SourceFile(pattern, 0, "", 0.0)
        return
    if os.path.isdir(pattern):
        folder = pattern
        paths = [(os.path.relpath(path, pattern), path) for path in _files_below(pattern)]
    elif os.path.lexists(pattern) or not any(c in pattern for c in _GLOB):
        folder, paths = "", [("", pattern)]
    else:
        folder = _fixed_folder(pattern)
        paths = [
            (path[len(folder) :], path)
            for path in _matching(folder, pattern[len(folder) :].split("/"))
            if os.path.isfile(path)
        ]
    for name, path in paths:
        if name and not _is_complete(name):
            continue
        try:
            status = os.stat(path)
            if name and not stat.S_ISREG(status.st_mode):  # its reader might wait without end
                continue
        except (FileNotFoundError, NotADirectoryError) as error:
            if name:  # gone since the folder was listed
                continue
            raise unopened(f"file {path!r}", error) from error
        except (OSError, ValueError) as error:
            raise unopened(f"file {path!r}", error) from error
        if name:
            _check_inside(path, folder)
        yield (
            name,
            SourceFile(
                os.path.abspath(path), status.st_size, f"{status.st_mtime_ns:x}", status.st_mtime_ns / 1e9
            ),
        )


def _check_inside(path: str, folder: str) -> None:
    """Raises InvalidInput if a link leads from the folder to a file elsewhere."""
    real = os.path.realpath(path)
    if not real.startswith(os.path.join(os.path.realpath(folder), "")):
        raise InvalidInput(
            f"file {path!r}: leads out of {folder or os.getcwd()!r} by a link, to {real!r}; name that file or its "
            "folder, or remove the link"
        )


def _files_below(folder: str) -> Iterator[str]:
    for root, folders, names in os.walk(folder, onerror=_not_listed):
        folders[:] = sorted(f for f in folders if _is_complete(f))
        yield from (os.path.join(root, name) for name in sorted(names))


def _not_listed(error: OSError) -> NoReturn:
    raise Unavailable(f"folder {error.filename!r}: listing failed: {error.strerror}") from error


def _matching(folder: str, parts: list[str]) -> Iterator[str]:
    """Paths below the folder that match a glob, part by part; `**` is any number of folders.

    Unlike Python's glob it raises Unavailable for a folder that cannot be listed.
    """
    head, rest = parts[0], parts[1:]
    if head == "**":
        if not rest:
            yield from _files_below(folder or ".") if folder else (p[2:] for p in _files_below("."))
            return
        yield from _matching(folder, rest)
        for name in _folders(folder):
            yield from _matching(f"{folder}{name}/", parts)
        return
    if not any(c in head for c in _GLOB):
        names = [head] if os.path.lexists(folder + head) else []
    else:
        names = [
            name for name in _listed(folder) if fnmatchcase(name, head) and (head[0] == "." or name[0] != ".")
        ]
    for name in names:
        if not rest:
            yield folder + name
        elif os.path.isdir(folder + name):
            yield from _matching(f"{folder}{name}/", rest)


def _listed(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder or "."))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        _not_listed(error)


def _folders(folder: str) -> list[str]:
    return [
        name
        for name in _listed(folder)
        if name[0] != "." and os.path.isdir(folder + name) and not os.path.islink(folder + name)
    ]


def _find_remote(
    pattern: str, access: Address | None, may_be_empty: bool
) -> Iterator[tuple[str, SourceFile]]:
    scheme = pattern.partition("://")[0]
    is_cloud = scheme in CLOUDS
    try:
        with waiting(pattern):
            fs, path = remote(pattern, access)
            if any(c in path for c in _GLOB):
                infos = _matched(fs, path) if is_cloud else fs.glob(path, detail=True)
                folder = _fixed_folder(path)
            elif fs.isdir(path):
                infos, folder = fs.find(path, detail=True), path.rstrip("/") + "/"
            elif is_cloud and may_be_empty and not fs.exists(path):
                infos, folder = {}, path
            else:
                infos, folder = {path: fs.info(path)}, path  # the caller named it, so it counts as complete
    except Exception as error:  # clients of stores raise classes of many families
        if is_cloud and isinstance(error, FileNotFoundError):
            _check_bucket(fs, path)
        raise unopened(f"file {pattern!r}", error) from error
    if is_cloud and not infos:
        _check_bucket(fs, path)
    for name, info in infos.items():
        below = name[len(folder) :]
        if info.get("type") == "file" and not name.endswith("/") and _is_complete(below):
            modified = info.get("LastModified") or info.get("updated") or info.get("created")
            etag = str(info.get("ETag") or info.get("etag") or info.get("md5Hash") or modified or "").strip(
                '"'
            )
            if below and scheme in ("file", "local"):
                _check_inside(name, folder)
            # a bucket's name begins without a slash, a path of this machine with one
            place = name if scheme in ("file", "local") else name.lstrip("/")
            uri = name if "://" in name else f"{scheme}://{place}"
            file = SourceFile(uri, int(info.get("size") or 0), etag, _seconds(modified))
            yield below, file


def _matched(fs: Any, pattern: str) -> Mapping[str, Any]:
    """Returns the objects that match a glob in a cloud, by name.

    It makes one listing: of a folder, or of everything below the last folder that the glob names.  fsspec's own
    glob makes more requests, and leaves out folders that it cannot list; an interval would then be replaced by
    a part of its files.
    """
    folder, last = _fixed_folder(pattern), pattern.rpartition("/")[2]
    if f"{folder}{last}" != pattern or "**" in last:
        matches = re.compile(glob_translate(pattern)).match
        return {name: info for name, info in fs.find(folder, detail=True).items() if matches(name)}
    try:
        listed = fs.ls(folder.rstrip("/"), detail=True)
    except FileNotFoundError:
        return {}
    names = ((info["name"], info) for info in listed if info["name"].startswith(folder))  # not of the parent
    return {name: info for name, info in names if fnmatchcase(name[len(folder) :], last)}


def _check_bucket(fs: Any, path: str) -> None:
    """Raises InvalidInput if the bucket does not exist.  Only in a bucket that exists, a path without objects is
    an empty folder."""
    bucket = path.partition("/")[0]
    try:
        is_there = fs.exists(bucket)
    except Exception:  # this caller may not list it
        return
    if not is_there:
        raise InvalidInput(f"the bucket {bucket!r} does not exist; name another")


def _fixed_folder(pattern: str) -> str:
    """Returns the folders before the first part that has a wildcard, with a slash at the end."""
    parts = pattern.split("/")
    fixed = next(i for i, part in enumerate(parts) if any(c in part for c in _GLOB))
    return "".join(part + "/" for part in parts[:fixed])


def _is_complete(name: str) -> bool:
    parts = name.split("/")
    return not any(p.startswith((".", "_")) for p in parts) and not name.endswith((".tmp", ".crc"))


def _seconds(moment: Any) -> float:
    return float(moment.timestamp()) if hasattr(moment, "timestamp") else 0.0
