"""Leases: objects that say who is at work on a pool, so that nothing is deleted that the work may need.

`lease` is the object, what it means, and how dead ones are deleted.  `holding` keeps one alive while work goes on,
`alarm` begins the leases of writers late; `log_lake.presence.lease_list` tells who is at work now.
"""

from lake_core.leases.holding import HeldLease
from lake_core.leases.lease import Lease, LeaseNote, Leases, read_leases, remove_dead

__all__ = ["HeldLease", "Lease", "LeaseNote", "Leases", "read_leases", "remove_dead"]
