"""Does the store keep its promise?  Asked once, when a lake is made.

The same create-only write twice: a store that says yes twice overwrites silently, and two writers of one
journal entry would destroy each other's commits.  A store that only races is not found by this.
"""

from __future__ import annotations

from lake_core.errors import NoCreate, Unavailable
from lake_core.store.port import Created, Store


def probe_create(store: Store, *, name: str) -> None:
    """Raises NoCreate (InvalidInput) where a second create of one name does not fail, Unavailable where none
    works or the answer is lost."""
    if store.create(name, b"probe") is Created.UNKNOWN and store.get(name) is None:
        raise Unavailable(f"{store.uri}: cannot write {name}")
    try:
        second = store.create(name, b"again")
        if second is Created.UNKNOWN:
            raise Unavailable(f"{store.uri}: the store does not say what became of {name}; try again")
        if second is Created.YES or store.get(name) != b"probe":
            raise NoCreate(
                f"{store.uri}: this store overwrites an object although asked to create it only if missing; "
                "a lake here would lose commits"
            )
    finally:
        store.delete(name)
