"""Leases: objects that name the processes at work on a pool, so that a vacuum keeps the objects that they may
need.

`lease` is the object, its meaning, and how dead ones are deleted.  `holding` keeps a lease alive while work
continues, `alarm` begins the leases of writers late; `log_lake.presence.lease_list` lists the live leases.
"""

from log_lake.leases.holding import HeldLease
from log_lake.leases.lease import Lease, LeaseNote, Leases, read_leases, remove_dead

__all__ = ["HeldLease", "Lease", "LeaseNote", "Leases", "read_leases", "remove_dead"]
