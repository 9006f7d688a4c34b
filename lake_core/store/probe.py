"""Does the store keep its promise?  Asked once, when a lake is made.

The same create-only write twice: a store that says yes twice overwrites silently, and two writers of one
journal entry would destroy each other's commits.  A store that only races is not found by this.
"""

from __future__ import annotations

from lake_core.errors import InvalidInput, Unavailable
from lake_core.store.port import Created, Store


def probe_create(store: Store, *, name: str) -> None:
    """Raises InvalidInput where a second create of one name does not fail, Unavailable where none works."""
    if store.create(name, b"probe") is Created.UNKNOWN and store.get(name) is None:
        raise Unavailable(f"{store.uri}: cannot write {name}")
    try:
        if store.create(name, b"again") is not Created.EXISTS or store.get(name) != b"probe":
            raise InvalidInput(
                f"{store.uri}: this store overwrites an object although asked to create it only if missing; "
                "a lake here would lose commits"
            )
    finally:
        store.delete(name)
