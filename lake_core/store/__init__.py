"""The store port: the few operations that the lake needs of a store of named bytes.

`port` defines the protocol; `address` is what another process needs to open the same store; `probe` refuses a store
that overwrites objects it should only create.  `log_lake.stores` implements the port, turns every failure into
`Unavailable`, and chooses the store of a URI (decisions 311, 425).  Packages above
this one use names as `naming` spells them, never paths.
"""

from lake_core.store.address import Address, address_of
from lake_core.store.port import Created, ObjectInfo, Store

__all__ = ["Address", "Created", "ObjectInfo", "Store", "address_of"]
