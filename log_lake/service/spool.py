"""An answer between a query and its client: a thread writes it, and the server sends it at the speed of its
client.

A small answer is in memory, a larger one in a file without a name, which the system deletes when the answer
ends.
"""

from __future__ import annotations

import asyncio
import io
import os
import tempfile
import threading
from typing import IO

from lake_core.errors import InvalidInput, Unavailable
from lake_core.phrases import human_size
from log_lake.service.problems import ClientGone

IN_MEMORY = 64 << 10
"""Bytes of an answer that need no file."""


class SpoolDisk:
    """The disk that all answers and bodies share; safe to use from several threads."""

    def __init__(self, most: int) -> None:
        self._most, self.used = most, 0
        self._changing = threading.Lock()

    def take(self, size: int) -> None:
        """Reserves so many bytes.  Raises Unavailable if others fill the disk."""
        with self._changing:
            if self.used + size > self._most:
                raise Unavailable(
                    f"other answers and bodies take {human_size(self.used)}, nearly all that this server gives "
                    "them; ask again in a minute"
                )
            self.used += size

    def give(self, size: int) -> None:
        """Frees so many bytes, which were deleted."""
        with self._changing:
            self.used -= size


class AnswerSpool(io.RawIOBase):
    """One answer.  The thread that writes it uses the methods of a file; the event loop that made it uses the
    others."""

    def __init__(self, disk: SpoolDisk, *, most: int) -> None:
        super().__init__()
        self._disk, self._most = disk, most
        self._loop, self._changed = asyncio.get_running_loop(), asyncio.Event()
        self._memory, self._file = bytearray(), None
        self._changing = threading.Lock()
        self._is_released = False
        self.size, self.error = 0, None
        self.is_whole = False

    _file: IO[bytes] | None
    error: Exception | None

    # --- the writer

    def writable(self) -> bool:
        """Whether bytes may be written; always True."""
        return True

    def write(self, data: object) -> int:
        """Adds bytes.  Raises InvalidInput (the answer is too large), Unavailable (no room), ClientGone."""
        part = memoryview(data).cast("B")  # type: ignore[arg-type]
        size = part.nbytes
        if self.size + size > self._most:
            raise InvalidInput(
                f"query: the answer has more than the {human_size(self._most)} that this server allows; select "
                "fewer columns, or a smaller range of keys"
            )
        self._disk.take(size)
        with self._changing:
            if self._is_released:
                self._disk.give(size)
                raise ClientGone
            try:
                self._keep(part)
            except BaseException:
                self._disk.give(size)
                raise
            self.size += size
        self._tell()
        return size

    def _keep(self, part: memoryview) -> None:
        try:
            if self._file is None and self.size + part.nbytes > IN_MEMORY:
                self._file = tempfile.TemporaryFile(prefix="lake-answer-")  # noqa: SIM115 - closed by `release`
                self._file.write(self._memory)
                self._memory = bytearray()
            if self._file is None:
                self._memory += part
            else:
                self._file.write(part)
                self._file.flush()
        except OSError as error:
            raise Unavailable(f"the disk of the server takes no answer: {error.strerror or error}") from error

    def end(self, error: Exception | None = None) -> None:
        """Notes that the answer is complete, or that it ends with an error."""
        self.error = error
        self.is_whole = True
        self._tell()

    def _tell(self) -> None:
        self._loop.call_soon_threadsafe(self._changed.set)

    # --- the event loop

    async def wait_for(self, size: int) -> None:
        """Waits until the answer has so many bytes, or is complete."""
        while self.size < size and not self.is_whole:
            self._changed.clear()
            if self.size < size and not self.is_whole:
                await self._changed.wait()

    def part(self, begin: int, most: int) -> bytes:
        """Returns at most so many bytes of the answer."""
        with self._changing:
            if self._file is None:
                return bytes(self._memory[begin : begin + most])
            return os.pread(self._file.fileno(), most, begin)

    def release(self) -> None:
        """Frees the answer, because its client reads no more; a writer that continues gets ClientGone."""
        with self._changing:
            if self._is_released:
                return
            self._is_released = True
            self._disk.give(self.size)
            self._memory = bytearray()
            if self._file is not None:
                self._file.close()
