"""Deleting dead leases: of holders that were killed, or that stood still.

A dead lease holds nothing, so any process may delete it, at any time.  A holder that wakes up writes its lease
again, and knows that it was lost in between (`HeldLease.is_lost`).  Called by `vacuum` and `agents.retention`.
"""

from __future__ import annotations

from lake_core import naming
from lake_core.leases.lease import Lease, Leases
from lake_core.store import Store


def remove_dead(store: Store, pool_id: str, leases: Leases) -> list[Lease]:
    """Delete the dead ones of the leases that a listing found; returns them.  Raises Unavailable."""
    dead = leases.dead
    if dead:
        store.delete_all([naming.lease(pool_id, lease.id) for lease in dead])
    return dead
