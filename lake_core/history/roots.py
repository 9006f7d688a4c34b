"""The objects that tags keep: read from the states that they name.

A live tag whose state cannot be read stops the vacuum, since what it keeps is unknown.  Where expired ones count
too, one that expires and cannot be read is skipped: a purge may have taken its state.  Whether it has expired is
not asked, because clocks differ, and what such a tag keeps is on the list of the removed or referred to.

A tag that was deleted since the state was loaded keeps nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from lake_core.errors import Corrupt, NotFound
from lake_core.history.history import History
from lake_core.history.state import PoolState, Tag
from lake_core.history.vacuuming import objects_of


def tagged_states(
    history: History, state: PoolState, *, now: float | None
) -> Iterator[tuple[str, Tag, PoolState]]:
    """The tags that are live at `now`, in seconds since 1970 (None: all tags), each with the state that it names.

    Raises Corrupt if the state of a tag cannot be read, Unavailable.
    """
    for name, tag in sorted(state.tags.items()):
        if now is not None and not tag.is_live(int(now * 1_000_000)):
            continue
        try:
            tagged = history.load_version(tag.version).state
        except NotFound as error:
            if now is None and tag.expires is not None:
                continue
            if history.load().state.tags.get(name) != tag:
                continue
            raise Corrupt(
                f"tag {name!r}: the state of version {tag.version} cannot be read, so what it keeps is "
                "unknown; delete the tag, or restore the checkpoint"
            ) from error
        yield name, tag, tagged


def tagged_objects(
    history: History, state: PoolState, among: Collection[str], *, now: float | None
) -> frozenset[str]:
    """Those objects that such tags keep; reads no state if there is none.  Raises Corrupt, Unavailable."""
    objects: set[str] = set()
    for _, tag, tagged in tagged_states(history, state, now=now) if among else ():
        branch = tagged.branches.get(tag.branch)
        objects.update(objects_of(branch.snapshot, among) if branch is not None else ())
    return frozenset(objects)
