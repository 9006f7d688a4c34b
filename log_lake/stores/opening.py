"""Opens the store that a URI names: a local path, `file://`, `memory://`, `s3://`, `gs://`.

If a lock is named too, the result is a store that creates objects under this lock (`locked`).
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote_to_bytes

from lake_core.errors import InvalidInput, words
from lake_core.store.address import Address
from lake_core.store.port import Store
from log_lake.extras import need_of_bucket
from log_lake.stores import memory
from log_lake.stores.caches import given_cache
from log_lake.stores.local import LocalStore
from log_lake.stores.locked import LockedStore
from log_lake.stores.patience import Patience, given_seconds, parse_seconds
from log_lake.stores.ranges import RequestSizes, parse_hole
from log_lake.stores.read_only import ReadOnlyStore, is_read_only

_SCHEMES = ("file", "memory", "s3", "s3a", "gs", "gcs")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]*")
"""The name of a bucket or of an access point (arn:...)."""


def open_store(at: str | os.PathLike[str] | Address, options: Mapping[str, Any] | None = None) -> Store:
    """Returns the store at a URI or an address; sends no request.  `options` are added to those of the address.

    The option `lock`, or the variable LAKE_LOCK if the option is absent, is the address of a lock for stores
    without create-only put (`locks`).  The option `timeout` is the budget of time that `patience` describes, as
    60, 90s or 5m.  The option `hole` is the size of a gap between two ranges of an object up to which both are
    fetched in one request (`ranges`).  The other options go to fsspec (s3, gs).

    With LAKE_READ_ONLY=1 the store refuses every change, and needs no lock.  LAKE_MEMORY_CACHE and LAKE_CACHE
    set the caches of a store on a server (`caches`).

    Raises InvalidInput for a URI that names no store, for an address that names no lock, and if the package
    that either needs is not installed.
    """
    uri, rest = (at.uri, dict(at.options)) if isinstance(at, Address) else (os.fspath(at), {})
    rest |= options or {}
    given = rest.pop("lock", "")
    if not isinstance(given, str):
        raise InvalidInput("option 'lock': must be a text: file:///FOLDER or postgresql://USER@HOST/DATABASE")
    timeout = rest.pop("timeout", "")
    seconds = parse_seconds(timeout, what="timeout") if timeout else given_seconds()
    lock = given or os.environ.get("LAKE_LOCK", "")
    reach = RequestSizes(hole=parse_hole(rest["hole"])) if "hole" in rest else RequestSizes()
    own = {"timeout": timeout} if timeout else {}
    if "hole" in rest:
        own["hole"] = rest.pop("hole")
    store = _store_at(uri, rest, Patience(seconds), reach, own=own)
    if is_read_only():
        return ReadOnlyStore(store)
    if not lock:
        return store
    from log_lake.stores.locks import open_lock  # loaded only if needed

    return LockedStore(store, open_lock(lock, patience=seconds), lock_address=given)


def _store_at(
    uri: str, options: Mapping[str, Any], patience: Patience, reach: RequestSizes, *, own: Mapping[str, Any]
) -> Store:
    if not uri:
        raise InvalidInput("no lake named: give its URI (lake, in the command --lake), or set LAKE")
    scheme, colon, rest = uri.partition(":")
    if colon and scheme in _SCHEMES and scheme != "file" and not rest.startswith("//"):
        raise InvalidInput(
            f"lake {uri!r}: write {scheme}://{rest.lstrip('/')}, or ./{uri} for a folder of that name"
        )
    if scheme == "file" and colon:
        return _local(uri, _folder(uri))
    if "://" not in uri:
        if "\0" in uri:
            raise InvalidInput(f"lake {uri!r}: a path cannot have '\\0'; leave it out")
        return _local(uri, os.path.abspath(uri))
    if scheme == "memory":
        return memory.named(uri)
    if scheme not in _SCHEMES:
        raise InvalidInput(f"lake {uri!r}: unknown scheme {scheme!r}; use a path, s3://, gs:// or memory://")
    _, at, bucket = rest[2:].partition("/")[0].rpartition("@")
    if at:
        raise InvalidInput(
            f"lake {uri!r}: a user and a password do not belong into it; give them as credentials, and write "
            f"{scheme}://BUCKET/PREFIX"
        )
    if not _BUCKET.fullmatch(bucket):
        raise InvalidInput(
            f"lake {uri!r}: {bucket!r} is not the name of a bucket; write {scheme}://BUCKET/PREFIX"
        )
    if not uri.isprintable():  # the stand-ins for bytes that are not UTF-8 are not printable either
        raise InvalidInput(f"lake {uri!r}: a prefix in a bucket must be printable text")
    need_of_bucket(uri)
    from log_lake.stores.cloud import CloudStore  # loads slowly

    cache = given_cache(uri, options)
    store = CloudStore(uri, options, patience=patience, reach=reach, cache=cache)
    store.options.update(own)  # for workers, which open it by its address
    return store


def _local(uri: str, path: str) -> Store:
    """Returns the store in a folder, which need not exist.  Raises InvalidInput for a path that cannot be a
    folder's."""
    try:
        os.stat(path)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENAMETOOLONG):  # whatever is waited for
            raise InvalidInput(f"lake {uri!r}: {words(error)}; name another path") from error
    return LocalStore(_one_slash(path))


def _folder(uri: str) -> str:
    """Returns the absolute path of a `file:` URI; bytes may be escaped as in `%20`.

    Raises InvalidInput for a path on another host, a query, a fragment, and a relative path.
    """
    authority, path = "", uri.removeprefix("file:")
    if path.startswith("//"):
        authority, slash, rest = path[2:].partition("/")
        path = slash + rest
    for sign, escaped, part in (("#", "%23", "fragment"), ("?", "%3F", "query")):
        if sign in authority + path:
            raise InvalidInput(
                f"lake {uri!r}: {sign} begins a {part} in a URI; write {escaped} for it, or the path without file://"
            )
    if authority not in ("", "localhost"):
        raise InvalidInput(
            f"lake {uri!r}: names the host {authority!r}; a path on this machine has three slashes: "
            f"file:///{authority}{path}"
        )
    folder = os.fsdecode(unquote_to_bytes(path))
    if not folder.startswith("/") or "\0" in folder:
        raise InvalidInput(f"lake {uri!r}: not an absolute path; write file:///FOLDER, or the path alone")
    return os.path.normpath(folder)


def _one_slash(path: str) -> str:
    """Returns the path with one leading slash: locks are named by it, and `//x` is the same folder as `/x`."""
    return "/" + path.lstrip("/")
