"""Every failure below the store port becomes `Unavailable`, with one line that names the object.

The stores use this module when they call the system or a library, and `guard` when it calls a store.  Two kinds of
error pass unchanged: FileNotFoundError, which is part of the port (`open_input`), and errors of the lake.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

from lake_core.errors import LakeError, Unavailable


class FailingAsUnavailable:
    """A context that turns every error of its block into Unavailable, whatever its class.

    Every call of a store is in one; a class is entered and left in a third of the time of a generator.
    """

    __slots__ = ("_name", "_uri")

    def __init__(self, uri: str, name: str) -> None:
        self._uri, self._name = uri, name

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # libraries raise their own, unrelated classes
        if isinstance(error, Exception) and not isinstance(error, LakeError | FileNotFoundError):
            raise unavailable(self._uri, self._name, error) from error


def unavailable(uri: str, name: str, error: Exception) -> Unavailable:
    """The error as Unavailable, in one line."""
    return Unavailable(f"{uri}/{name}: {words(error)}")


def words(error: Exception) -> str:
    """The text of an error in one line; for an error of the system its reason without the path."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(reason.split()) or type(error).__name__


class GuardedFile:
    """A file whose every call raises Unavailable if it fails: the store may answer again in a moment."""

    def __init__(self, file: Any, uri: str, name: str) -> None:
        self._file, self._uri, self._name = file, uri, name

    def read(self, size: int = -1) -> bytes:
        with FailingAsUnavailable(self._uri, self._name):
            return bytes(self._file.read(size))

    def write(self, data: Any) -> int:
        with FailingAsUnavailable(self._uri, self._name):
            return int(self._file.write(data))

    def flush(self) -> None:
        with FailingAsUnavailable(self._uri, self._name):
            self._file.flush()

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def readable(self) -> bool:
        return bool(self._file.readable())

    def writable(self) -> bool:
        return bool(self._file.writable())

    def seekable(self) -> bool:
        return bool(self._file.seekable())

    def close(self) -> None:
        with FailingAsUnavailable(self._uri, self._name):
            self._file.close()

    @property
    def closed(self) -> bool:
        return bool(self._file.closed)
