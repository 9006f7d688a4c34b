"""A store in a folder of the local file system (or of any POSIX file system that has hard links).

An object is written without a name (O_TMPFILE; if the file system has none, under a hidden temporary name),
synced, and then linked to its name.  `link` fails if the name exists, so creation is atomic in name and
content, and a killed writer leaves no half object.  Then the folder is synced; otherwise a crash could lose the
name.  If that sync fails, this process never reports the object as durable: after an I/O error a second,
successful sync proves nothing.

No file below the root is reached through a link, because a link may lead out of the lake: a writer with the
right to one pool's folder could have another pool's objects deleted.  The root itself may be a link, or lie
behind one.  Each folder of a name is opened without following links, so that a link put there meanwhile has no
effect (`folders`). Only a path from `local_path` is checked first and opened by others later.  A pipe, a socket
or a device is no object either: its reader might wait without end.

Hints are written under a temporary name and renamed, so that a full disk leaves the old hint or none, never an
empty one.  A durable one is synced before it is renamed, and its folder afterwards.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import math
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa

from lake_core.errors import Corrupt, LakeError, NoCreate, NotFound, Unavailable
from lake_core.naming import most_bytes
from lake_core.store.port import Created, ObjectInfo, check_name, check_prefix, check_size
from log_lake.stores.failures import FailingAsUnavailable, GuardedFile, unavailable
from log_lake.stores.folders import Folders, open_file, sync_folder
from log_lake.stores.patience import Patience

log = logging.getLogger(__name__)

_TEMPORARY = ".tmp-"
_DELETERS = 8
"""How many threads delete (decision 72)."""


class LocalStore:
    """A store of objects as files below the folder `root`."""

    def __init__(self, root: str | Path) -> None:
        self._root = os.path.abspath(root)
        self._patience = Patience(math.inf)  # nothing ends a call of the system; it is only shown
        self._folders = Folders(self._root)
        self._undurable: set[str] = set()  # objects whose names may not be durable

    @property
    def uri(self) -> str:
        return self._root

    def path(self, name: str) -> str:
        """Returns the path of an object's file.

        Raises Corrupt if the name, or a link, could lead out of the store, or if the name belongs to something
        that is not a file.
        """
        check_name(name)
        path = f"{self._root}/{name}"
        at = len(self._root)
        while at >= 0:  # bounded by the parts of the name
            at = path.find("/", at + 1)
            part = path if at < 0 else path[:at]
            try:
                mode = os.lstat(part).st_mode
            except OSError:  # nothing is there, or what follows will say why not
                break
            if stat.S_ISLNK(mode):
                raise _through_link(part)
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise Corrupt(f"{part}: is no file but a pipe, a socket or a device; remove it")
        return path

    @contextlib.contextmanager
    def _reached(self, name: str) -> Iterator[str]:
        """Yields a path that leads to the object's file while the block runs, through a handle of its folder.

        If the block fails, and a link or something that is not a file may be the cause, it raises Corrupt, as
        `path` does.
        """
        check_name(name)
        folder, _, file = name.rpartition("/")
        try:
            with self._folders.opened(folder) as at:
                yield f"{at}/{file}"
        except OSError as error:
            if error.errno in (errno.ENOTDIR, errno.ELOOP, errno.ENXIO):
                self.path(name)
            raise

    @property
    def lists_from_name(self) -> bool:
        return False  # the system lists a folder whole

    def get(self, name: str) -> bytes | None:
        with self._failing(name):
            try:
                with self._reached(name) as path, open(open_file(path), "rb") as file:
                    size = os.fstat(file.fileno()).st_size
                    check_size(f"{self._root}/{name}", size, most=most_bytes(name))
                    return file.read()
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
                return None

    def get_listed(self, info: ObjectInfo) -> bytes | None:
        return None  # the system's times and numbers of files may return: nothing here is a tag

    def create(self, name: str, data: bytes) -> Created:
        path = self.path(name)
        if name in self._undurable:
            return Created.UNKNOWN
        if os.path.lexists(path):  # saves the write; the link below decides
            return Created.EXISTS
        publish: _Publish | None = None
        try:
            with self._unnamed(name) as (file, publish):
                file.write(data)
                publish()
        except NoCreate:
            raise
        except FileExistsError:
            return Created.EXISTS
        except NotADirectoryError as error:  # the folder is made before anything is written
            raise NotFound(
                f"{self._root}: a file has the name that a folder must have; name another folder"
            ) from error
        except Exception as error:
            if publish is None or publish.surely_not:
                raise unavailable(self._root, name, error) from error
            log.info("%s: the name may not be durable: %s", path, error)
            self._undurable.add(name)
            return Created.UNKNOWN
        return Created.YES

    def put(self, name: str, data: bytes, *, durable: bool = False) -> None:
        self.path(name)  # names the link if there is one
        with self._failing(name):
            try:
                self._folders.make(name.rpartition("/")[0])
                with self._reached(name) as path:
                    _replace(path, data, durable=durable)
            except FileNotFoundError as error:  # the folder was removed
                raise unavailable(self._root, name, error) from error

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        check_prefix(prefix)
        names: list[ObjectInfo] = []
        folders = [prefix.rstrip("/")]
        with self._failing(prefix):
            while folders:  # bounded by the folders of the tree
                folder = folders.pop()
                # names of files that are passed over are not spelled out: a scan may pass a million
                inside = f"{folder}/" if folder else ""
                floor = after[len(inside) :] if after.startswith(inside) else ""
                if folder:
                    self.path(folder)  # names the link if there is one
                with (
                    contextlib.suppress(FileNotFoundError, NotADirectoryError),
                    self._folders.opened(folder) as at,
                    os.scandir(at) as entries,
                ):
                    for entry in entries:
                        if entry.name <= floor and entry.is_file():
                            continue
                        name = f"{inside}{entry.name}"
                        if entry.is_symlink():  # no object is a link
                            if entry.is_dir():
                                raise _through_link(f"{self._root}/{name}")
                        elif entry.is_dir():
                            folders.append(name)
                        elif name > after and not entry.name.startswith(_TEMPORARY):
                            with contextlib.suppress(FileNotFoundError):
                                if not entry.is_file():  # a pipe, a socket or a device
                                    continue
                                status = entry.stat()
                                names.append(ObjectInfo(name, status.st_size, status.st_mtime))
        yield from sorted(names)

    def delete(self, name: str) -> None:
        self.path(name)  # names the link if there is one
        with contextlib.suppress(FileNotFoundError), self._failing(name), self._reached(name) as path:
            os.unlink(path)

    def delete_all(self, names: Sequence[str]) -> None:
        """Deletes the objects with several threads: a file system that frees blocks at once makes each caller wait
        (decision 72)."""
        if not names:
            return
        with ThreadPoolExecutor(min(len(names), _DELETERS)) as threads:
            done = [threads.submit(self._delete_each, names[first::_DELETERS]) for first in range(_DELETERS)]
        for future in done:  # all have ended, so one that failed keeps no other from being tried
            future.result()

    def _delete_each(self, names: Sequence[str]) -> None:
        failure: Unavailable | Corrupt | None = None
        for name in names:
            try:
                self.delete(name)
            except (Unavailable, Corrupt) as error:
                failure = error
        if failure is not None:
            raise failure

    def local_path(self, name: str) -> str | None:
        path = self.path(name)
        return path if path.isprintable() else None  # DataFusion takes no path that is not UTF-8

    def open_input(self, name: str, *, size: int | None = None) -> pa.NativeFile:
        with self._failing(name), self._reached(name) as path:
            handle = open_file(path)
            try:
                return pa.OSFile(f"/proc/self/fd/{handle}", "rb")
            finally:
                os.close(handle)

    @contextlib.contextmanager
    def open_output(self, name: str) -> Iterator[BinaryIO]:
        self.path(name)  # names the link if there is one
        unnamed = self._unnamed(name, may_rename=True)
        try:
            file, publish = unnamed.__enter__()
        except Exception as error:
            raise unavailable(self._root, name, error) from error
        with contextlib.ExitStack() as stack:
            stack.push(unnamed)
            yield cast(BinaryIO, GuardedFile(file, self._root, name, self._patience))
            try:
                publish()
            except LakeError:
                raise
            except Exception as error:
                raise unavailable(self._root, name, error) from error

    def _failing(self, name: str) -> AbstractContextManager[None]:
        return FailingAsUnavailable(self._root, name, self._patience)

    @contextlib.contextmanager
    def _unnamed(self, name: str, *, may_rename: bool = False) -> Iterator[tuple[BinaryIO, _Publish]]:
        """Yields a file without a name in the folder of the object, and the step that gives it the name, durably.

        `may_rename`: no other writer uses the name, so on a file system without hard links the file is renamed.
        Without `may_rename` it raises NoCreate on such a file system, and removes the folders that were made
        for the file.
        """
        new_folders = self._folders.make(name.rpartition("/")[0])
        with self._reached(name) as path:
            folder = os.path.dirname(path)
            try:
                handle = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o666)  # less the person's umask
                temporary = None
            except OSError as error:
                if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
                    raise
                temporary = f"{folder}/{_TEMPORARY}{secrets.token_hex(12)}"
                handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
            file = os.fdopen(handle, "w+b")
            has_links = True
            try:
                yield file, _Publish(file, temporary, path, root=self._root, may_rename=may_rename)
            except NoCreate:
                has_links = False
                raise
            finally:
                with contextlib.suppress(OSError):  # a published file is durable by now
                    file.close()
                if temporary is not None:
                    with contextlib.suppress(OSError):  # listings hide a temporary file that stays
                        os.unlink(temporary)
                if not has_links:
                    with contextlib.suppress(OSError):  # another writer put something there
                        for empty in new_folders:
                            os.rmdir(empty)


def _replace(path: str, data: bytes, *, durable: bool) -> None:
    """Writes the file under a temporary name, and then renames it.  Raises OSError; no temporary file stays."""
    folder = os.path.dirname(path)
    temporary = f"{folder}/{_TEMPORARY}{secrets.token_hex(12)}"
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
        if durable:
            sync_folder(folder)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def _through_link(path: str) -> Corrupt:
    return Corrupt(
        f"{path}: is a link; no file of a lake is reached through one, because it may lead out of the lake. Put "
        "the folder or file itself there (the lake's own folder may be a link)"
    )


_REFUSED = {
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EMLINK,
    errno.EXDEV,
    errno.ENOENT,
    errno.ENAMETOOLONG,
}
"""Errors with which `link` reports that it did nothing.  They count only if our file does not have the name
afterwards: the client of a file server repeats a lost request itself, and the repeat may be refused.  Any other
error may mean a lost answer."""


_NO_LINKS = {
    errno.EPERM,
    errno.EOPNOTSUPP,
    errno.ENOSYS,
    errno.EINVAL,
    errno.EMLINK,
    errno.EXDEV,
}
"""Errors with which a file system refuses to make hard links. EMLINK means that a file may not even have a second
name."""


class _Publish:
    """Writes the content to disk, links it to its name, and writes the name to disk, in this order."""

    def __init__(
        self, file: BinaryIO, temporary: str | None, path: str, *, root: str, may_rename: bool
    ) -> None:
        self._file, self._temporary, self._path = file, temporary, path
        self._root, self._may_rename = root, may_rename
        self.surely_not = True
        """Whether the object surely did not get its name."""

    def __call__(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        folder = os.open(
            os.path.dirname(self._path), os.O_RDONLY
        )  # before the link, because opening may fail
        try:
            self._link(folder)
            os.fsync(folder)
        finally:
            os.close(folder)

    def _link(self, folder: int) -> None:
        self.surely_not = False
        try:
            if self._temporary is None:
                # src_dir_fd makes Python call linkat, which alone follows the link under /proc
                source = f"/proc/self/fd/{self._file.fileno()}"
                os.link(source, self._path, src_dir_fd=folder, follow_symlinks=True)
            else:
                os.link(self._temporary, self._path)
        except OSError as error:
            has_no_links = error.errno in _NO_LINKS
            self.surely_not = (has_no_links or error.errno in _REFUSED) and not self._is_ours()
            if not has_no_links or not self.surely_not:
                raise
            if self._may_rename and self._temporary is not None:
                self.surely_not = False
                os.rename(self._temporary, self._path)
                return
            raise NoCreate(
                f"{self._root}: this file system makes no hard links ({error.strerror}), by which the lake creates "
                "a file only if it is missing"
            ) from error

    def _is_ours(self) -> bool:
        """Whether the name may lead to our own file."""
        try:
            return os.path.samestat(os.stat(self._path), os.fstat(self._file.fileno()))
        except FileNotFoundError:
            return False
        except OSError:
            return True
