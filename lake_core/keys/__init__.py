"""Keys: how records of a pool are ordered, and how ranges of them are spelled.

A key is a tuple of field values.  `encoding` turns it into bytes whose plain comparison is the order of
the pool; every bound in the lake (objects, references, tombstones, partitions, plans) is such bytes.
`spec` is the declaration (fields, directions), `ranges` the half-open ranges, `columns` the same order for
whole Arrow columns at once.  Everything here is pure.
"""

from lake_core.keys.ranges import KeyRange
from lake_core.keys.spec import KeyField, PoolKey

__all__ = ["KeyField", "KeyRange", "PoolKey"]
