"""Deleting and replacing: one small transaction each, whatever the amount of data.

`erasure` makes what such a transaction says of ranges and conditions, and looks whether there is anything to
delete; `application` plans the work of the tombstones agent: which objects hold covered records, and which
tombstones cover nothing any more.  What a tombstone means is in `commits.tombstone`; `scan.covered` does it.
"""

from lake_core.deletes.erasure import Erasure, check_erasure, finds
from lake_core.deletes.replacement import check_fulfils, check_inside

__all__ = ["Erasure", "check_erasure", "check_fulfils", "check_inside", "finds"]
