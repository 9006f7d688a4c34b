"""A file that stays in memory while it is small: the bytes of an object that may be inlined.

A small object needs no file on the store, because its bytes go into the entry of its transaction.  The size of
an object is known only at its end.  So its bytes stay in memory until they exceed the limit; then the file
continues on the store, like any other.  Called by `objects.write`.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from types import TracebackType
from typing import BinaryIO, cast


class HeldFile(AbstractContextManager[BinaryIO]):
    """A file that keeps at most `most` bytes in memory; when it grows larger, it moves to a file that
    `open_output` opens."""

    def __init__(self, open_output: Callable[[], AbstractContextManager[BinaryIO]], *, most: int) -> None:
        self._open_output, self._most = open_output, most
        self._held = io.BytesIO()
        self._file: BinaryIO | None = None
        self._stack = ExitStack()

    @property
    def data(self) -> bytes:
        """The bytes of the file if it is in memory; b"" if it is on the store."""
        return self._held.getvalue()

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """Writes bytes.  Raises Unavailable if the store fails."""
        if self._file is None and self._held.tell() + len(data) <= self._most:
            return self._held.write(data)
        if self._file is None:
            self._file = self._stack.enter_context(self._open_output())
            self._file.write(self._held.getvalue())
            self._held = io.BytesIO()
        return self._file.write(data)

    def flush(self) -> None:
        """Does nothing: the store's file is whole when the block ends."""

    def __enter__(self) -> BinaryIO:
        return cast(BinaryIO, self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return self._stack.__exit__(kind, error, trace)
