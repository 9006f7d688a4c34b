"""The first task of agents that look at pools one after another: what they find, and what they hand out.

A pool that cannot be read is handed out too: its task meets the same error, and fails without holding back the
others.  Called by `find` of the checkpoint, compaction and tombstones agents.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from lake_core.errors import LakeError, NotFound

log = logging.getLogger(__name__)

T = TypeVar("T")


def look_at_each(
    pools: Iterable[str], look: Callable[[str], T], *, named: bool
) -> Iterator[tuple[str, T | None]]:
    """Each pool, and what `look` finds there; None if it cannot be read.

    A pool without the branch, or dropped meanwhile, is passed over; raises NotFound if the run `named` it.
    """
    for name in pools:
        try:
            found = look(name)
        except NotFound:
            if named:
                raise
        except LakeError as error:
            log.error("%s: %s", name, error)
            yield name, None
        else:
            yield name, found


def handed_out(found: list[T], *, dry_run: bool, nothing: str, not_done: str) -> list[T]:
    """What was found, but nothing in a dry run; says so, and if there is `nothing`."""
    if not found:
        log.info("%s", nothing)
    if dry_run:
        log.info("dry run: %s", not_done)
        return []
    return found
