"""Restores the state that a checkpoint of a journal holds."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from lake_core.checkpoints import CheckpointFile
from lake_core.errors import CheckpointGone, Corrupt, LakeError
from lake_core.journal.limits import JournalLimits
from lake_core.journal.loaded_state import RECENT, LoadedState, S, StateFormat
from lake_core.journal.marks import Mark, Marks
from lake_core.journal.recent import Recent
from lake_core.records.decoding import decoding
from lake_core.store import Store

log = logging.getLogger(__name__)


def restored(
    store: Store,
    journal: str,
    mark: Mark,
    *,
    format: StateFormat[S],
    limits: JournalLimits,
    on_damage: Callable[[str], None],
) -> tuple[LoadedState[S], CheckpointFile]:
    """Returns the state that a checkpoint holds, and the file, from which the state may read more later.

    `on_damage` is called with the checkpoint's name if damage is found later.  Raises Corrupt if the checkpoint
    is damaged, or belongs to another journal or version.  Raises CheckpointGone, Unavailable.
    """
    file = CheckpointFile(
        store, mark.name, size=mark.size, on_damage=on_damage, check=format.check, limits=limits.checkpoints
    )
    footer = file.footer
    if footer.version != mark.version or footer.journal != journal:
        raise Corrupt(f"{mark.name}: this checkpoint holds {footer.journal} at version {footer.version}")
    with decoding(mark.name, "a row of this checkpoint is damaged"):
        ids = [
            (key.as_py().decode(), version.as_py())
            for table in file.scan(RECENT, columns=("key", "seq"))
            for key, version in zip(table["key"], table["seq"], strict=True)
        ]
        recent = Recent.of(mark.version, ids, limits=limits)
        state = format.restore(file)
    return LoadedState(mark.version, state, recent, mark, footer.entry_checksum), file


def few_of(marks: Sequence[Mark], *, limits: JournalLimits) -> Sequence[Mark]:
    """Returns the checkpoints that a reader tries: all, or, if they are too many, the first ones and the last
    one.  The last one is the checkpoint of the fence, which a purge read whole before it put the fence."""
    most = limits.checkpoints_tried
    return marks if len(marks) <= most else (*marks[: most - 1], marks[-1])


def first_restored(
    marks: Sequence[Mark], restore: Callable[[Mark], LoadedState[S]]
) -> tuple[LoadedState[S] | None, LakeError | None]:
    """Returns the state of the first of these checkpoints that can be read, or None; and the error of the last
    one that could not be read before it, or None.  Raises Unavailable."""
    problem: LakeError | None = None
    for mark in marks:
        try:
            loaded = restore(mark)
            log.info("starts from the checkpoint of version %d, %s", mark.version, mark.name)
            return loaded, problem
        except (Corrupt, CheckpointGone) as error:  # an older one, or all entries, serve as well
            log.warning("checkpoint %s is passed over: %s", mark.name, error)
            problem = error
    return None, problem


def unreadable(journal: str, marks: Marks, *, limits: JournalLimits) -> Corrupt:
    """Returns the error for a journal if no checkpoint above its fence could be read."""
    usable, most = len(marks.usable()), limits.checkpoints_tried
    none = (
        "no checkpoint from there on can be read"
        if usable <= most
        else f"of {usable:,} checkpoints from there on, the {most} that were tried cannot be read; delete damaged "
        "ones, which lake fsck names"
    )
    return Corrupt(f"{journal}: purged up to version {marks.fence}, and {none}")
