"""Turns every failure below the store port into `Unavailable`, with one line that names the object.

The stores use this module when they call the system or a library, and `guard` when it calls a store.  Two kinds
of error pass unchanged: FileNotFoundError, which is part of the port (`open_input`), and errors of the lake.

With a `Patience`, each call counts against its budget (`patience`), and fails when that is used up.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from types import TracebackType
from typing import Any

from lake_core.errors import Denied, LakeError, Unavailable, words
from log_lake.stores.patience import Patience, Waiting


class FailingAsUnavailable:
    """A context in which every error, whatever its class, becomes Unavailable.

    It is a class and not a generator, because every call of a store enters one, and a class takes a third of
    the time.
    """

    __slots__ = ("_name", "_say", "_uri", "_waiting")

    def __init__(
        self,
        uri: str,
        name: str,
        patience: Patience | None = None,
        *,
        say: Callable[[Exception], str] | None = None,
    ) -> None:
        self._uri, self._name, self._say = uri, name, say
        self._waiting = Waiting(patience, f"{uri}/{name}") if patience else None

    def __enter__(self) -> None:
        if self._waiting is not None:
            self._waiting.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._waiting is not None:
            self._waiting.__exit__(kind, error, trace)
        # libraries raise their own, unrelated classes
        if isinstance(error, Exception) and not isinstance(error, LakeError | FileNotFoundError):
            raise unavailable(self._uri, self._name, error, say=self._say) from error


def unavailable(
    uri: str, name: str, error: Exception, *, say: Callable[[Exception], str] | None = None
) -> Unavailable:
    """Turns the error into an Unavailable with a message of one line; `say` puts the error into words.

    It is Denied if the store says that the process lacks a right.
    """
    kind = Denied if is_denial(error) else Unavailable
    return kind(f"{uri}/{name}: {(say or words)(error)}")


_CREDENTIALS = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "TokenRefreshRequired",
        "InvalidToken",
        "InvalidAccessKeyId",
        "SignatureDoesNotMatch",
        "InvalidSignature",
        "RequestTimeTooSkewed",
    }
)
"""Codes of S3 that refuse the credentials themselves; with other or renewed ones the same request may be
allowed."""


def code_of(error: BaseException) -> str:
    """Returns the code in S3's answer, from an error of s3fs; "" if the error has no such code."""
    response = getattr(error.__cause__, "response", None)
    return str(response.get("Error", {}).get("Code", "")) if isinstance(response, dict) else ""


def is_denial(error: Exception) -> bool:
    """Whether the system or a library says that the process is known, but lacks the right."""
    if code_of(error) in _CREDENTIALS:
        return False
    if isinstance(error, OSError) and error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return True
    # s3fs raises PermissionError for AccessDenied; gcsfs an error with the status, or an OSError with the word
    return isinstance(error, PermissionError) or getattr(error, "code", None) == 403 or _is_forbidden(error)


def _is_forbidden(error: Exception) -> bool:
    return isinstance(error, OSError) and str(error).startswith("Forbidden: ")


class GuardedFile:
    """A file in which every failing call raises Unavailable, because the store may soon answer again.

    A read raises FileNotFoundError if the object was deleted meanwhile; `check_missing` may raise another error
    instead.
    """

    def __init__(
        self,
        file: Any,
        uri: str,
        name: str,
        patience: Patience | None = None,
        *,
        check_missing: Callable[[FileNotFoundError], None] = lambda error: None,
    ) -> None:
        self._file, self._uri, self._name, self._patience = file, uri, name, patience
        self._check_missing = check_missing

    def _failing(self) -> FailingAsUnavailable:
        return FailingAsUnavailable(self._uri, self._name, self._patience)

    def read(self, size: int = -1) -> bytes:
        try:
            with self._failing():
                return bytes(self._file.read(size))
        except FileNotFoundError as error:
            self._check_missing(error)
            raise

    def write(self, data: Any) -> int:
        with self._failing():
            return int(self._file.write(data))

    def flush(self) -> None:
        with self._failing():
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
        with self._failing():
            self._file.close()

    @property
    def closed(self) -> bool:
        return bool(self._file.closed)
