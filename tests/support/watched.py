"""Watches whether files are opened, through the kernel (inotify), independently of the code under test."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_OPENED_OR_CHANGED = (
    0x00000001 | 0x00000002 | 0x00000020 | 0x00000100
)  # IN_ACCESS, IN_MODIFY, IN_OPEN, IN_CREATE


class Watched:
    """The accesses to a folder since the watch began, by name of file."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def looks(self) -> set[str]:
        """The names of files that were opened, read, changed or made since the last call."""
        names: set[str] = set()
        while True:  # bounded by the kernel's queue
            try:
                data = os.read(self._handle, 65_536)
            except BlockingIOError:
                return names
            while data:
                size = int.from_bytes(data[12:16], "little")
                name = data[16 : 16 + size].rstrip(b"\0").decode()
                names |= {name} if name else set()
                data = data[16 + size :]


@contextmanager
def watched(folder: Path) -> Iterator[Watched]:
    """Watches the folder while the block runs."""
    libc = ctypes.CDLL(None, use_errno=True)
    handle = libc.inotify_init1(os.O_NONBLOCK)
    if handle < 0 or libc.inotify_add_watch(handle, bytes(folder), _OPENED_OR_CHANGED) < 0:
        raise OSError(ctypes.get_errno(), "the kernel watches no folder")
    try:
        yield Watched(handle)
    finally:
        os.close(handle)
