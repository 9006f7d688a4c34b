"""The generic journal: numbered immutable entries on a store, folded into a state.

    journal, put_entry    append: the loop of a commit, and the put of one entry
    reader, windows       load: fold entries, several of them read at once
    loaded_state          what both return
    recent                the recent ids, by which a writer recognizes its own entry
    marks, purge, gates   checkpoints and fences; how they are written; objects that show that a purge began
    hints                 HEAD and TAIL, whose content never changes a result, and the sign that there were entries
    retry, limits         how often and how long a writer tries; how long ids are remembered

One journal lists the pools of a lake; each pool has one more, its history.  docs/protocol.md says why the rules
hold.
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
