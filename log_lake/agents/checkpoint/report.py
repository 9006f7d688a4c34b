"""The checkpoint agent's results, and the words for its logs and its report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lake_core.errors import Unavailable
from lake_core.phrases import counted
from log_lake.agents.work import Result, Written


@dataclass(frozen=True)
class CheckpointFailed(Result):
    """A journal on which the agent's work failed, with the error as text; `kind` is the name of the error's
    class."""

    failed: str
    kind: str


@dataclass(frozen=True)
class CheckpointResult(Result):
    """What the agent did to one journal.

    `checkpoint` is the version of the newest checkpoint; `written`: this run wrote it.  `entries` and
    `checkpoints` say how many of each were purged, up to the version `fence`.  `tail_before` and `tail_after`
    are the numbers of entries after the newest checkpoint, before and after the run; a reader that opens the
    pool needs a request for each entry.
    """

    checkpoint: int
    written: bool
    fence: int
    entries: int
    checkpoints: int
    tail_before: int
    tail_after: int

    @property
    def wrote(self) -> Written:
        return Written(version=self.checkpoint)


def journal_line(result: CheckpointResult) -> str:
    """Returns a line that says what was done to a journal."""
    wrote = "wrote the checkpoint" if result.written else "there was a checkpoint already, the one"
    line = f"{result.pool}: {wrote} of version {result.checkpoint:,}"
    if result.tail_before:
        line += f"; entries to read when it is opened: {result.tail_before:,} -> {result.tail_after:,}"
    if not (result.entries or result.checkpoints):
        return f"{line}; nothing to purge"
    entries = counted(result.entries, "entry", "entries")
    return f"{line}; purged {entries} and {counted(result.checkpoints, 'checkpoint')}"


def check_answered(results: Sequence[Result]) -> None:
    """Raises Unavailable if the store did not answer for some journals.  A retry may help, and repeats
    nothing."""
    failed = [
        one for one in results if isinstance(one, CheckpointFailed) and one.kind == Unavailable.__name__
    ]
    if failed:
        raise Unavailable("; ".join(f"{one.pool}: {one.failed}" for one in failed))
