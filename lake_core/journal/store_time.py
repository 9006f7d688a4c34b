"""Gets the time of the store, for work that drops records or forgets tokens and history.

A read may use the clock of its machine: nothing is lost if that is wrong.  But what a compaction leaves out, or
a checkpoint forgets, is lost for all users.  So such work asks the store for the time, and compares it with the
machine's clock.  A small difference is logged; if the difference is large, the work is refused (decision 161).
"""

from __future__ import annotations

import logging
from typing import Any

from lake_core import naming
from lake_core.errors import ClocksApart, Unavailable
from lake_core.journal import hints
from lake_core.journal.journal import Journal
from lake_core.phrases import human_duration

log = logging.getLogger(__name__)


SAID = 60.0
"""Seconds by which the clocks may differ before a warning is logged."""


def surely_past(journal: Journal[Any, Any], *, own: float) -> float:
    """Returns the earlier of the store's time and the machine's (`own`), in seconds since 1970: a moment that is
    past by both clocks.

    Writes TAIL again and lists it.  Raises ClocksApart if the clocks differ by more than
    `JournalLimits.clock_skew`, and Unavailable.
    """
    name = naming.tail(journal.name)
    hints.rewrite_tail_hint(journal.store, journal.name, journal.marks().fence + 1)
    after = name[:-1]
    listed = (info.modified for info in journal.store.list(journal.name, after=after) if info.name == name)
    modified = next(listed, None)
    if modified is None:
        raise Unavailable(f"{name}: was written and is not listed; try again")
    return earlier(own=own, store=modified, most=journal.limits.clock_skew)


def earlier(*, own: float, store: float, most: float) -> float:
    """Returns the earlier of two times; logs a warning if they differ by a minute.  Raises ClocksApart if they
    differ by more than `most` seconds."""
    apart = abs(own - store)
    if apart > most:
        raise ClocksApart(
            f"the clock of this machine is {human_duration(apart)} {'ahead of' if own > store else 'behind'} that "
            f"of the store, and work that drops or forgets needs both to agree within {human_duration(most)}; set "
            "the clock that is wrong"
        )
    if apart > SAID:
        log.warning(
            "the clock of this machine is %s %s that of the store",
            human_duration(apart),
            "ahead of" if own > store else "behind",
        )
    return min(own, store)
