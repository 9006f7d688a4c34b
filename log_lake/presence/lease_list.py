"""Lists the leases of a pool together with the store's time: it writes a lease for a moment, whose time the
store sets.

Called by `Pool.leases` and by the vacuum of dropped pools.  A vacuum holds its own lease (`vacuum.execute`).
"""

from __future__ import annotations

import logging

from lake_core.errors import Denied
from lake_core.store import Store
from log_lake.leases.holding import HeldLease
from log_lake.leases.lease import VACUUM, LeaseNote, Leases, read_leases

log = logging.getLogger(__name__)


def list_leases(
    store: Store,
    pool_id: str,
    *,
    id: str,
    holder: str,
    ttl: float,
    why: str,
    now: float,
    deletes: bool = False,
) -> Leases:
    """Returns the leases of a pool, dead ones too, without the one with this `id`, which exists only for the
    listing. Raises Unavailable.

    `now`: the caller's clock, in seconds since 1970, used if the caller may not write. With `deletes` the
    caller will delete by this time, so it must be the store's: then Denied is raised instead.
    """
    try:
        with HeldLease(store, pool_id, id, LeaseNote(VACUUM, 0, holder, ttl, why), renewing=False):
            listed = read_leases(store, pool_id, own=id)
    except Denied as error:
        if deletes:
            raise
        log.info("the time is that of this machine: %s", error)
        listed = read_leases(store, pool_id, own="", now=now)
    return Leases(listed.now, tuple(lease for lease in listed.all if lease.id != id))
