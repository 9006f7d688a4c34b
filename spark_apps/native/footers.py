"""The key ranges of objects, by their footers: a reference that holds less is a clip.

Called by `read` for references whose extent the state does not tell (`plan.unclear`).
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from lake_core.history import Reference
from lake_core.keys import KeyRange
from lake_core.store import Store
from log_lake.objects.read import DataObject

MAX_FOOTERS = 4_096
"""Footers to read for one frame, at most: each is a request of the store.  Spark reads the same ones once more."""

_AT_ONCE = 16


def key_ranges(
    references: Sequence[Reference], store: Store, *, pool_id: str, most: int = MAX_FOOTERS
) -> dict[str, KeyRange]:
    """The key range of each object, the largest objects first and at most `most`.

    Raises ObjectMissing, Corrupt, Unavailable.
    """
    by_size = {r.object: r for r in sorted(references, key=lambda r: r.size)}
    objects = list(by_size)[::-1][:most]
    if not objects:
        return {}

    def own(object_id: str) -> KeyRange:
        with DataObject(store, pool_id=pool_id, object_id=object_id) as data:
            return KeyRange(data.metadata.low, data.metadata.high)

    with ThreadPoolExecutor(min(len(objects), _AT_ONCE)) as threads:
        return dict(zip(objects, threads.map(own, objects), strict=True))
