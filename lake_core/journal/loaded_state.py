"""What a journal hands out: the state after an entry, and what that state rests on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from lake_core.checkpoints import CheckpointFile, Part
from lake_core.journal.marks import Mark
from lake_core.journal.recent import Recent

RECENT = "recent"
"""The section of a checkpoint that holds the recent ids."""


class HasId(Protocol):
    """What the journal needs of an entry: the writer's id."""

    @property
    def id(self) -> str: ...


E = TypeVar("E", bound=HasId)
S = TypeVar("S")


@dataclass(frozen=True)
class LoadedState(Generic[S]):
    """The state after entry `n`, the ids that were committed lately, and the checkpoint that the state rests on."""

    version: int
    state: S
    recent: Recent = field(default_factory=Recent, compare=False)
    checkpoint: Mark | None = field(default=None, compare=False)

    @property
    def floor(self) -> int:
        """A fence above this entry has purged something that the state needs, or that comes after it."""
        return self.version if self.checkpoint is None else self.checkpoint.version


class StateFormat(Protocol[S]):
    """How a state is kept in a checkpoint."""

    def parts(self, state: S, *, now: float) -> Iterable[Part]:
        """The state as rows; what may be forgotten at `now` (seconds since 1970) is left out."""

    def restore(self, file: CheckpointFile) -> S:
        """The state again; it may go on reading from the file.  Raises Corrupt."""
