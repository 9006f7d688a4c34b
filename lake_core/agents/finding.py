"""The first task of an agent: the pools it looks at, what it finds there, and what it hands out.

The checkpoint, compact, erasure, retention and tombstones agents hand out a pool that cannot be read too: its
task meets the same error, and fails without holding back the others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from lake_core.catalog import Settings
from lake_core.errors import InvalidInput, LakeError, NotFound
from lake_core.lake import Lake

log = logging.getLogger(__name__)

T = TypeVar("T")


def look_at_each(
    pools: Iterable[str], look: Callable[[str], T], *, named: bool
) -> Iterator[tuple[str, T | None]]:
    """Each pool, and what `look` finds there; None if it cannot be read, which is logged.

    Skips a pool without the branch, and one that was dropped since; raises NotFound if the run `named` it.
    """
    for name in pools:
        try:
            answer = look(name)
        except NotFound:
            if named:
                raise
        except LakeError as error:
            log.error("%s: %s", name, error)
            yield name, None
        else:
            yield name, answer


def pools_with(lake: Lake, setting: str, only: Sequence[str], *, example: str) -> list[str]:
    """Names of the pools that have the setting, which lets them take part; of `only`, if any are named.

    Raises NotFound for an unknown pool, InvalidInput for a named pool without the setting.
    """
    for name in only:
        if not lake.pool(name).settings[setting]:
            raise InvalidInput(
                f"pool {name!r}: {setting} is empty; set it with: lake set {name} {setting}={example}"
            )
    return sorted(set(only)) or [p.name for p in lake.pools() if Settings(p.settings)[setting]]


def handed_out(all_work: list[T], *, dry_run: bool, nothing: str, not_done: str) -> list[T]:
    """What was found; nothing in a dry run.  Logs that it is one, or that there is `nothing`."""
    if not all_work:
        log.info("%s", nothing)
    if dry_run:
        log.info("dry run: %s", not_done)
        return []
    return all_work
