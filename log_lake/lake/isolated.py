"""Isolates pools from each other: a failure in one of them belongs to that pool, and the others are still
processed.

Decoders raise only errors of the lake (decision 170). This module catches errors that no decoder foresaw: an
error of another class counts as damage of the pool that was read; `-vv` prints where it was raised.  Called by
the agents' `find`, the commands about all pools, `lake fsck`, and the web view.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import TypeVar

from lake_core.errors import Corrupt, LakeError

log = logging.getLogger(__name__)

T = TypeVar("T")


@contextlib.contextmanager
def isolated(pool: str) -> Iterator[None]:
    """Returns a context in which every failure becomes an error of the lake.  A failure of another class becomes
    Corrupt with the pool's name."""
    try:
        yield
    except LakeError:
        raise
    except Exception as error:
        log.debug("pool %r: an error that is none of the lake", pool, exc_info=True)
        text = " ".join(f"{type(error).__name__}: {error}".split())
        raise Corrupt(f"pool {pool!r}: cannot be read: {text}; look at it with: lake fsck {pool}") from error


def answer_of(pool: str, look: Callable[[], T]) -> T | LakeError:
    """Returns the result of `look` for a pool, or the error that it raised."""
    try:
        with isolated(pool):
            return look()
    except LakeError as error:
        return error
