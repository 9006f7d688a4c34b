"""Stores on S3 and Google Cloud Storage, over fsspec (s3fs, gcsfs).

`create` sends the precondition that the object does not exist (`If-None-Match: *`, `ifGenerationMatch=0`),
always in one request, because a multipart upload whose last answer was lost looks like one that never happened.
The libraries raise different errors for the same answer, so they are classified here by HTTP status: "exists"
(412), "try again" (409; `create` does, a few times), "refused" (400, 401, 403, 404), "unsupported" (501).
After any other error the outcome is unknown.

The libraries repeat lost requests by themselves. So "exists" may be caused by their own earlier write, and the
journal reads the object back after every "exists".  A refusal counts only if it answers the first sending
(`sends`, decision 26): otherwise an earlier sending may have acted, and the outcome is unknown.  Listings are
never cached.
"""

from __future__ import annotations

import contextlib
import logging
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cached_property, partial
from typing import Any, BinaryIO, cast

import pyarrow as pa

from lake_core.errors import Denied, NoCreate, Unavailable, words
from lake_core.naming import data_id, most_bytes
from lake_core.store.meter import Meter
from lake_core.store.planned import Range
from lake_core.store.port import Created, ObjectInfo, check_name, check_prefix, check_size
from log_lake.stores import sends
from log_lake.stores.credentials import open_filesystem, refused_credentials
from log_lake.stores.failures import FailingAsUnavailable, GuardedFile, code_of, unavailable
from log_lake.stores.listing import PAGE, PAGES
from log_lake.stores.patience import Patience, Waiting, given_seconds
from log_lake.stores.pieces import ASK, ASK_WHOLE
from log_lake.stores.ranges import (
    NO_CACHE,
    REQUESTS,
    RangeAnswer,
    RangeCache,
    RangedFile,
    Ranges,
    RequestSizes,
)

log = logging.getLogger(__name__)

_PROTOCOLS = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs"}
_REFUSED = (400, 401, 403, 404)
_NO_SUCH_RANGE = 416
_CONFLICTS = 6
"""How often a create is tried if the store answers with 409; after that its outcome is unknown."""

_DELETERS = 16
"""The most requests to delete that run at the same time."""

_ONE_REQUEST = 5 << 30
"""The most bytes that one request may write, which is S3's limit; up to this size both libraries write in one
request."""


class CloudStore:
    """A store of objects below `<protocol>://<bucket>/<prefix>`; the client library finds the credentials."""

    def __init__(
        self,
        uri: str,
        options: Mapping[str, Any] | None = None,
        *,
        patience: Patience | None = None,
        reach: RequestSizes | None = None,
        cache: RangeCache = NO_CACHE,
    ) -> None:
        """`cache` holds ranges of data objects whose size the reader knows from a reference.

        A check, which opens an object without knowing its size, therefore always asks the store.
        """
        protocol, _, root = uri.partition("://")
        self._uri = uri.rstrip("/")
        self._root = root.strip("/")
        self._protocol = _PROTOCOLS[protocol]
        self.patience = patience or Patience(given_seconds())
        self.meter = self.patience.meter = Meter()
        self.options = dict(options or {})
        self.reach = reach or RequestSizes()
        self.cache = cache
        self._tags_agree: bool | None = None
        """Whether an answer had the tag that was listed; None if none was compared.  If the first had not, listings
        give no tags: a reader would read all entries in vain, and then once more."""
        self._fs = open_filesystem(uri, options)
        self._ask = ASK[self._protocol]

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        """The threads that fetch ranges before their readers need them."""
        return ThreadPoolExecutor(REQUESTS, thread_name_prefix="lake-ranges")

    @property
    def uri(self) -> str:
        return self._uri

    @property
    def lists_from_name(self) -> bool:
        return True

    def get(self, name: str) -> bytes | None:
        whole = self._whole(name)
        return None if whole is None else whole.data

    def get_listed(self, info: ObjectInfo) -> bytes | None:
        whole = self._whole(info.name) if info.tag else None
        if whole is None:
            return None
        if whole.tag == info.tag:
            self._tags_agree = True
        elif self._tags_agree is None:
            self._tags_agree = False
        return whole.data if whole.tag == info.tag else None

    def _whole(self, name: str) -> RangeAnswer | None:
        """Returns the whole object, or None if the store says that it does not have it.  Raises Corrupt,
        Unavailable."""
        most = most_bytes(name)
        try:
            answer = self._answered(
                name, partial(ASK_WHOLE[self._protocol], self._fs, self._path(name), most)
            )
        except FileNotFoundError:
            return None
        check_size(f"{self._uri}/{name}", answer.size, most=most)
        return answer

    def _read(self, name: str, **how: Any) -> bytes | None:
        """Returns bytes of the object, or None if the store says that it does not have it.  Raises
        Unavailable."""
        try:
            with self._failing(name):
                return bytes(self._fs.cat_file(self._path(name), **how))
        except FileNotFoundError as error:
            self._check_missing(name, error)
            return None
        except Unavailable as error:
            if (
                isinstance(error.__cause__, OSError) and _status(error.__cause__) == 404
            ):  # a page of some server
                raise self._no_store(name, "") from error
            raise

    def _check_missing(self, name: str, error: FileNotFoundError) -> None:
        """Raises Unavailable unless the store itself answered that it does not have the object.

        S3's answer names the missing thing.  A 404 that names nothing comes from a deleted bucket, a gateway in
        front of the store, or a wrong endpoint.  Google's library keeps only the status.
        """
        code = code_of(error)
        if self._protocol == "s3" and code == "NoSuchBucket":
            raise self._no_bucket() from error
        if self._protocol == "s3" and code != "NoSuchKey":
            raise self._no_store(name, code) from error

    def _no_store(self, name: str, code: str) -> Unavailable:
        named = f"the code {code!r}" if code else "no code"
        return Unavailable(
            f"{self._uri}/{name}: answered 404 with {named}, which is not how a store says that an object is "
            "missing: look at the endpoint, and at what stands in front of it; then try again"
        )

    def _no_bucket(self) -> Unavailable:
        bucket = self._root.partition("/")[0]
        return Unavailable(f"{self._uri}: the bucket {bucket!r} does not exist; make it, or name another")

    def _confirm_missing(self, name: str) -> None:
        """Like `_check_missing`, for a request whose answer has no text: asks for the first byte, or the bucket.

        Raises Unavailable.
        """
        if self._protocol == "gs":
            next(self.list(name), None)  # of a bucket that is gone it raises
            return
        if self._read(name, start=0, end=1) is not None:
            raise Unavailable(
                f"{self._uri}/{name}: the store said that this is missing, and then gave it; try again"
            )

    def create(self, name: str, data: bytes) -> Created:
        path, maybe_done = self._path(name), False
        for attempt in range(_CONFLICTS):
            with sends.counted() as count:
                try:
                    with Waiting(self.patience, f"{self._uri}/{name}", is_served=_is_answered):
                        self._fs.pipe_file(path, data, mode="create", chunksize=_ONE_REQUEST)
                except FileExistsError:
                    return Created.EXISTS
                except Exception as error:  # classified by its HTTP status
                    failure, status = error, _status(error)
                else:
                    return Created.YES
            if status == 412:
                return Created.EXISTS
            log.debug(
                "%s/%s: try %d to create failed with status %s, sent %d times: %s",
                self._uri,
                name,
                attempt + 1,
                status,
                count.sent,
                failure,
            )
            is_unasked = isinstance(failure, Unavailable) and not count.begun  # no time was left
            if not maybe_done and (count.surely_never or is_unasked):
                raise self._unavailable(name, failure) from failure
            maybe_done |= not count.is_first
            if status not in (*_REFUSED, 409, 501) or (maybe_done and status != 409):
                return Created.UNKNOWN
            if status in _REFUSED:
                raise self._unavailable(name, failure) from failure
            if status == 501:
                raise NoCreate(
                    f"{self._uri}: this store does not support the create-only put ({words(failure)})"
                ) from failure
            time.sleep(0.01 * 2**attempt * random.random())  # another create of the name is under way
        return Created.UNKNOWN

    def put(self, name: str, data: bytes, *, durable: bool = False) -> None:  # a cloud's always is
        try:
            with self._failing(name):
                self._fs.pipe_file(self._path(name), data)
        except FileNotFoundError as error:  # no such bucket
            raise self._unavailable(name, error) from error

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        check_prefix(prefix)
        bucket, _, base = self._root.partition("/")
        base = f"{base}/" if base else ""
        folder = f"{base}{prefix.strip('/')}/" if prefix else base
        pages = PAGES[self._protocol](self._fs, bucket, folder, base + after if after else "")
        try:
            while True:  # bounded by the objects there are
                with self._failing(prefix):
                    page = next(pages, None)
                if page is None:
                    return
                for key, size, modified, tag in page:
                    yield ObjectInfo(
                        key[len(base) :], size, modified, "" if self._tags_agree is False else tag
                    )
        except FileNotFoundError as error:  # a prefix without objects is an empty page
            raise self._no_bucket() from error

    def delete(self, name: str) -> None:
        self.cache.forget([name])
        try:
            with contextlib.suppress(FileNotFoundError), self._failing(name):
                self._fs.rm_file(self._path(name))
        finally:  # again: a reader may have fetched it before it was deleted, also if the answer was lost
            self.cache.forget([name])

    def delete_all(self, names: Sequence[str]) -> None:
        """Deletes the objects.  S3 deletes `PAGE` names in a request; for Google, many requests of one name run at
        once."""
        step = PAGE if self._protocol == "s3" else 1
        batches = [names[start : start + step] for start in range(0, len(names), step)]
        delete = self._delete_batch if self._protocol == "s3" else lambda batch: self.delete(batch[0])
        if not batches:
            return
        self.cache.forget(names)
        with ThreadPoolExecutor(min(len(batches), _DELETERS)) as threads:
            done = [threads.submit(delete, batch) for batch in batches]
        self.cache.forget(names)  # again: a reader may have fetched some before they were deleted
        for future in done:  # all have ended, so one that failed keeps no other from being tried
            future.result()

    def _delete_batch(self, names: Sequence[str]) -> None:
        bucket, _, base = self._root.partition("/")
        for name in names:
            check_name(name)
        keys = [{"Key": f"{base}/{name}" if base else name} for name in names]
        with self._failing(names[0]):
            answer = self._fs.call_s3(
                "delete_objects", Bucket=bucket, Delete={"Objects": keys, "Quiet": True}
            )
        for failed in answer.get("Errors", ()):
            code = failed.get("Code")
            if code != "NoSuchKey":  # of a denial S3 says so for each name, in an answer of 200
                kind, advice = (Denied, "") if code == "AccessDenied" else (Unavailable, "; try again")
                raise kind(
                    f"{self._uri}: {failed.get('Key')} was not deleted: {code} {failed.get('Message', '')}{advice}"
                )

    def local_path(self, name: str) -> str | None:
        return None

    def open_input(self, name: str, *, size: int | None = None) -> pa.NativeFile:
        check_name(name)
        return RangedFile(
            Ranges(
                partial(self._piece, name),
                name=f"{self._uri}/{name}",
                size=self._size_of(name) if size is None else size,
                threads=lambda: self._threads,
                reach=self.reach,
                cache=NO_CACHE if size is None or data_id(name) is None else self.cache,
                cached_as=name,
            )
        )

    def _piece(self, name: str, asked: Range) -> RangeAnswer:
        """Returns a range of an object, in one request.  Raises FileNotFoundError, Unavailable."""
        return self._answered(name, partial(self._ask, self._fs, self._path(name), asked))

    def _answered(self, name: str, ask: Callable[[], RangeAnswer]) -> RangeAnswer:
        """Returns the answer to a request for bytes of an object.  Raises FileNotFoundError, Unavailable."""
        try:
            with self._failing(name):
                return ask()
        except FileNotFoundError as error:
            self._check_missing(name, error)
            raise
        except Unavailable as error:
            status = None if error.__cause__ is None else _status(error.__cause__)
            if status == 404:  # a page of some server
                raise self._no_store(name, "") from error
            if status != _NO_SUCH_RANGE:
                raise
            return RangeAnswer(b"", self._size_of(name))  # the object is shorter than its reference says

    def _size_of(self, name: str) -> int:
        """Bytes of an object.  Raises FileNotFoundError, Unavailable."""
        path = self._path(name)
        try:
            with self._failing(name):
                self._fs.invalidate_cache(path)
                return int(self._fs.info(path)["size"])
        except FileNotFoundError:
            self._confirm_missing(name)
            raise

    @contextlib.contextmanager
    def open_output(self, name: str) -> Iterator[BinaryIO]:
        try:
            with self._failing(name):
                file = self._fs.open(self._path(name), "wb")
        except FileNotFoundError as error:  # no such bucket
            raise self._unavailable(name, error) from error
        try:
            yield cast(BinaryIO, GuardedFile(file, self._uri, name, self.patience))
        except BaseException:
            # the caller's error is the one to report
            with contextlib.suppress(Exception), self._failing(name):
                file.discard()
            file.closed = True  # otherwise fsspec would try to finish the upload when the file is collected
            raise
        size = file.tell()
        try:
            with self._failing(name):
                file.close()
        except Exception as error:  # the object itself shows whether it was written
            file.closed = True
            if not self._is_there(name, size):
                raise self._unavailable(name, error) from error

    def _is_there(self, name: str, size: int) -> bool:
        """Whether an object was written whole although the store refused the request; no other writer uses its
        name.

        This happens if the answer to an earlier sending was lost: the repeated one is told that the upload does
        not exist.
        """
        # an object that cannot be looked up counts as not written
        with contextlib.suppress(Exception), self._failing(name):
            self._fs.invalidate_cache(self._path(name))
            return int(self._fs.info(self._path(name))["size"]) == size
        return False

    def _path(self, name: str) -> str:
        check_name(name)
        return f"{self._root}/{name}"

    def _failing(self, name: str) -> AbstractContextManager[None]:
        return FailingAsUnavailable(self._uri, name, self.patience, say=self._in_words)

    def _unavailable(self, name: str, error: Exception) -> Unavailable:
        if isinstance(error, Unavailable):
            return error
        return unavailable(self._uri, name, error, say=self._in_words)

    def _in_words(self, error: Exception) -> str:
        """Returns an error in one line; if the store refused credentials, the line names these, masked."""
        refused = refused_credentials(self._fs, self._uri, code=code_of(error), status=_status(error))
        return f"{words(error)} ({refused})" if refused else words(error)


def _is_answered(error: BaseException) -> bool:
    """Whether the store answered a create by a refusal, or by saying that the object exists."""
    status = _status(error)
    return isinstance(error, FileExistsError) or (status is not None and status < 500)


def _status(error: BaseException) -> int | None:
    """Returns the HTTP status behind an error of s3fs or gcsfs, None if no answer came."""
    if isinstance(error, FileNotFoundError):
        return 404
    if isinstance(error, OSError) and str(error).startswith("Forbidden: "):  # gcsfs, as the next
        return 403
    if isinstance(error, ValueError) and str(error).startswith("Bad Request: "):
        return 400
    cause: BaseException | None = error
    for _ in range(5):  # chains are short; the bound is against cycles
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
