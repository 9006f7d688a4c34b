"""Gates: numbered objects that show, by one read, that no purge has begun.

    <journal>-gates/<number>.gate     from 1, without holes; they are never deleted

A purger puts its fence, makes the next gate, and then deletes entries and checkpoints.  So if a process knows
`n` gates, and then lists the journal, the listing shows the fences of these gates, and the process starts above
them. If gate `n + 1` is missing later, nothing more was deleted: neither a later entry nor the checkpoint from
which the state still reads.  One read shows it; a listing of the marks costs twelve (decision 294).

Gates lie beside the journal's folder, so that no listing of the journal shows them.  This program makes gates
in lakes of every format. It relies on gates only in lakes of format `FORMAT` and later, in which every program
makes them.

Callers: `reader`, `purge`.
"""

from __future__ import annotations

from lake_core import naming
from lake_core.store import Store

FORMAT = 3
"""The smallest format version of a lake in which every purger makes gates."""


def count(store: Store, journal: str) -> int:
    """Returns the number of gates of a journal, with one listing for each thousand.  Raises Unavailable."""
    numbers = (naming.gate_number(info.name) for info in store.list(naming.gates(journal)))
    return max((number for number in numbers if number is not None), default=0)


def is_there(store: Store, journal: str, number: int) -> bool:
    """Whether gate `number` exists, that is, whether the purge that makes it has begun. Raises Unavailable."""
    return store.get(naming.gate(journal, number)) is not None
