"""The objects that tags keep: read from the states that they name.

A tag whose state cannot be read stops the vacuum, since what it keeps is unknown.
"""

from __future__ import annotations

from collections.abc import Collection

from lake_core.errors import Corrupt, NotFound
from lake_core.history.history import History
from lake_core.history.state import PoolState
from lake_core.history.vacuuming import objects_of


def tagged_objects(
    history: History, state: PoolState, among: Collection[str], *, now: float | None
) -> frozenset[str]:
    """Those objects that tags keep which are live at `now`, in seconds since 1970; None: that any tag keeps.

    Raises Corrupt if the state of a tag cannot be read, Unavailable.
    """
    objects: set[str] = set()
    for name, tag in sorted(state.tags.items()):
        if now is not None and not tag.is_live(int(now * 1_000_000)):
            continue
        try:
            branch = history.load_version(tag.version).state.branches.get(tag.branch)
        except NotFound as error:
            raise Corrupt(
                f"tag {name!r}: the state of version {tag.version} cannot be read, so what it keeps is "
                "unknown; delete the tag, or restore the checkpoint"
            ) from error
        objects.update(objects_of(branch.snapshot, among) if branch is not None else ())
    return frozenset(objects)
