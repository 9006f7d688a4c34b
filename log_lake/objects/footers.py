"""Caches the decoded footers of the objects that a process read last, for each store.

Objects never change, so a footer is read once.  For a point read, reading the footer again would cost more than
reading the record.

Called by `read`.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict

from lake_core.store import Store
from log_lake.objects.containers import Footer

FOOTERS_KEPT = 4_096
"""The most footers that a process keeps for a store. Besides its counted bytes, each takes a few kilobytes."""

FOOTER_BYTES = 32 << 20
"""The most bytes of all kept footers.  A large object's footer takes a few megabytes, more with many
columns."""


class Footers:
    """A cache of the footers used last, by object name; safe to use from several threads."""

    def __init__(self) -> None:
        self._footers: OrderedDict[str, Footer] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, name: str) -> Footer | None:
        """Returns the footer of an object; None if the cache does not have it."""
        with self._lock:
            footer = self._footers.get(name)
            if footer is not None:
                self._footers.move_to_end(name)
            return footer

    def keep(self, name: str, footer: Footer) -> Footer:
        """Adds the footer to the cache, and returns it.  Drops the least recently used ones if there is no
        room."""
        with self._lock:
            before = self._footers.pop(name, None)
            self._footers[name] = footer
            self._bytes += footer.size - (before.size if before else 0)
            while len(self._footers) > 1 and (
                len(self._footers) > FOOTERS_KEPT or self._bytes > FOOTER_BYTES
            ):  # ends with the one that was just kept
                _, dropped = self._footers.popitem(last=False)
                self._bytes -= dropped.size
        return footer


_FOOTERS: weakref.WeakKeyDictionary[Store, Footers] = weakref.WeakKeyDictionary()


def footers(store: Store) -> Footers:
    """Returns the cache of footers for the store."""
    return _FOOTERS.setdefault(store, Footers())
