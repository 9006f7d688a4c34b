"""The objects that tags keep, read from the states that the tags name.

If the state of a live tag cannot be read, the vacuum stops, because the tag's objects are unknown.  If expired
tags count too, a tag with an expiry that cannot be read is skipped: a purge may have taken its state.  It is
skipped even if it seems live, because clocks differ; its objects are on the list of removed objects or referred
to.  A tag that was deleted after the state was loaded keeps nothing.

The state of a version takes a few requests, one after the other.  So each version is read once, however many
tags name it, and several are read in parallel.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, MutableMapping
from typing import TypeVar

from lake_core.errors import Corrupt, NotFound
from lake_core.history.history import History
from lake_core.history.state import PoolState
from lake_core.history.vacuuming import objects_of

T = TypeVar("T")

Tagged = tuple[int, str]
"""What a tag names: a version, and a branch in it."""


def read_tags(
    history: History,
    state: PoolState,
    read: Callable[[PoolState, str], T],
    *,
    now: float | None,
    seen: MutableMapping[Tagged, T] | None = None,
) -> Iterator[tuple[str, T]]:
    """Yields the tags that are live at `now` (seconds since 1970; None: all tags).  With each tag comes the
    result of `read` for the state and branch that the tag names.

    `seen`: earlier results, which are not computed again; new results are added.  Raises Corrupt if the state
    of a tag cannot be read, Unavailable.
    """
    values = {} if seen is None else seen
    tags = [
        (name, tag)
        for name, tag in sorted(state.tags.items())
        if now is None or tag.is_live(int(now * 1_000_000))
    ]
    unread = list(dict.fromkeys((tag.version, tag.branch) for _, tag in tags))
    unread = [tagged for tagged in unread if tagged not in values]
    failures: dict[Tagged, NotFound] = {}

    def one(tagged: Tagged) -> T | NotFound:
        try:
            return read(history.load_version(tagged[0]).state, tagged[1])
        except NotFound as error:
            return error

    for tagged, value in zip(unread, history.journal.read_all(one, unread), strict=True):
        if isinstance(value, NotFound):
            failures[tagged] = value
        else:
            values[tagged] = value
    for name, tag in tags:
        error = failures.get((tag.version, tag.branch))
        if error is None:
            yield name, values[tag.version, tag.branch]
            continue
        if now is None and tag.expires is not None:
            continue
        if history.load().state.tags.get(name) != tag:
            continue
        raise Corrupt(
            f"tag {name!r}: the state of version {tag.version} cannot be read, so what it keeps is "
            "unknown; delete the tag, or restore the checkpoint"
        ) from error


def tagged_objects(
    history: History, state: PoolState, among: Collection[str], *, now: float | None
) -> frozenset[str]:
    """Returns which of the objects `among` are kept by tags that are live at `now`.  Reads no state if there are
    no such tags. Raises Corrupt, Unavailable."""

    def read(tagged: PoolState, branch: str) -> frozenset[str]:
        branch_state = tagged.branches.get(branch)
        return frozenset() if branch_state is None else frozenset(objects_of(branch_state.snapshot, among))

    return (
        frozenset().union(*(ids for _, ids in read_tags(history, state, read, now=now)))
        if among
        else frozenset()
    )
