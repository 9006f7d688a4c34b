"""A command about every pool shows the others if one of them cannot be read.

The pools are read one after another.  A pool that is damaged, or whose drop was interrupted, is noted with its
error; `check` raises in the end, so that the exit status tells.
Called by the commands about all pools: ls, tags, leases, erasures.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from lake_core.errors import Corrupt, InvalidInput, LakeError, NotFound
from lake_core.phrases import counted
from log_lake.lake.isolated import isolated


@dataclass
class EachPool:
    """The pools that cannot be read, by name, with their errors."""

    failures: dict[str, LakeError] = field(default_factory=dict)

    @contextmanager
    def attempt(self, pool: str) -> Iterator[None]:
        """Note the error of the block if it is of this pool alone; others are raised.

        The pool is damaged, was dropped, or has a setting that cannot be used.
        """
        try:
            with isolated(pool):
                yield
        except (Corrupt, InvalidInput, NotFound) as error:
            self.failures[pool] = error

    def check(self) -> None:
        """Raises Corrupt if a pool is damaged, otherwise NotFound if one was dropped; the message has the first."""
        if not self.failures:
            return
        damaged = {name: error for name, error in self.failures.items() if isinstance(error, Corrupt)}
        name, error = next(iter((damaged or self.failures).items()))
        kind = Corrupt if damaged else NotFound
        raise kind(f"{counted(len(self.failures), 'pool')} cannot be read; pool {name!r}: {error}")
