"""A store in a folder of the local file system (or of any POSIX file system that has hard links).

An object is written without a name (O_TMPFILE, else under a hidden temporary name), made durable, and then
linked to its name: `link` fails where the name exists, so creation is atomic in name and content, and a
killed writer leaves no half object.  The folder is synced too, or a crash could forget the name.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from lake_core.errors import Unavailable
from lake_core.store.port import Created, ObjectInfo

_TEMPORARY = ".tmp-"


class LocalStore:
    """Objects as files below `root`."""

    def __init__(self, root: str | Path) -> None:
        self._root = os.path.abspath(root)
        self._folders: set[str] = set()

    @property
    def uri(self) -> str:
        return self._root

    def path(self, name: str) -> str:
        """The file of an object."""
        return f"{self._root}/{name}"

    @property
    def lists_from_name(self) -> bool:
        return False  # a folder is read whole

    def get(self, name: str) -> bytes | None:
        try:
            with open(self.path(name), "rb") as file:
                return file.read()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        except OSError as error:
            raise Unavailable(f"{self.path(name)}: {error.strerror}") from error

    def create(self, name: str, data: bytes) -> Created:
        path = self.path(name)
        if os.path.exists(path):  # spares the write; the link below decides
            return Created.EXISTS
        try:
            with self._unnamed(path) as (file, publish):
                file.write(data)
                publish()
        except FileExistsError:
            return Created.EXISTS
        except OSError as error:
            if os.path.lexists(path):  # linked, and then its folder could not be made durable
                return Created.UNKNOWN
            raise Unavailable(f"{path}: {error.strerror}") from error
        return Created.YES

    def put(self, name: str, data: bytes) -> None:
        path = self.path(name)
        try:
            self._make_folder(os.path.dirname(path))
            with open(path, "wb") as file:
                file.write(data)
        except OSError as error:
            raise Unavailable(f"{path}: {error.strerror}") from error

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        names: list[ObjectInfo] = []
        folders = [prefix.rstrip("/")]
        while folders:  # bounded by the folders of the tree
            folder = folders.pop()
            with (
                contextlib.suppress(FileNotFoundError, NotADirectoryError),
                os.scandir(self.path(folder)) as entries,
            ):
                for entry in entries:
                    name = f"{folder}/{entry.name}" if folder else entry.name
                    if entry.is_dir():
                        folders.append(name)
                    elif name > after and not entry.name.startswith(_TEMPORARY):
                        with contextlib.suppress(FileNotFoundError):
                            names.append(ObjectInfo(name, entry.stat().st_size))
        yield from sorted(names)

    def delete(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path(name))

    def local_path(self, name: str) -> str | None:
        return self.path(name)

    def open_input(self, name: str) -> pa.NativeFile:
        return pa.OSFile(self.path(name), "rb")

    @contextlib.contextmanager
    def open_output(self, name: str) -> Iterator[BinaryIO]:
        path = self.path(name)
        with self._unnamed(path) as (file, publish):
            yield file
            try:
                publish()
            except OSError as error:
                raise Unavailable(f"{path}: {error.strerror or error}") from error

    @contextlib.contextmanager
    def _unnamed(self, path: str) -> Iterator[tuple[BinaryIO, _Publish]]:
        """A file without a name in the folder of `path`, and the step that gives it the name, durably."""
        folder = os.path.dirname(path)
        self._make_folder(folder)
        try:
            handle = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o644)
            temporary = None
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
                raise
            temporary = f"{folder}/{_TEMPORARY}{secrets.token_hex(12)}"
            handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o644)
        try:
            with os.fdopen(handle, "w+b") as file:
                yield file, _Publish(file, temporary, path)
        finally:
            if temporary is not None:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary)

    def _make_folder(self, folder: str) -> None:
        if folder in self._folders:
            return
        missing = []
        while not os.path.isdir(folder):  # bounded by the depth of the path
            missing.append(folder)
            folder = os.path.dirname(folder)
        for path in reversed(missing):
            with contextlib.suppress(FileExistsError):
                os.mkdir(path)
            _sync_folder(os.path.dirname(path))
        self._folders.update(missing or [folder])


class _Publish:
    """Makes the content durable, links it to its name, makes the name durable; in this order."""

    def __init__(self, file: BinaryIO, temporary: str | None, path: str) -> None:
        self._file, self._temporary, self._path = file, temporary, path

    def __call__(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        if self._temporary is None:
            # src_dir_fd makes Python call linkat, which alone follows the link under /proc
            folder = os.open(os.path.dirname(self._path), os.O_RDONLY)
            try:
                os.link(
                    f"/proc/self/fd/{self._file.fileno()}",
                    self._path,
                    src_dir_fd=folder,
                    follow_symlinks=True,
                )
                os.fsync(folder)
            finally:
                os.close(folder)
        else:
            os.link(self._temporary, self._path)
            _sync_folder(os.path.dirname(self._path))


def _sync_folder(folder: str) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
