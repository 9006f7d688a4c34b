"""Tests whether a store keeps its promise of create-only puts.

`probe_create` tests once, when a lake is created: it creates one name twice.  A store that answers yes twice
overwrites silently, and two writers of one entry would destroy each other's commits.  The probe does not detect
a store that overwrites only in races.

`is_there` checks an answer of "exists".  Some stores, and proxies in front of them, answer so (412) although
they have no such object.  A writer that believed this answer would continue without its fence, its lease or its
file.
"""

from __future__ import annotations

import logging

from lake_core.errors import NoCreate, Unavailable
from lake_core.store.port import Created, Store

log = logging.getLogger(__name__)


DENIES = (
    "the store refused to create this object because it exists, and says that it does not exist when it is read. A "
    "store, or a cache or proxy in front of it, that answers so cannot hold a lake: check it"
)
"""The message about a store that answered "exists" without having the object."""


def is_there(store: Store, name: str, created: Created) -> bool:
    """Whether the store certainly has the object, after its create was answered "exists".  Raises Unavailable."""
    return created is Created.YES or (created is Created.EXISTS and store.get(name) is not None)


def probe_create(store: Store, *, name: str) -> None:
    """Creates a name twice, which must fail the second time.  Raises NoCreate (an InvalidInput) if the second
    create does not fail, Unavailable if neither works or an answer is lost."""
    first = store.create(name, b"probe")
    if first is not Created.YES and store.get(name) is None:
        if first is Created.EXISTS:
            raise NoCreate(f"{store.uri}/{name}: {DENIES}")
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


def creates_once(store: Store, *, name: str) -> bool:
    """Whether the store passes the test of `probe_create`; for a store that is used under a lock.  Raises
    Unavailable."""
    try:
        probe_create(store, name=name)
    except NoCreate:
        return False
    return True


ONLY_THE_LOCK = (
    "this store overwrites an object although asked to create it only if missing, so only the lock keeps writers "
    "apart. A writer that loses its lock while its write is on the way may overwrite the commit of another, and "
    "the pool is then Corrupt. If that must not happen, take a store with a create-only write (docs/protocol.md)"
)
"""The warning about a lake on a store that overwrites."""
