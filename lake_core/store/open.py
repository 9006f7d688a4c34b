"""Which store a URI names: a local path, `file://`, `memory://`, `s3://`, `gs://`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlparse

from lake_core.errors import InvalidInput
from lake_core.store import memory
from lake_core.store.local import LocalStore
from lake_core.store.port import Store


def open_store(uri: str, options: Mapping[str, Any] | None = None) -> Store:
    """The store at `uri`; `options` go to fsspec (s3, gs).  Nothing is requested of it yet.

    Raises InvalidInput for a URI that names no store.
    """
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
