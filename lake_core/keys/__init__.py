"""Keys: the order of a pool's records, and ranges of keys.

A key is a tuple of field values.  `encoding` turns it into bytes that compare in the order of the pool; every
bound in the lake (of objects, references, tombstones, partitions, plans) is such bytes.  `spec` is the declaration
(fields, directions), `ranges` has the half-open ranges; `log_lake.columns.keys` gives whole columns this order.
Everything here is pure.
"""

from lake_core.keys.ranges import KeyRange
from lake_core.keys.spec import KeyField, PoolKey

__all__ = ["KeyField", "KeyRange", "PoolKey"]
