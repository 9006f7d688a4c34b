"""A check of the store's create-only put, once, when a lake is created.

The probe creates one name twice.  A store that answers yes twice overwrites silently, and two writers of one entry
would destroy each other's commits.  The probe does not find a store that overwrites only in races.
"""

from __future__ import annotations

import logging

from lake_core.errors import NoCreate, Unavailable
from lake_core.store.port import Created, Store

log = logging.getLogger(__name__)


def probe_create(store: Store, *, name: str) -> None:
    """Create a name twice.

    Raises NoCreate (an InvalidInput) if the second create does not fail, Unavailable if neither works or an answer
    is lost.
    """
    if store.create(name, b"probe") is Created.UNKNOWN and store.get(name) is None:
        raise Unavailable(
            f"{store.uri}: the store did not take {name}; check that you may write there, and try again"
        )
    try:
        second = store.create(name, b"again")
        if second is Created.UNKNOWN:
            raise Unavailable(f"{store.uri}: the store does not say whether it created {name}; try again")
        if second is Created.YES or store.get(name) != b"probe":
            raise NoCreate(
                f"{store.uri}: this store overwrites an object although asked to create it only if missing; "
                "a lake here would lose commits"
            )
    finally:
        store.delete(name)
    log.info("%s: the store creates a name only once", store.uri)
