"""Stores on S3 and Google Cloud Storage, over fsspec (s3fs, gcsfs).

`create` sends the precondition that the object does not exist (`If-None-Match: *`, `ifGenerationMatch=0`).
What the libraries make of the answers differs, so each is classified here: "exists" (412 in its several
forms), "try again" (409, which is done here, a few times), "never arrived" (no such bucket, no permission),
"there is no such request" (501); all else is an outcome that cannot be known.  The libraries repeat lost
requests by themselves and may then report "exists" for their own write: the journal reads back every
"exists".  Listings are never cached.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO

import fsspec
import pyarrow as pa

from lake_core.errors import NoCreate, Unavailable
from lake_core.store.listing import PAGES
from lake_core.store.port import Created, ObjectInfo

_PROTOCOLS = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs"}
_REFUSED = (400, 401, 403, 404)
_CONFLICTS = 6
"""How often a create is answered by 409 before it is left to the caller."""


class CloudStore:
    """Objects below `<protocol>://<bucket>/<prefix>`; credentials as the library finds them."""

    def __init__(self, uri: str, options: Mapping[str, Any] | None = None) -> None:
        protocol, _, root = uri.partition("://")
        self._uri = uri.rstrip("/")
        self._root = root.strip("/")
        self._protocol = _PROTOCOLS[protocol]
        self._fs = fsspec.filesystem(self._protocol, use_listings_cache=False, **(options or {}))

    @property
    def uri(self) -> str:
        return self._uri

    @property
    def lists_from_name(self) -> bool:
        return True

    def get(self, name: str) -> bytes | None:
        try:
            return bytes(self._fs.cat_file(self._path(name)))
        except FileNotFoundError:
            return None
        except Exception as error:  # the libraries raise their own, unrelated classes
            raise self._unavailable(name, error) from error

    def create(self, name: str, data: bytes) -> Created:
        for attempt in range(_CONFLICTS):
            try:
                self._fs.pipe_file(self._path(name), data, mode="create")
            except FileExistsError:
                return Created.EXISTS
            except Exception as error:  # classified by its HTTP status
                status = _status(error)
                if status == 412:
                    return Created.EXISTS
                if status in _REFUSED:
                    raise self._unavailable(name, error) from error
                if status == 501:
                    raise NoCreate(
                        f"{self._uri}: this store has no create-only put ({_words(error)})"
                    ) from error
                if status != 409:
                    return Created.UNKNOWN
                time.sleep(0.01 * 2**attempt * random.random())  # another create of the name is under way
            else:
                return Created.YES
        return Created.UNKNOWN

    def put(self, name: str, data: bytes) -> None:
        try:
            self._fs.pipe_file(self._path(name), data)
        except Exception as error:  # as in get
            raise self._unavailable(name, error) from error

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        bucket, _, base = self._root.partition("/")
        base = f"{base}/" if base else ""
        folder = f"{base}{prefix.strip('/')}/" if prefix else base
        try:
            for key, size in PAGES[self._protocol](self._fs, bucket, folder, base + after if after else ""):
                yield ObjectInfo(key[len(base) :], size)
        except FileNotFoundError:
            return
        except Exception as error:  # as in get
            raise self._unavailable(prefix, error) from error

    def delete(self, name: str) -> None:
        try:
            self._fs.rm_file(self._path(name))
        except FileNotFoundError:
            return
        except Exception as error:  # as in get
            raise self._unavailable(name, error) from error

    def local_path(self, name: str) -> str | None:
        return None

    def open_input(self, name: str) -> pa.NativeFile:
        try:
            file = self._fs.open(self._path(name), "rb", cache_type="readahead", block_size=1 << 20)
        except FileNotFoundError:
            raise
        except Exception as error:  # as in get
            raise self._unavailable(name, error) from error
        return pa.PythonFile(_Reader(file, self._unavailable, name), mode="r")

    @contextlib.contextmanager
    def open_output(self, name: str) -> Iterator[BinaryIO]:
        file = self._fs.open(self._path(name), "wb")
        try:
            yield file
        except BaseException:
            with contextlib.suppress(Exception):  # the caller's error is the one to report
                file.discard()
            file.closed = True  # else fsspec would try to finish the upload when the file is collected
            raise
        try:
            file.close()
        except Exception as error:  # as in get
            raise self._unavailable(name, error) from error

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _unavailable(self, name: str, error: Exception) -> Unavailable:
        return Unavailable(f"{self._uri}/{name}: {_words(error)}")


class _Reader:
    """A file whose reads fail as Unavailable: the store may only be gone for a moment."""

    def __init__(self, file: Any, unavailable: Callable[[str, Exception], Unavailable], name: str) -> None:
        self._file, self._unavailable, self._name = file, unavailable, name

    def read(self, size: int = -1) -> bytes:
        try:
            return bytes(self._file.read(size))
        except FileNotFoundError:
            raise
        except Exception as error:  # the libraries raise their own, unrelated classes
            raise self._unavailable(self._name, error) from error

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def close(self) -> None:
        self._file.close()

    @property
    def closed(self) -> bool:
        return bool(self._file.closed)


def _words(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _status(error: BaseException) -> int | None:
    """The HTTP status behind an error of s3fs or gcsfs, None where there was no answer."""
    if isinstance(error, FileNotFoundError):
        return 404
    if isinstance(error, OSError) and str(error).startswith("Forbidden: "):  # gcsfs, as the next
        return 403
    if isinstance(error, ValueError) and str(error).startswith("Bad Request: "):
        return 400
    cause: BaseException | None = error
    for _ in range(5):  # chains are short; bounded against loops
        if cause is None:
            return None
        response = getattr(cause, "response", None)
        if isinstance(response, dict):
            return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)) or None
        code = getattr(cause, "code", None) or getattr(cause, "status", None)
        if str(code or "").isdigit():
            return int(str(code))
        cause = cause.__cause__ or cause.__context__
    return None
