"""The store port: the few operations the lake asks of a place that keeps named bytes.

`port` states the protocol; `local`, `memory` and `cloud` (S3 and Google, over fsspec) fulfil it; `open`
chooses by URI; `probe` refuses a place that overwrites where it must not; `locked` puts a lock (`locks`) in
front of such a place.  Everything above this package speaks names as `naming` spells them and never a path.
"""

from lake_core.store.locked import LockedStore, NoLock
from lake_core.store.open import open_store
from lake_core.store.port import Created, ObjectInfo, Store

__all__ = ["Created", "LockedStore", "NoLock", "ObjectInfo", "Store", "open_store"]
