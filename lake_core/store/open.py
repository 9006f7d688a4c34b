"""Which store a URI names: a local path, `file://`, `memory://`, `s3://`, `gs://`; with a lock in front of it where
one is named."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlparse

from lake_core.errors import InvalidInput
from lake_core.store import memory
from lake_core.store.local import LocalStore
from lake_core.store.locked import LockedStore
from lake_core.store.port import Store


def open_store(uri: str, options: Mapping[str, Any] | None = None) -> Store:
    """The store at `uri`.  Nothing is requested of it yet.

    The option `lock`, or else the variable LAKE_LOCK, is the address of a lock for stores without create-only put
    (`locks`); the other options go to fsspec (s3, gs).  Raises InvalidInput for a URI that names no store and an
    address that names no lock.
    """
    rest = dict(options or {})
    lock = rest.pop("lock", "") or os.environ.get("LAKE_LOCK", "")
    store = _store_at(uri, rest)
    if not lock:
        return store
    from lake_core.store.locks import open_lock  # seldom needed

    return LockedStore(store, open_lock(lock))


def _store_at(uri: str, options: Mapping[str, Any]) -> Store:
    if not uri:
        raise InvalidInput("no lake named: use --lake URI or set LAKE")
    scheme = uri.partition("://")[0] if "://" in uri else ""
    if scheme in ("", "file"):
        return LocalStore(unquote(urlparse(uri).path) if scheme else uri)
    if scheme == "memory":
        return memory.named(uri)
    if scheme in ("s3", "s3a", "gs", "gcs"):
        if not urlparse(uri).netloc:
            raise InvalidInput(f"lake {uri!r}: no bucket; write {scheme}://BUCKET/PREFIX")
        from lake_core.store.cloud import CloudStore  # loads slowly

        return CloudStore(uri, options)
    raise InvalidInput(f"lake {uri!r}: unknown scheme {scheme!r}; use a path, s3://, gs:// or memory://")
