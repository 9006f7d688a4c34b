"""Outputs for results: standard output, a file, a device or a pipe; and their failures (decision 47).

A file gets its name only when it is complete; until then, an older file of that name stays.  A device or a pipe
is written to directly.  All text is UTF-8 in every locale, because programs read it.

An output that cannot be opened is InvalidInput.  If it accepts no more (a full disk), that is `OutputFailed`.
If its reader ends early, that is no error: BrokenPipeError ends the command quietly (`main`).
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any, BinaryIO, cast

from lake_core.errors import AlreadyExists, InvalidInput, OutputFailed

STDOUT = "standard output"
_NOT_WHOLE = "the result is not whole; what the command changed stands"


class _Told:
    """A file whose failures become OutputFailed, also if Arrow writes to it.  Closing it leaves the file open."""

    closed = False

    def __init__(self, file: IO[bytes], name: str, lost: str) -> None:
        self._file, self._name, self._lost = file, name, lost

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        self.flush()

    def write(self, data: Any) -> int:
        with failing_as_output(self._name, self._lost):
            self._file.write(data)
        return memoryview(data).nbytes

    def flush(self) -> None:
        with failing_as_output(self._name, self._lost):
            self._file.flush()


@contextmanager
def failing_as_output(name: str, lost: str) -> Iterator[None]:
    """Returns a context in which an error of the system becomes OutputFailed, except BrokenPipeError."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputFailed(f"{name}: {error.strerror or error}; {lost}") from error


def print_text(text: str) -> None:
    """Prints text to standard output.  Raises OutputFailed if that accepts no more."""
    with failing_as_output(STDOUT, _NOT_WHOLE):
        if hasattr(sys.stdout, "buffer"):
            sys.stdout.buffer.write(text.encode(errors="surrogateescape"))
        else:  # a program that calls `main` gave a stream of text
            sys.stdout.write(text)


@contextmanager
def standard_output() -> Iterator[BinaryIO]:
    """Gives standard output for bytes.  Raises OutputFailed when it accepts no more."""
    flush()
    told = cast(BinaryIO, _Told(sys.stdout.buffer, STDOUT, _NOT_WHOLE))
    yield told
    told.flush()


@contextmanager
def sink(path: str | None, *, may_replace: bool = True, private: bool = False) -> Iterator[BinaryIO]:
    """Opens the output that `-o` names; None is standard output.  A `private` file is readable only by its
    owner.

    Raises InvalidInput and OutputFailed, and AlreadyExists if the file exists and must not be replaced.
    """
    if path is None:
        with standard_output() as told:
            yield told
        return
    with _opening(path):
        if os.path.isdir(path) or path.endswith(os.sep):
            raise IsADirectoryError(0, "Is a directory")
        special = _is_special(path)
        if not (may_replace or special) and os.path.lexists(path):
            raise exists(path)
        file = open(path, "wb") if special else _beside(path, private=private)  # noqa: SIM115 - closed below
    lost = "what was written before stands" if special else "nothing was written under that name"
    try:
        told = cast(BinaryIO, _Told(file, f"-o {path}", lost))
        yield told
        told.flush()
        with failing_as_output(f"-o {path}", lost):
            file.close()
            if not special:
                _give_name(file.name, path, may_replace=may_replace)
    except BaseException:
        with suppress(OSError):
            file.close()
        if not special:
            with suppress(OSError):
                os.unlink(file.name)
        raise


def _give_name(temporary: str, path: str, *, may_replace: bool) -> None:
    """Give the whole file its name.  Raises AlreadyExists if another one got it meanwhile and must stay."""
    if may_replace:
        os.replace(temporary, os.path.realpath(path))
        return
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise exists(path) from None
    except OSError:  # a file system without links
        if os.path.lexists(path):
            raise exists(path) from None
        os.replace(temporary, path)
    else:
        os.unlink(temporary)


def exists(path: str) -> AlreadyExists:
    """Returns the error for a file that must not be replaced."""
    return AlreadyExists(f"{path} exists; name another file, or add --force")


@contextmanager
def _opening(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InvalidInput(f"-o {path}: {error.strerror or error}") from error


def _is_special(path: str) -> bool:
    """Whether to open the path directly: a device, a pipe, or the name of a file that is open already."""
    if os.path.abspath(path).startswith(("/dev/fd/", "/dev/std", "/proc/")):
        return True
    return os.path.exists(path) and not os.path.isfile(path)


def _beside(path: str, *, private: bool) -> IO[bytes]:
    """Opens a new file in the folder of `path`, or of the file to which `path` links.  It gets the rights of the
    file that it will replace.

    If it is `private`, only its owner may read and write it, whatever the other file allows.
    """
    target = os.path.realpath(path)
    try:
        mode = stat.S_IMODE(os.stat(target).st_mode)
        with open(target, "ab"):  # a file without the right to write is not replaced either
            pass
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        mode = 0o666 & ~mask
    if private:
        mode = 0o600
    handle, name = tempfile.mkstemp(prefix=".lake-", suffix=".tmp", dir=os.path.dirname(target))
    with suppress(OSError):  # some file systems have no rights
        os.fchmod(handle, mode)
    os.close(handle)
    return open(name, "wb")


def open_missing() -> None:
    """Opens standard streams that the caller closed, so that no file of the lake gets their numbers.

    Then nothing may be written to standard output; a command that prints a result reports this.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is not None:
            continue
        handle = os.open(os.devnull, os.O_RDWR if number == 2 else os.O_RDONLY)
        if handle != number:
            os.dup2(handle, number)
            os.close(handle)
        setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115 - as long as the program


def flush() -> None:
    """Write out the buffer of standard output; raises OutputFailed."""
    with failing_as_output(STDOUT, _NOT_WHOLE):
        sys.stdout.flush()


def abandon() -> None:
    """Discards the buffer of standard output; otherwise Python would try to write it when it ends, and fail."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(message: str) -> None:
    """Prints the line of a failed command.  If standard error accepts no more, the exit status still shows
    the failure."""
    print_message(f"lake: {message}\n")


def print_message(text: str) -> None:
    """Print text to standard error; if that takes no more, drop it.

    Nothing may stay in the stream's buffer: some releases of Python would try to write it at their end, fail, and
    exit with 120.
    """
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
