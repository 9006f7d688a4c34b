"""The store port: the few operations the lake asks of a place that keeps named bytes.

`port` states the protocol; `local`, `memory` and `cloud` (S3 and Google, over fsspec) fulfil it; `open`
chooses by URI; `probe` refuses a place that overwrites where it must not; `locked` puts a lock (`locks`) in
front of such a place; `failures` and `guard` see to it that every failure is `Unavailable`; `sends` counts how
often a request was sent.  Everything above this package speaks names as `naming` spells them and never a path.
"""

from lake_core.store.guard import GuardedStore, guarded
from lake_core.store.locked import LockedStore, NoLock
from lake_core.store.open import open_store
from lake_core.store.port import Created, ObjectInfo, Store

__all__ = [
    "Created",
    "GuardedStore",
    "LockedStore",
    "NoLock",
    "ObjectInfo",
    "Store",
    "guarded",
    "open_store",
]
