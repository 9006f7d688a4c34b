"""The tags that keep what is published (decision 93): each is named by an id, and has the place as its reason."""

from __future__ import annotations

import contextlib

from lake_core.errors import NotFound
from log_lake.lake.pool import Pool
from log_lake.publish.place import Place


def set_tag(pool: Pool, place: Place, *, branch: str) -> str:
    """Tag the newest state of the branch for a publication; returns the name."""
    name = f"published-{pool.context.ids.new()}"
    pool.tag(name, at=branch, reason=_reason(place))
    return name


def delete_tag(pool: Pool, name: str) -> None:
    """Delete the tag, if another publisher has not."""
    with contextlib.suppress(NotFound):
        pool.delete_tag(name)


def delete_tags_before(pool: Pool, place: Place, name: str) -> None:
    """Delete the tags of publications to this place that are older than the tag of this name."""
    tags = pool.tags
    if (own := tags.get(name)) is not None:
        for other, tag in tags.items():
            if tag.reason == _reason(place) and tag.set_at < own.set_at:
                delete_tag(pool, other)


def _reason(place: Place) -> str:
    return f"published at {place.location}"
