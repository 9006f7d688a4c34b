"""A loaded state: the state after an entry, with its version, the recent ids, and the checkpoint it rests on.

With it comes the checksum of that entry, which the next one must name (`link`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import pyarrow as pa

from lake_core.checkpoints import CheckpointFile, SectionPart
from lake_core.journal.marks import Mark
from lake_core.journal.recent import Recent

RECENT = "recent"
"""The section of a checkpoint that holds the recent ids."""


class HasId(Protocol):
    """What the journal knows of an entry: the id that its writer gave it, and the checksum of the previous
    entry."""

    @property
    def id(self) -> str: ...

    @property
    def previous(self) -> int: ...


E = TypeVar("E", bound=HasId)
S = TypeVar("S")


@dataclass(frozen=True)
class LoadedState(Generic[S]):
    """The state at a version, the recent ids, and the checkpoint from which the state still reads (None: it reads
    from none).

    `checksum` is the checksum of the version's entry, 0 if it is not known.  `gates`: how many gates were
    counted; the fences of all of them lie at or below `floor`.  It is None if they were not counted.
    """

    version: int
    state: S
    recent: Recent = field(default_factory=Recent, compare=False)
    checkpoint: Mark | None = field(default=None, compare=False)
    checksum: int = field(default=0, compare=False)
    gates: int | None = field(default=None, compare=False)

    @property
    def floor(self) -> int:
        """The version above which a fence invalidates this state, or the entries after it."""
        return self.version if self.checkpoint is None else self.checkpoint.version


class StateFormat(Protocol[S]):
    """Writes a state into a checkpoint, and reads it back."""

    @property
    def token_keep(self) -> float:
        """How many seconds tokens are remembered; infinity if the state has no tokens."""

    def parts(self, state: S, *, now: float, forget: int) -> Iterable[SectionPart]:
        """Returns the state as rows.  Leaves out tokens of versions up to `forget` that are too old at `now`
        (seconds since 1970)."""

    def restore(self, file: CheckpointFile) -> S:
        """Returns the state that the file holds; the state may read from the file later.  Raises Corrupt."""

    def check(self, table: pa.Table, section: str, version: int) -> str | None:
        """Returns in words what is wrong with a section's rows in a checkpoint of this version; None if nothing
        is."""

    def verify(self, state: S) -> None:
        """Decodes every row of a restored state.  Raises Corrupt, Unavailable."""
