"""Leases: objects that say who is at work on a pool, so that nothing is deleted that the work may need.

`lease` is the object, what it means, and how dead ones are deleted.  `holding` keeps one alive while work goes on,
`alarm` begins the leases of writers late, `listing` tells who is at work now.
"""

from lake_core.leases.holding import HeldLease
from lake_core.leases.lease import Lease, LeaseNote, Leases, read_leases, remove_dead
from lake_core.leases.listing import list_leases

__all__ = ["HeldLease", "Lease", "LeaseNote", "Leases", "list_leases", "read_leases", "remove_dead"]
