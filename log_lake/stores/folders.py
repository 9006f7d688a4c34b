"""Opens folders below the root of a local store part by part, so that no link leads out of the store.

A path that was checked may lead elsewhere a moment later: a writer of one folder of the lake can replace a part
of it by a link.  So a folder is opened from the root on, each part without following a link.  Work in the
folder then uses its handle (`/proc/self/fd/N`), which leads to that folder even if its name is given to another
one. Only the root, and the path to it, may have links.  Called by `local`; decision 191.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Sequence

_STEP = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW


class Folders:
    """The folders below `root`."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._unsynced: set[str] = set()  # new folders whose names may not be durable

    @contextlib.contextmanager
    def opened(self, folder: str) -> Iterator[str]:
        """A path that leads to the folder (its name, "" for the root) while the block runs, and nowhere else.

        Raises OSError: FileNotFoundError if it does not exist, NotADirectoryError if a part is a link or a file.
        """
        handle = os.open(self._root, os.O_PATH | os.O_DIRECTORY)
        try:
            for part in folder.split("/") if folder else ():
                inside = os.open(part, _STEP, dir_fd=handle)
                os.close(handle)
                handle = inside
            yield f"/proc/self/fd/{handle}"
        finally:
            os.close(handle)

    def make(self, folder: str) -> Sequence[str]:
        """Makes the folder and those above it, durably.  Returns the paths of the new ones, deepest first.

        Raises OSError.
        """
        path = f"{self._root}/{folder}" if folder else self._root
        missing = []
        while not os.path.isdir(path) or path in self._unsynced:  # bounded by the depth of the path
            missing.append(path)
            path = os.path.dirname(path)
        new: tuple[str, ...] = ()
        for path in reversed(missing):
            self._unsynced.add(path)
            with self._above(path) as above:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(f"{above}/{os.path.basename(path)}")
                    new = (path, *new)
                sync_folder(above)
            self._unsynced.discard(path)
        return new

    def _above(self, path: str) -> contextlib.AbstractContextManager[str]:
        """Returns a path to the folder that contains this one."""
        above = os.path.dirname(path)
        if not path.startswith(f"{self._root}/"):
            return contextlib.nullcontext(above)
        return self.opened(above[len(self._root) + 1 :])


def open_file(path: str) -> int:
    """Opens a file for reading and returns its handle. The file must not be a link, a pipe, a socket or a device.

    Raises OSError: FileNotFoundError if there is nothing, IsADirectoryError for a folder, and with the number
    ELOOP for a link, ENXIO for a pipe, a socket or a device.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return handle
    os.close(handle)
    number = errno.EISDIR if stat.S_ISDIR(mode) else errno.ENXIO
    raise OSError(number, os.strerror(number), path)


def sync_folder(path: str) -> None:
    """Makes the names in a folder durable.  Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
