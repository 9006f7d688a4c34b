"""The generic journal: numbered immutable entries on a store, folded into a state.

`reader` loads, `journal` appends, `put_entry` puts one entry; `loaded_state` is what both return; `recent` are the
recent ids; `marks` are checkpoints and fences; `purge` writes them and deletes old entries, and `gates` show that
it has begun; `windows` reads entries several at once; `hints` reads and writes HEAD and TAIL, whose content never
changes a result, and the sign that a journal has had entries; `retry` bounds how often and how long a writer tries,
`limits` how long ids are remembered.  One journal lists the pools of a lake; each pool has one more, its history.
docs/protocol.md says why the rules hold.
"""

from lake_core.journal.journal import Appended, Journal, NextEntry
from lake_core.journal.limits import JOURNAL_LIMITS, JournalLimits
from lake_core.journal.loaded_state import LoadedState, StateFormat
from lake_core.journal.purge import Purged, purge, put_fence, put_gate, write_state
from lake_core.journal.retry import Retry

__all__ = [
    "JOURNAL_LIMITS",
    "Appended",
    "Journal",
    "JournalLimits",
    "LoadedState",
    "NextEntry",
    "Purged",
    "Retry",
    "StateFormat",
    "purge",
    "put_fence",
    "put_gate",
    "write_state",
]
