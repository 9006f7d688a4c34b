"""The store port: the few operations that the lake needs of a store of named bytes.

`port` defines the protocol; `local`, `memory` and `cloud` (S3 and Google, over fsspec) implement it; `address` is
what another process needs to open the same store; `probe` refuses a store that overwrites objects it should only
create; `locked` puts a lock in front of such a store; `failures` and `guard` turn every failure into `Unavailable`;
`sends` counts how often a request was sent.  `log_lake.stores` chooses the store of a URI, and has the locks.
Packages above this one use names as `naming` spells them, never paths.
"""

from lake_core.store.address import Address, address_of
from lake_core.store.guard import GuardedStore, guarded
from lake_core.store.locked import LockedStore, NoLock
from lake_core.store.port import Created, ObjectInfo, Store

__all__ = [
    "Address",
    "Created",
    "GuardedStore",
    "LockedStore",
    "NoLock",
    "ObjectInfo",
    "Store",
    "address_of",
    "guarded",
]
