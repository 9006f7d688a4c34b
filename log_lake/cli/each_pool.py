"""For commands about every pool: if a pool cannot be read, the others are still shown.

The pools are read one after another.  If a pool is damaged, or its drop was interrupted, its error is
remembered; `check` raises at the end, so that the exit status shows it.

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
        """Remembers the error of the block if it concerns only this pool; other errors are raised.

        Such an error means that the pool is damaged, was dropped, or has a setting that cannot be used.
        """
        try:
            with isolated(pool):
                yield
        except (Corrupt, InvalidInput, NotFound) as error:
            self.failures[pool] = error

    def check(self) -> None:
        """Raises Corrupt if a pool is damaged, otherwise NotFound if a pool cannot be read for another reason.

        The message counts the pools and gives the error of the first one.  If only one pool failed, and its
        error names it, that error is raised itself.
        """
        if not self.failures:
            return
        damaged = {name: error for name, error in self.failures.items() if isinstance(error, Corrupt)}
        name, error = next(iter((damaged or self.failures).items()))
        if len(self.failures) == 1 and repr(name) in str(error):
            raise error
        kind = Corrupt if damaged else NotFound
        raise kind(f"{counted(len(self.failures), 'pool')} cannot be read; pool {name!r}: {error}")
