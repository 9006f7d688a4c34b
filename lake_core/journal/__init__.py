"""The generic journal: numbered immutable entries on a store, folded into a state.

`reader` loads, `journal` appends, `placing` puts one entry; `head` is the state that they hand out; `recent` are
the ids committed lately; `marks` are checkpoints and fences; `purge` writes them and moves the tail; `hints` keeps
HEAD and TAIL, which may be anything at all without changing a result; `retry` is a writer's patience.  One journal
lists the pools of a lake, one more for each pool holds its history.  docs/protocol.md says why the rules hold.
"""

from lake_core.journal.journal import Appended, Journal, Overtaken
from lake_core.journal.loaded_state import LoadedState, StateFormat
from lake_core.journal.purge import Purged, purge, write_state
from lake_core.journal.retry import Retry

__all__ = [
    "Appended",
    "Journal",
    "LoadedState",
    "Overtaken",
    "Purged",
    "Retry",
    "StateFormat",
    "purge",
    "write_state",
]
