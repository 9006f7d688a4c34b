"""Errors for files that a user named and that cannot be opened: each says what to do.

A wrong name stays wrong, so it is the user's error.  A server or a disk that does not answer may answer in a
moment. Clients of stores raise unrelated classes: botocore's are not OSError, and fsspec's HTTP client turns
every failure into a FileNotFoundError.  Callers: `opening`, `sources`, and the reading of a policy file.
"""

from __future__ import annotations

import errno

from lake_core.errors import InvalidInput, LakeError, NotFound, Unavailable, words

_WRONG_NAMES = (errno.ELOOP, errno.ENAMETOOLONG, errno.EISDIR)
"""Errors of the operating system that say that a name is wrong; repeating the call would not help."""
_MISSING = (404, 410)
"""HTTP statuses with which a server says that it has no such file."""


def unopened(what: str, error: Exception) -> LakeError:
    """Returns the error for a file that could not be opened: NotFound, InvalidInput or Unavailable.  `what` names
    the file, as in `file 'a.csv'`.

    An error of the lake is returned unchanged.
    """
    if isinstance(error, LakeError):
        return error
    cause = error.__cause__
    if isinstance(cause, LakeError):  # fsspec says of it that there is no such file
        return type(cause)(f"{what}: {cause}")
    if isinstance(error, FileNotFoundError) and cause is not None and _is_of_http(cause):
        error = cause if isinstance(cause, Exception) else error
    is_missing = getattr(error, "status", None) in _MISSING
    if is_missing or isinstance(error, FileNotFoundError | NotADirectoryError):
        return NotFound(f"{what} does not exist; name another")
    if isinstance(error, ImportError):  # of a client of fsspec, which says what to install
        return InvalidInput(f"{what}: {words(error)}")
    is_wrong = isinstance(error, OSError) and error.errno in _WRONG_NAMES
    if is_wrong or (isinstance(error, ValueError) and not isinstance(error, OSError)):
        return InvalidInput(f"{what}: {words(error)}; name another")
    return Unavailable(f"{what}: {words(error)}")


def _is_of_http(error: BaseException) -> bool:
    """Whether fsspec's HTTP client raised the error; found without importing the client."""
    return type(error).__module__.partition(".")[0] == "aiohttp" or isinstance(error, TimeoutError)
