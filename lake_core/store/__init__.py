"""The store port: the few operations that the lake needs of a store of named bytes.

`port` defines the protocol; `local` and `memory` implement it; `address` is what another process needs to open the
same store; `probe` refuses a store that overwrites objects it should only create; `failures` and `guard` turn every
failure into `Unavailable`; `ranges` reads parts of objects.  `log_lake.stores` has S3, Google Cloud Storage and
locks, and chooses the store of a URI (decision 311).  Packages above this one use names as `naming` spells them,
never paths.
"""

from lake_core.store.address import Address, address_of
from lake_core.store.guard import GuardedStore, guarded
from lake_core.store.port import Created, ObjectInfo, Store

__all__ = [
    "Address",
    "Created",
    "GuardedStore",
    "ObjectInfo",
    "Store",
    "address_of",
    "guarded",
]
